"""The Job that a step wants, or why it cannot be made."""

from __future__ import annotations

import json
from typing import Any

from mlwright_api.manifests import wire

from mlwright_operator import labels
from mlwright_operator.config import OperatorConfig, SandboxProfile
from mlwright_operator.observed import SeenRollout, SeenTask
from mlwright_operator.planning.sameness import template_digest
from mlwright_operator.sandbox import limits_of, sandbox_job, task_check_job, template, too_large

Json = dict[str, Any]


def script_job(
    rollout: SeenRollout, task: SeenTask, profile: SandboxProfile, *, attempt: int, host_users: bool
) -> Json | str:
    """Of a Rollout's attempt; or why a pod cannot carry it."""
    job = sandbox_job(rollout=rollout, task=task, profile=profile, attempt=attempt, host_users=host_users)
    if (problem := too_large(template(job)["metadata"]["annotations"])) is not None:
        return problem
    assert rollout.spec is not None
    assert task.spec is not None
    limits = json.dumps(wire(limits_of(rollout.spec, task.spec)), separators=(",", ":"))
    return _annotated(job, {labels.SENT: template_digest(template(job)), labels.LIMITS: limits})


def check_job(task: SeenTask, config: OperatorConfig, *, attempt: int) -> Json | str:
    """Of a task's check, in the profile `default` (or else the first by name); or why a pod cannot carry it."""
    profile = config.profiles.get("default") or config.profiles[min(config.profiles)]
    job = task_check_job(task=task, profile=profile, attempt=attempt)
    problem = too_large(template(job)["metadata"]["annotations"])
    return problem or _annotated(job, {labels.SENT: template_digest(template(job))})


def _annotated(job: Json, annotations: dict[str, str]) -> Json:
    return {**job, "metadata": {**job["metadata"], "annotations": annotations}}
