"""An MLTask as it stands in a cluster: found, ready, and the same as a folder's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mlwright_api.digests import spec_digest
from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskSpec
from mlwright_sandbox.backend import TaskMounts
from pydantic import ValidationError

from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused
from mlwright_trainer.cluster.explaining import explained, missing_crds
from mlwright_trainer.cluster.port import Object
from mlwright_trainer.cluster.reading import condition, said

CHECKING = "Checking"
"""The reason of Ready=False that passes by itself."""


class TaskApi(Protocol):
    """What is asked of an API server about tasks."""

    @property
    def place(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    async def task(self, name: str) -> Object: ...

    async def has_namespace(self) -> bool: ...


@dataclass(frozen=True)
class ClusterTask:
    """A task of a namespace; its data are volumes there, and nothing of them is here."""

    name: str
    namespace: str
    spec: MLTaskSpec

    @property
    def digest(self) -> str:
        """As a Rollout's taskRef has it."""
        return spec_digest(self.spec)

    def mounts(self) -> TaskMounts:
        """For a request to a backend that needs no folders."""
        return TaskMounts(name=self.name, spec=self.spec, public=Path(), private=Path())


async def find_task(api: TaskApi, name: str) -> ClusterTask:
    """The MLTask `name`, ready or about to be. Errors: ClusterRefused, ClusterUnavailable."""
    try:
        live = await api.task(name)
    except ApiFailure as failure:
        if failure.gone and not missing_crds(failure):
            raise ClusterRefused(await _not_there(api, name)) from failure
        raise explained(failure, doing=f"read MLTask {name}", place=api.place) from failure
    task = ClusterTask(name, api.namespace, _spec(live, name, api.place))
    _require_ready(live, task, api.place)
    return task


async def _not_there(api: TaskApi, name: str) -> str:
    if not await api.has_namespace():
        return f"{api.place}: there is no such namespace; choose one with --namespace"
    return (
        f"{api.place}: there is no MLTask {name!r}; see what there is: kubectl get mltasks -n {api.namespace}, "
        "or apply the task's manifest with its data volumes"
    )


def _spec(live: Object, name: str, place: str) -> MLTaskSpec:
    try:
        return MLTaskSpec.model_validate(live["spec"])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ClusterRefused(f"{place}: MLTask {name}: spec.{where}: {first['msg']}") from error


def _require_ready(live: Object, task: ClusterTask, place: str) -> None:
    status = live.get("status") or {}
    ready = condition(live, "Ready")
    if ready is not None and ready.get("status") == "False" and ready.get("reason") != CHECKING:
        raise ClusterRefused(
            f"{place}: MLTask {task.name} is not ready: {said(ready)}; see: "
            f"kubectl describe mltask {task.name} -n {task.namespace}"
        )
    if status.get("digest") not in (None, task.digest):
        raise ClusterRefused(
            f"{place}: MLTask {task.name} reads differently here ({task.digest}) and to the operator "
            f"({status['digest']}): their versions do not fit together; install the same mlwright"
        )


def require_same(folder: MLTaskSpec, task: ClusterTask, *, where: str) -> None:
    """That a folder's task is the cluster's, but for the volumes. Errors: ClusterRefused names the fields."""
    here, there = (wire(spec.model_copy(update={"data": None})) for spec in (folder, task.spec))
    different = sorted(key for key in here.keys() | there.keys() if here.get(key) != there.get(key))
    if different:
        raise ClusterRefused(
            f"{where} and MLTask {task.name} in namespace {task.namespace} are not the same task: "
            f"{', '.join(f'spec.{key}' for key in different)} differ; a changed task is a new task: apply it under "
            "another name, or give that MLTask's name instead of the folder"
        )
