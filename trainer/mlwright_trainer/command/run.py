"""`mlwright run`: carry a run file out on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mlwright_trainer.command.live import live_progress
from mlwright_trainer.command.options import Backend
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.runs.folder import RunFolder, open_run
from mlwright_trainer.runs.plan import RunPlan, load_plan


def register(app: typer.Typer) -> None:
    app.command(name="run")(run)


def run(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A YAML file with one TrainingRun; with --resume, the run folder's own if left out."
        ),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--dir", help="The run's folder.", show_default="runs/<name of the run>")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that the folder holds.")
    ] = False,
    updates: Annotated[
        int | None, typer.Option(min=1, help="Updates in all, instead of spec.algorithm.updates.")
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option("--task", metavar="NAME=DIR", help="Where a task's folder is; repeatable."),
    ] = None,
    backend: Annotated[Backend, typer.Option(help="How scripts are isolated.")] = Backend.AUTO,
    slots: Annotated[
        int | None, typer.Option(min=1, help="Scripts at a time, a core each.", show_default="all cores")
    ] = None,
    device: Annotated[str, typer.Option(help="Where the model samples and learns: cpu, cuda, ...")] = "cpu",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one JSON document, and nothing else.")
    ] = False,
) -> None:
    """Carry a run out on this machine: sample, execute, grade, learn; then the sealed grading and a report.

    Ctrl-C stops it cleanly at any time; `--resume` goes on where it was. Nothing that ran is run again.
    """
    plan, folder = _plan(file, directory, resume=resume, tasks=_task_folders(task or []))
    plan = plan.with_updates(updates)
    console = Console(stderr=True, quiet=as_json)
    _carry_out(plan, folder, console, resume=resume, backend=backend, slots=slots, device=device)
    _conclude(folder, console, as_json=as_json)


def _plan(
    file: Path | None, directory: Path | None, *, resume: bool, tasks: dict[str, Path]
) -> tuple[RunPlan, RunFolder]:
    if file is None:
        if not resume or directory is None:
            raise UserError("name a run file, or a run's folder with --resume --dir DIR")
        folder = open_run(directory)
        return load_plan(folder.run_file, task_folders=tasks), folder
    plan = load_plan(file, task_folders=tasks)
    return plan, RunFolder((directory or Path("runs") / plan.name).absolute())


def _task_folders(pairs: list[str]) -> dict[str, Path]:
    folders = {}
    for pair in pairs:
        name, equals, folder = pair.partition("=")
        if not equals or not name or not folder:
            raise UserError(f"--task {pair}: write NAME=DIR, such as churn=examples/tasks/churn")
        folders[name] = Path(folder).absolute()
    return folders


def _carry_out(
    plan: RunPlan,
    folder: RunFolder,
    console: Console,
    *,
    resume: bool,
    backend: Backend,
    slots: int | None,
    device: str,
) -> None:
    try:
        from mlwright_trainer.runs.local import LocalOptions, run_locally  # torch takes seconds to import
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name} is not installed; run: pip install 'mlwright[train,report]'"
        ) from error
    options = LocalOptions(resume=resume, backend=backend.value, slots=slots, device=device)
    again = f"mlwright run --resume --dir {folder.path}"
    try:
        with live_progress(console) as progress:
            run_locally(plan, folder, options, progress)
    except KeyboardInterrupt:
        console.print(f"Stopped. Go on with:\n  {again}", markup=False, highlight=False, soft_wrap=True)
        raise
    except InternalError as error:
        if folder.holds_a_run:
            raise type(error)(f"{error} (what is done is kept; go on with: {again})") from error
        raise


def _conclude(folder: RunFolder, console: Console, *, as_json: bool) -> None:
    from mlwright_trainer.report import closing_sentence, load_report

    report = load_report([folder.path])
    if as_json:
        typer.echo(report.model_dump_json(by_alias=True))
        return
    lines = [closing_sentence(report), f"Report: {folder.report}"]
    if folder.best.exists():
        lines.append(f"Best script: {folder.best}")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
