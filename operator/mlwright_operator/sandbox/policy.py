"""The NetworkPolicy of a namespace's sandboxes: nothing in, nothing out, before the first pod."""

from __future__ import annotations

from typing import Any

from mlwright_operator import labels


def network_policy(namespace: str) -> dict[str, Any]:
    """Selects every pod that the operator makes for scripts and tasks, and allows none of their traffic."""
    selected = {"key": labels.PART, "operator": "In", "values": [labels.SANDBOX, labels.TASK_CHECK]}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": labels.POLICY_NAME,
            "namespace": namespace,
            "labels": {labels.MANAGED_BY: labels.MANAGER},
        },
        "spec": {
            "podSelector": {"matchExpressions": [selected]},
            "policyTypes": ["Ingress", "Egress"],
        },
    }
