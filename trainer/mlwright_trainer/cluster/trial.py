"""One script in a cluster's sandbox, to its result: what `mlwright task run --cluster` does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_sandbox.backend import Finished, SandboxRequest

from mlwright_trainer.cluster.backend import ClusterBackend
from mlwright_trainer.cluster.kube import KubeRollouts
from mlwright_trainer.cluster.kubeconfig import Place
from mlwright_trainer.cluster.owner import one_call
from mlwright_trainer.cluster.tasks import ClusterTask, find_task, require_same
from mlwright_trainer.progress import Progress

ROLLOUT = "script"
PATIENCE_SECONDS = 15.0
"""Without a word from the operator; then the user hears that there may be none."""


@dataclass(frozen=True)
class ClusterRun:
    """What came of a script, and the Rollout that it was."""

    task: ClusterTask
    rollout: str
    finished: Finished


@dataclass(frozen=True)
class ExpectedTask:
    """The task of a folder: the cluster's must be the same."""

    folder: str
    spec: MLTaskSpec


def run_script_in_cluster(
    place: Place,
    task_name: str,
    script: str,
    *,
    seed: int,
    splits: tuple[Split, ...],
    progress: Progress,
    keep: bool = False,
    expected: ExpectedTask | None = None,
) -> ClusterRun:
    """Run a script of the MLTask `task_name` to its end; the Rollout is deleted afterwards unless it is to be kept.

    Errors: ClusterRefused, ClusterUnavailable. However it ends, by Ctrl-C too, only with `keep` is anything left.
    """
    task = asyncio.run(_task(place, task_name))
    if expected is not None:
        require_same(expected.spec, task, where=expected.folder)
    narrator = _Narrator(progress)
    backend = ClusterBackend(
        lambda: KubeRollouts.open(place),
        one_call(task_name),
        slots=1,
        told=narrator.told,
    )
    name = backend.object_name(ROLLOUT)
    try:
        progress.stage(
            f"Rollout {name} in namespace {task.namespace}"
        )  # the next stages come from the other thread
        backend.submit(SandboxRequest(ROLLOUT, task.mounts(), script, seed, splits))
        finished = _collect(backend, narrator, task.namespace)
    finally:
        if keep:
            backend.detach()
        else:
            backend.close()
    return ClusterRun(task, name, finished)


async def _task(place: Place, name: str) -> ClusterTask:
    api = await KubeRollouts.open(place)
    try:
        return await find_task(api, name)
    finally:
        await api.close()


def _collect(backend: ClusterBackend, narrator: _Narrator, namespace: str) -> Finished:
    found = backend.collect(PATIENCE_SECONDS)
    if not found and not narrator.spoke:
        narrator.told(
            "", f"nobody has taken it up yet: does an mlwright operator watch namespace {namespace}?"
        )
    while not found:
        found = backend.collect()
    return found[0]


class _Narrator:
    """Passes on what a rollout waits for."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self.spoke = False

    def told(self, rollout: str, line: str) -> None:
        if rollout and line:
            self.spoke = True
            self._progress.stage(line)
        elif line:
            self._progress.say(line)
