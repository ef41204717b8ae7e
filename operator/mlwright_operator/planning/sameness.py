"""Whether the pod that exists is the one that was sent, also after the operator's configuration has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mlwright_operator.config import SandboxProfile
from mlwright_operator.observed import SeenJob, SeenPod, SeenRollout, SeenTask
from mlwright_operator.sandbox import lacks_user_namespace, sandbox_job, template, weakened


@dataclass(frozen=True)
class Differences:
    """Between the pod that was sent and the one that exists."""

    found: tuple[str, ...] = ()
    lacks_user_namespace: bool = False
    """One was asked for, and all that differs is that the pod has none."""


def differences(
    rollout: SeenRollout,
    task: SeenTask | None,
    profile: SandboxProfile | None,
    job: SeenJob,
    pod: SeenPod,
) -> Differences:
    """Compared with what would be sent now, if that is what was sent then; else with what the Job holds.

    (A task that is gone, or a profile that the platform has changed since, cannot say what was sent.)
    """
    sent = _sent(rollout, task, profile, job)
    returned = {"metadata": pod.metadata, "spec": pod.spec}
    found = weakened(sent, returned)
    lacking = bool(found) and lacks_user_namespace(sent, returned)
    if lacking and not weakened(_with_host_users(sent, pod), returned):
        return Differences(found, lacks_user_namespace=True)
    return Differences(found)


def _sent(
    rollout: SeenRollout, task: SeenTask | None, profile: SandboxProfile | None, job: SeenJob
) -> Mapping[str, Any]:
    if task is None or task.spec is None or task.spec.data is None or profile is None:
        return job.template
    for host_users in (False, True):
        again = template(
            sandbox_job(
                rollout=rollout, task=task, profile=profile, attempt=job.attempt, host_users=host_users
            )
        )
        if template_digest(again) == job.sent:
            return again
    return job.template


def _with_host_users(sent: Mapping[str, Any], pod: SeenPod) -> dict[str, Any]:
    """As it was sent, with the pod's own word on user namespaces."""
    spec = {key: value for key, value in sent["spec"].items() if key != "hostUsers"}
    if "hostUsers" in pod.spec:
        spec["hostUsers"] = pod.spec["hostUsers"]
    return {**sent, "spec": spec}


def template_digest(pod_template: Mapping[str, Any]) -> str:
    """sha256 over its canonical JSON; equal for equal templates."""
    text = json.dumps(pod_template, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"
