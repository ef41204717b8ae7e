"""`mlwright task run --cluster`: the same script, in a pod of a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from mlwright_api.manifests import wire
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutStatus
from rich.console import Console

from mlwright_trainer.command.live import live_progress
from mlwright_trainer.command.task_views import show_run
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.progress import Progress
from mlwright_trainer.tasks.folder import read_task

if TYPE_CHECKING:
    from mlwright_trainer.cluster.trial import ClusterRun


@dataclass(frozen=True)
class ClusterScript:
    """What is to be run; `task` is a folder, or else the name of an MLTask."""

    task: Path
    source: str
    seed: int
    splits: tuple[Split, ...]
    keep: bool


def refuse_options(given: Mapping[str, bool], why: str) -> None:
    """Options that were given, and mean nothing here, are the user's mistake."""
    for option, is_given in given.items():
        if is_given:
            raise UserError(f"{option} {why}")


def require_sandbox(status: RolloutStatus) -> None:
    """A sandbox that failed is no result of the script's: exit 1."""
    if status.outcome is Outcome.INFRASTRUCTURE_FAILED:
        raise InternalError(f"the sandbox failed: {status.reason}")


def run_in_cluster(
    script: ClusterScript, *, namespace: str | None, context: str | None, as_json: bool
) -> None:
    """Run it to its end, and show what came of it as for a script on this machine."""
    console = Console(stderr=True, quiet=as_json)
    try:
        with live_progress(console) as progress:
            ran = _run(script, namespace, context, progress)
    except KeyboardInterrupt:
        said = "the Rollout was kept, and goes on" if script.keep else "the Rollout was deleted"
        console.print(f"Stopped; {said}.", markup=False, highlight=False)
        raise
    status = ran.finished.status
    if as_json:
        typer.echo(json.dumps(_document(ran)))
    else:
        show_run(status, ran.task.spec, Console(soft_wrap=True))
    if script.keep:
        kept = f"kept: kubectl get rollout {ran.rollout} -n {ran.task.namespace} -o yaml"
        console.print(kept, markup=False, highlight=False, soft_wrap=True)
    require_sandbox(status)


def _run(script: ClusterScript, namespace: str | None, context: str | None, progress: Progress) -> ClusterRun:
    try:
        from mlwright_trainer.cluster.kubeconfig import Place
        from mlwright_trainer.cluster.trial import ExpectedTask, run_script_in_cluster
    except ModuleNotFoundError as error:
        raise UserError(f"{error.name} is not installed; run: pip install 'mlwright[cluster]'") from error
    name, expected = str(script.task), None
    if script.task.is_dir():
        folder = read_task(script.task)
        name, expected = folder.name, ExpectedTask(str(script.task), folder.spec)
    return run_script_in_cluster(
        Place(context=context, namespace=namespace),
        name,
        script.source,
        seed=script.seed,
        splits=script.splits,
        progress=progress,
        keep=script.keep,
        expected=expected,
    )


def _document(ran: ClusterRun) -> dict[str, object]:
    return {
        "task": ran.task.name,
        "taskDigest": ran.task.digest,
        "namespace": ran.task.namespace,
        "rollout": ran.rollout,
        **wire(ran.finished.status),
    }
