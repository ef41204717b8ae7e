"""Raw API objects as a user, a kubelet or a grader would leave them."""

from __future__ import annotations

import json
from typing import Any

from mlwright_api.digests import spec_digest
from mlwright_api.mltask import MLTaskSpec
from mlwright_operator.config import AdmissionLimits, OperatorConfig, SandboxProfile
from mlwright_operator.sandbox import label_value

Raw = dict[str, Any]

NAMESPACE = "team"
API_VERSION = "mlwright.dev/v1alpha1"
TASK_SPEC: Raw = {
    "title": "Digits",
    "description": "Tell them apart.",
    "metric": {"name": "accuracy"},
    "submission": {"targetColumns": ["label"], "kind": "Labels"},
    "data": {"public": {"configMap": "digits-public"}, "private": {"configMap": "digits-private"}},
    "limits": {"timeoutSeconds": 60},
    "reference": {"baseline": 0.1},
}
DIGEST = spec_digest(MLTaskSpec.model_validate(TASK_SPEC))


def config(**changes: Any) -> OperatorConfig:
    """A platform with room for everybody, unless told otherwise (`sandboxes`, `sandboxes_per_run`, `profile`)."""
    admission = {key: changes.pop(key) for key in ("sandboxes", "sandboxes_per_run") if key in changes}
    profile = changes.pop("profile", {})
    return OperatorConfig(
        profiles={"default": SandboxProfile(image="sandbox:1", **profile)},
        admission=AdmissionLimits(**admission),
        **changes,
    )


def task(
    name: str = "digits", *, ready: bool = True, spec: Raw | None = None, namespace: str = NAMESPACE
) -> Raw:
    """An MLTask, as `kubectl apply` makes it; `ready`: its check is behind it."""
    body = spec or TASK_SPEC
    made: Raw = {
        "apiVersion": API_VERSION,
        "kind": "MLTask",
        "metadata": {"name": name, "namespace": namespace},
        "spec": body,
    }
    if ready:
        condition = {"type": "Ready", "status": "True", "reason": "Checked"}
        times = {"observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}
        digest = spec_digest(MLTaskSpec.model_validate(body))
        said = condition | times | {"message": "the sample submission grades"}
        made["status"] = {"digest": digest, "sampleScores": {"Reward": 0.1}, "conditions": [said]}
    return made


def rollout(
    name: str,
    *,
    run_uid: str = "",
    retries: int = 3,
    namespace: str = NAMESPACE,
    digest: str = DIGEST,
    **spec: Any,
) -> Raw:
    """A Rollout of a script that says its own name."""
    body: Raw = {
        "taskRef": {"name": "digits", "digest": digest},
        "files": [{"path": "script.py", "content": f"print({name!r})\n"}],
        "infrastructureRetries": retries,
    }
    if run_uid:
        body["runRef"] = {"name": "run", "uid": run_uid}
    return {
        "apiVersion": API_VERSION,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": namespace},
        "spec": body | spec,
    }


def run(name: str, uid: str, *, weight: float = 1, suspend: bool = False, namespace: str = NAMESPACE) -> Raw:
    """A TrainingRun, as far as the operator reads it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingRun",
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": {"weight": weight, "suspend": suspend},
    }


def claim(name: str, *, bound: bool = True, allowed: bool = True, namespace: str = NAMESPACE) -> Raw:
    """A PersistentVolumeClaim."""
    labels = {"mlwright.dev/task-data": "true"} if allowed else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "status": {"phase": "Bound" if bound else "Pending"},
    }


def receipt(*, isolated: bool = True) -> Raw:
    """What the runner found out about its sandbox."""
    return {
        "backend": "Pod",
        "userNamespace": True,
        "seccomp": True,
        "landlockAbi": 7,
        "checks": [
            {"name": "AnswersAbsent", "locked": True},
            {"name": "NoMounts", "locked": isolated, "detail": "tried"},
        ],
    }


def runner_message(**changes: Any) -> str:
    """The agent's termination message after a script that ended well, changed."""
    good = {
        "exitCode": 0,
        "executionSeconds": 1.5,
        "cpuSeconds": 1.25,
        "startingSeconds": 0.5,
        "milestones": ["imports", "data_loaded"],
        "outputTail": "done\n",
        "isolation": receipt(),
    }
    return json.dumps({key: value for key, value in (good | changes).items() if value is not None})


def grader_message(verdict: str = "Valid", **changes: Any) -> str:
    """The grader's."""
    scores = {"scores": {"Reward": 0.75, "Selection": 0.5}} if verdict in ("Valid", "Trivial") else {}
    return json.dumps({"verdict": verdict, "gradingSeconds": 0.25, **scores, **changes})


def run_label(uid: str) -> str:
    """A run's uid as its sandboxes carry it."""
    return label_value(uid)
