"""The reserved labels and annotations by which the operator knows what is its own, and whose it is."""

from __future__ import annotations

MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGER = "mlwright"
PART = "mlwright.dev/part"
SANDBOX = "sandbox"
TASK_CHECK = "task-check"
ROLLOUT_UID = "mlwright.dev/rollout-uid"
TASK_UID = "mlwright.dev/task-uid"
RUN_UID = "mlwright.dev/run-uid"
ATTEMPT = "mlwright.dev/attempt"

OPT_IN = "mlwright.dev/task-data"
"""On a claim, `true`: its owner lets tasks of the namespace mount it."""

SENT = "mlwright.dev/sent"
"""On a Job: digest of the pod template that was sent, so that a changed one is told from a changed configuration."""
LIMITS = "mlwright.dev/limits"
"""On a Job: the limits that its script ran under, as JSON."""

POLICY_NAME = "mlwright-sandbox"
"""Of the NetworkPolicy, one a namespace."""
