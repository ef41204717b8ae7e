"""One good Rollout, MLTask and profile, and the sandbox Jobs made from them or from variations of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

from mlwright_api.digests import spec_digest
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import RolloutSpec
from mlwright_operator.actions import Kind, Ref
from mlwright_operator.config import SandboxProfile
from mlwright_operator.observed import SeenRollout, SeenTask
from mlwright_operator.sandbox import sandbox_job, task_check_job, template

Json = dict[str, Any]

NAMESPACE = "wine-team"
NOW = datetime(2026, 7, 1, tzinfo=UTC)
ROLLOUT_UID = "7d1f3a52-6f5c-4d2e-9a53-0f6f5b1c2d3e"
TASK_UID = "aa0b8c1d-1111-4222-8333-944455566677"
RUN_UID = "0c9d8e7f-2222-4333-8444-955566677788"
PROFILE = SandboxProfile(image="registry.example/sandbox@sha256:" + "a" * 64)

TASK: Json = {
    "title": "Wine quality",
    "description": "# Wine\nPredict the quality.",
    "metric": {"name": "accuracy"},
    "submission": {
        "fileName": "answer.csv",
        "idColumn": "id",
        "targetColumns": ["quality"],
        "kind": "Labels",
    },
    "data": {
        "public": {"claim": {"name": "wine", "path": "wine/public"}},
        "private": {"claim": {"name": "wine", "path": "wine/private"}},
        "sealed": {"claim": {"name": "wine-sealed", "path": "final"}},
    },
    "limits": {"timeoutSeconds": 60, "cpu": "2", "memory": "1Gi", "workSize": "256Mi", "gpus": 0},
    "reference": {"baseline": 0.4, "best": 0.9},
}
ROLLOUT: Json = {
    "runRef": {"name": "first", "uid": RUN_UID},
    "taskRef": {"name": "wine", "digest": spec_digest(MLTaskSpec.model_validate(TASK))},
    "files": [{"path": "script.py", "content": "print('hello')\n"}],
    "seed": 7,
}


def changed(spec: Mapping[str, Any], path: str, value: object) -> Json:
    """A copy of `spec` with the value at `path` (`files.0.content`) set; None takes it away."""
    copy = deepcopy(dict(spec))
    *parents, last = (int(part) if part.isdigit() else part for part in path.split("."))
    place: Any = copy
    for part in parents:
        place = place[part] if isinstance(part, int) else place.setdefault(part, {})
    if value is None:
        del place[last]
    else:
        place[last] = value
    return copy


def seen_rollout(spec: Mapping[str, Any] = ROLLOUT, *, name: str = "first-000017") -> SeenRollout:
    """As the operator sees a Rollout. Errors: ValidationError where the API would refuse it."""
    return SeenRollout(
        ref=Ref(Kind.ROLLOUT, NAMESPACE, name, ROLLOUT_UID),
        resource_version="1",
        generation=1,
        created_at=NOW,
        spec=RolloutSpec.model_validate(spec),
    )


def seen_task(spec: Mapping[str, Any] = TASK, *, name: str = "wine") -> SeenTask:
    """As the operator sees an MLTask. Errors: ValidationError where the API would refuse it."""
    return SeenTask(
        ref=Ref(Kind.TASK, NAMESPACE, name, TASK_UID),
        resource_version="1",
        generation=1,
        created_at=NOW,
        spec=MLTaskSpec.model_validate(spec),
    )


def job(
    rollout: Mapping[str, Any] = ROLLOUT,
    task: Mapping[str, Any] = TASK,
    profile: SandboxProfile = PROFILE,
    *,
    attempt: int = 1,
    host_users: bool = False,
) -> Json:
    """The Job of a Rollout."""
    return sandbox_job(
        rollout=seen_rollout(rollout),
        task=seen_task(task),
        profile=profile,
        attempt=attempt,
        host_users=host_users,
    )


def pod(
    rollout: Mapping[str, Any] = ROLLOUT, task: Mapping[str, Any] = TASK, profile: SandboxProfile = PROFILE
) -> Json:
    """The pod template of a Rollout's Job."""
    return template(job(rollout, task, profile))


def check_pod(task: Mapping[str, Any] = TASK, profile: SandboxProfile = PROFILE) -> Json:
    """The pod template of a task's check."""
    return template(task_check_job(task=seen_task(task), profile=profile, attempt=1))


def container(pod: Mapping[str, Any], name: str) -> Json:
    """A container of a pod, by name."""
    (found,) = (each for each in pod["spec"]["containers"] if each["name"] == name)
    return dict(found)


def volume(pod: Mapping[str, Any], name: str) -> Json:
    """A volume of a pod, by name."""
    (found,) = (each for each in pod["spec"]["volumes"] if each["name"] == name)
    return dict(found)


def mounts(container: Mapping[str, Any]) -> dict[str, Json]:
    """A container's mounts by path."""
    return {each["mountPath"]: each for each in container["volumeMounts"]}
