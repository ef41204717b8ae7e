"""`mlwright task`: make, prepare, check, list, grade and try tasks."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from mlwright_api.manifests import wire
from mlwright_api.metric_catalog import CATALOG
from mlwright_api.mltask import Split, SubmissionKind
from mlwright_api.results import Verdict
from mlwright_api.rollout import FILES_BYTES
from rich.console import Console

from mlwright_trainer.command.options import Backend, JsonOption
from mlwright_trainer.command.task_cluster import (
    ClusterScript,
    refuse_options,
    require_sandbox,
    run_in_cluster,
)
from mlwright_trainer.command.task_views import show_check, show_graded, show_metrics, show_run, show_tasks
from mlwright_trainer.errors import UserError, refusal
from mlwright_trainer.tasks.checking import check_task, failed
from mlwright_trainer.tasks.checks import Check, Status
from mlwright_trainer.tasks.final_reads import log_final_read
from mlwright_trainer.tasks.folder import MANIFEST, TaskFolder, load_task
from mlwright_trainer.tasks.listing import list_tasks
from mlwright_trainer.tasks.preparation import prepare_task
from mlwright_trainer.tasks.references import record_reference
from mlwright_trainer.tasks.scaffold import NewTask, new_task
from mlwright_trainer.tasks.trial import SandboxTrial, grade_submission, run_script

_FILE_COLUMNS = 200
app = typer.Typer(help="Make, prepare, check, list, grade and try tasks.", no_args_is_help=True)


TaskArgument = Annotated[Path, typer.Argument(metavar="TASK", help="A task's folder.")]
BackendOption = Annotated[Backend, typer.Option(help="How the script is isolated.")]


@app.command()
def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make.")],
    metric: Annotated[str, typer.Option(help="A name of `mlwright task metrics`.")],
    kind: Annotated[
        SubmissionKind | None, typer.Option(help="What a submission holds; default: what the metric takes.")
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="CSV", help="Your table; without it one is made up.")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="What is to be predicted; repeatable.")
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="Rows of one value stay in one split: patient, store, product."),
    ] = None,
    id_column: Annotated[str, typer.Option("--id", metavar="COLUMN", help="Name of the id column.")] = "id",
    title: Annotated[str | None, typer.Option(help="One line for the task.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the splits.")] = 0,
    as_json: JsonOption = False,
) -> None:
    """Make a complete task folder from a CSV file of yours: splits, ids, sample, baseline, a plain solution.

    The table is copied into the folder; half of its rows go to train.csv, the rest to Reward, Selection and Final.
    """
    task = new_task(
        NewTask(
            folder=folder,
            metric=metric,
            kind=kind,
            source=source,
            targets=tuple(target or ()),
            id_column=id_column,
            title=title,
            seed=seed,
            group=group,
        )
    )
    if as_json:
        typer.echo(json.dumps({"task": task.name, "folder": str(folder), "digest": task.digest}))
        return
    typer.echo(f"{folder} is a task now: {task.spec.title}")
    typer.echo("Next:")
    typer.echo(f"  edit {folder}/{MANIFEST}: say what the columns mean, and set the limits")
    typer.echo(
        f"  mlwright task check {folder} --record   # proves that it stands, and records the reference's score"
    )
    typer.echo(f"  mlwright task run {folder} {folder}/solution.py")


@app.command()
def prepare(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Task folders.")],
    force: Annotated[bool, typer.Option("--force", help="Replace data that differs.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Write checksums.txt anew.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the data of tasks by their prepare.py (which is trusted), and verify its checksums."""
    results = []
    for folder in folders:
        prepared = prepare_task(folder, force=force, record=record)
        results.append(
            {
                "task": prepared.task.name,
                "folder": str(folder),
                "changed": prepared.changed,
                "checksumsRecorded": prepared.recorded,
                "files": dict(prepared.files),
            }
        )
        if not as_json:
            said = "prepared" if prepared.changed else "was prepared already"
            recorded = ", checksums.txt written" if prepared.recorded else ", checksums verified"
            typer.echo(f"{folder}: {said} ({len(prepared.files)} files{recorded})")
    if as_json:
        typer.echo(json.dumps({"tasks": results}))


@app.command()
def check(
    task: TaskArgument,
    no_run: Annotated[bool, typer.Option("--no-run", help="Look at the data only.")] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write the measured baseline and best into task.yaml.")
    ] = False,
    backend: BackendOption = Backend.AUTO,
    as_json: JsonOption = False,
) -> None:
    """Prove that a task stands: nothing leaks, splits are sound, scores are what they should be.

    Exit 2 if any check fails.
    """
    folder = load_task(task)
    trial = None if no_run else SandboxTrial(folder, kind=backend.value)
    checks: list[Check] = []
    console = Console(quiet=as_json, soft_wrap=True)
    for each in check_task(folder, trial):
        checks.append(each)
        show_check(each, console)
    if record:
        checks = _record(folder, checks)
    if as_json:
        typer.echo(json.dumps(_check_document(folder, checks)))
    if failed(checks):
        wrong = [each.name for each in checks if each.status is Status.FAIL]
        raise UserError(f"{task}: {len(wrong)} of {len(checks)} checks failed: {', '.join(wrong)}")
    console.print(f"{task}: {len(checks)} checks, none failed", markup=False, highlight=False)


def _record(folder: TaskFolder, checks: list[Check]) -> list[Check]:
    """Write what was measured into task.yaml; the checks as they are then."""
    measured = {each.name: each.measured for each in checks if each.measured is not None}
    record_reference(
        folder.root / MANIFEST,
        baseline=measured.get("recorded-baseline"),
        best=measured.get("recorded-best"),
    )
    return [
        replace(each, status=Status.PASS, line=f"{each.measured:.6g} written to {MANIFEST}")
        if each.name in measured
        else each
        for each in checks
    ]


def _check_document(folder: TaskFolder, checks: list[Check]) -> dict[str, Any]:
    return {
        "task": folder.name,
        "digest": folder.digest,
        "ok": not failed(checks),
        "checks": [
            {"name": each.name, "status": each.status.value, "line": each.line, "measured": each.measured}
            for each in checks
        ],
    }


@app.command(name="list")
def list_(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[DIR...]", help="Task folders, or folders of them.", show_default="."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks in folders: metric, rows, limits, known scores, and whether the data is there."""
    tasks = list_tasks(folders or [Path()])
    if as_json:
        typer.echo(json.dumps({"tasks": [each.document() for each in tasks]}))
    else:
        show_tasks(tasks, _wide())


@app.command()
def grade(
    task: TaskArgument,
    submission: Annotated[Path, typer.Argument(help="A CSV file.")],
    split: Annotated[
        Split, typer.Option(help="Which answers to score against; reading Final is logged.")
    ] = Split.REWARD,
    as_json: JsonOption = False,
) -> None:
    """Grade a submission. Exit 2 if it is not valid."""
    folder = load_task(task)
    content = _read(submission)
    if split is Split.FINAL:
        _log_final(folder, content)
    graded = grade_submission(folder, content, (split,))
    if as_json:
        typer.echo(json.dumps({"task": folder.name, **wire(graded)}))
    else:
        show_graded(graded, Console(soft_wrap=True))
    if graded.verdict not in (Verdict.VALID, Verdict.TRIVIAL):
        raise UserError(f"{submission}: {graded.verdict.value}: {graded.reason}")


def _log_final(folder: TaskFolder, content: bytes) -> None:
    if folder.sealed is None:
        raise UserError(f"{folder.root}: the task has no sealed/answers.csv, so there is no Final")
    log_final_read(folder.sealed, purpose="task grade", digest=hashlib.sha256(content).hexdigest())
    typer.echo(
        "mlwright: Final is meant to be read once, after a run has ended; this read is in sealed/reads.log",
        err=True,
    )


@app.command()
def run(
    task: TaskArgument,
    script: Annotated[Path, typer.Argument(help="A Python file.")],
    split: Annotated[Split, typer.Option(help="Which answers to score against: Reward or Selection.")] = (
        Split.REWARD
    ),
    backend: BackendOption = Backend.AUTO,
    seed: Annotated[int, typer.Option(min=0, help="Of the random generators in the sandbox.")] = 0,
    submission: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the script's submission here.")
    ] = None,
    cluster: Annotated[
        bool,
        typer.Option(
            "--cluster", help="In a pod of a cluster; TASK is an MLTask's name, or a folder of the same."
        ),
    ] = False,
    namespace: Annotated[
        str | None, typer.Option(help="With --cluster.", show_default="the context's")
    ] = None,
    context: Annotated[
        str | None, typer.Option(help="With --cluster: of the kubeconfig.", show_default="the current one")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="With --cluster: do not delete the Rollout.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run one script in the same sandbox as a run's, and say how it ended.

    Exit 0 however the script ended, 1 if the sandbox itself failed.
    """
    if split is Split.FINAL:
        raise UserError(
            "--split Final: scripts are never run against Final; grade a submission with task grade"
        )
    source = _script(script)
    if cluster:
        local = {"--submission": submission is not None, "--backend": backend is not Backend.AUTO}
        refuse_options(local, "is for this machine, and not with --cluster")
        asked = ClusterScript(task, source, seed=seed, splits=(split,), keep=keep)
        run_in_cluster(asked, namespace=namespace, context=context, as_json=as_json)
        return
    given = {"--namespace": namespace is not None, "--context": context is not None, "--keep": keep}
    refuse_options(given, "is only with --cluster")
    folder = load_task(task)
    finished = run_script(folder, source, kind=backend.value, seed=seed, splits=(split,))
    if submission is not None and finished.submission is not None:
        _write(submission, finished.submission)
    if as_json:
        document = {"task": folder.name, "taskDigest": folder.digest, **wire(finished.status)}
        typer.echo(json.dumps(document))
    else:
        show_run(finished.status, folder.spec, Console(soft_wrap=True))
    require_sandbox(finished.status)


@app.command()
def metrics(as_json: JsonOption = False) -> None:
    """List the registered metrics."""
    if as_json:
        documents = [
            {
                "name": info.name,
                "title": info.title,
                "direction": info.direction.value,
                "lower": info.lower,
                "upper": info.upper,
                "kinds": sorted(info.kinds),
                "manyColumns": info.many_columns,
                "parameters": sorted(info.parameters),
            }
            for info in CATALOG.values()
        ]
        typer.echo(json.dumps({"metrics": documents}))
    else:
        show_metrics(CATALOG.values(), _wide())


def _wide() -> Console:
    """A console for tables: where nobody looks at a terminal, lines need not be folded."""
    console = Console()
    return console if console.is_terminal else Console(width=_FILE_COLUMNS)


def _script(path: Path) -> str:
    source = _read(path).decode("utf-8", errors="replace")
    if len(source.encode()) > FILES_BYTES:
        raise UserError(f"{path}: larger than {FILES_BYTES} bytes, the most that a run would start")
    return source


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {refusal(error)}") from error


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UserError(f"{path}: {refusal(error)}") from error
