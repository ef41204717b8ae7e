"""The Rollout object that a request becomes, and whether one that is there already is the same: pure."""

from __future__ import annotations

from typing import Any

from mlwright_api.base import API_VERSION
from mlwright_api.digests import spec_digest
from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import RolloutSpec, ScriptFile, TaskReferenceTo
from mlwright_sandbox.backend import SandboxRequest
from pydantic import ValidationError

from mlwright_trainer.cluster.errors import ClusterRefused
from mlwright_trainer.cluster.owner import Owner
from mlwright_trainer.cluster.port import Object

SCRIPT = "script.py"
"""As the local backends name it."""


def task_reference(name: str, spec: MLTaskSpec) -> TaskReferenceTo:
    """The MLTask that rollouts are judged by; `spec` is the cluster's own, its volumes included."""
    return TaskReferenceTo(name=name, digest=spec_digest(spec))


def rollout_object(request: SandboxRequest, owner: Owner, *, sandbox: str) -> dict[str, Any]:
    """The object to create. Errors: ClusterRefused where a cluster cannot do what is asked."""
    if request.keep_submission:
        raise ClusterRefused(
            f"rollout {request.rollout}: a submission's bytes cannot be had from a cluster: its work folder goes "
            "with the pod; run the script on this machine to keep its submission"
        )
    metadata: dict[str, Any] = {
        "name": owner.object_name(request.rollout),
        "labels": {"app.kubernetes.io/managed-by": "mlwright", owner.label: owner.uid},
    }
    if owner.is_run:
        metadata["ownerReferences"] = [_owner_reference(owner)]
    return {
        "apiVersion": API_VERSION,
        "kind": "Rollout",
        "metadata": metadata,
        "spec": wire(_spec(request, owner, sandbox)),
    }


def _spec(request: SandboxRequest, owner: Owner, sandbox: str) -> RolloutSpec:
    try:
        return RolloutSpec(
            run_ref=owner.run_ref,
            task_ref=task_reference(request.task.name, request.task.spec),
            sandbox=sandbox,
            files=[ScriptFile(path=SCRIPT, content=request.script)],
            entrypoint=SCRIPT,
            seed=request.seed,
            instrumentation="Static" if request.instrument else "None",
            grade_partial=request.grade_partial,
            infrastructure_retries=request.retries,
            splits=list(request.splits),
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ClusterRefused(f"rollout {request.rollout}: {first['msg']}") from error


def _owner_reference(owner: Owner) -> dict[str, Any]:
    """So that rollouts go with their run."""
    return {
        "apiVersion": API_VERSION,
        "kind": "TrainingRun",
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }


def differences(sent: Object, live: Object) -> tuple[str, ...]:
    """The fields in which a live object is not the one that was sent; fields that only the server has are none."""
    wanted, there = sent["spec"], live.get("spec", {})
    spec = tuple(f"spec.{key}" for key in wanted if there.get(key) != wanted[key])
    labels = live.get("metadata", {}).get("labels") or {}
    marks = tuple(
        f"metadata.labels[{key}]"
        for key, value in sent["metadata"]["labels"].items()
        if labels.get(key) != value
    )
    return spec + marks
