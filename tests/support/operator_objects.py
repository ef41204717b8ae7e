"""Objects that an operator works on: a Rollout, a task that is ready, a configuration."""

from __future__ import annotations

from typing import Any

from mlwright_api.digests import spec_digest
from mlwright_api.mltask import MLTaskSpec
from mlwright_operator.config import OperatorConfig

API = "mlwright.dev/v1alpha1"

TASK_SPEC: dict[str, Any] = {
    "title": "Churn",
    "description": "Predict churn.",
    "metric": {"name": "accuracy"},
    "submission": {"idColumn": "id", "targetColumns": ["label"], "kind": "Labels"},
    "data": {
        "public": {"configMap": "churn-public"},
        "private": {"configMap": "churn-private"},
        "sealed": {"configMap": "churn-sealed"},
    },
    "limits": {"timeoutSeconds": 60, "cpu": "100m", "memory": "128Mi", "workSize": "32Mi"},
    "reference": {"baseline": 0.5, "best": 0.9},
}


def digest() -> str:
    """Of TASK_SPEC."""
    return spec_digest(MLTaskSpec.model_validate(TASK_SPEC))


def task(namespace: str, name: str = "churn") -> dict[str, Any]:
    """An MLTask."""
    return {
        "apiVersion": API,
        "kind": "MLTask",
        "metadata": {"name": name, "namespace": namespace},
        "spec": TASK_SPEC,
    }


def ready_status() -> dict[str, Any]:
    """What the operator writes once the sample has been graded."""
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Checked",
        "message": "",
        "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return {"digest": digest(), "conditions": [condition]}


def rollout(namespace: str, name: str, *, task: str = "churn", script: str = "print(1)\n") -> dict[str, Any]:
    """A Rollout that only misses its Job."""
    return {
        "apiVersion": API,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "taskRef": {"name": task, "digest": digest()},
            "files": [{"path": "script.py", "content": script}],
        },
    }


def config(**fields: Any) -> OperatorConfig:
    """One profile, and whatever else is given (snake_case)."""
    return OperatorConfig.model_validate({"profiles": {"default": {"image": "sandbox:test"}}, **fields})
