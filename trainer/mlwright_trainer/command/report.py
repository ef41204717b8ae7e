"""`mlwright report`: what a run, or several, came to: a page, or one JSON document."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mlwright_trainer.errors import UserError, refusal
from mlwright_trainer.report import Report, SeveralRuns, closing_sentence, load_report, render_page
from mlwright_trainer.runs.folder import write_whole

STANDARD_OUTPUT = Path("-")
_MARKS = (b'name="generator" content="mlwright"', b'"schemaVersion":')
"""One of these is near the beginning of every report of ours."""


def register(app: typer.Typer) -> None:
    app.command(name="report")(report)


def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="A run's folder; several are seeds of one run.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document instead of the page.")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="The page (the default).")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="File to write, - for standard output.",
            show_default="DIR/report.html, report.html for several, standard output for JSON",
        ),
    ] = None,
) -> None:
    """Say what a run came to, from its ledger alone; also while it runs.

    Several folders are reported together: a run counts as one value, with intervals over runs.
    """
    if as_json and as_html:
        raise UserError("--json and --html: choose one")
    found = load_report(directories)
    target = out or (STANDARD_OUTPUT if as_json else default_page(directories))
    _deliver(_document(found) if as_json else render_page(found), target)
    if not as_json and target != STANDARD_OUTPUT:
        _tell(found, target)


def default_page(directories: list[Path]) -> Path:
    """Where the page goes when nobody says: into the run's folder, or here for several runs."""
    return (directories[0] if len(directories) == 1 else Path()) / "report.html"


def _document(found: Report) -> str:
    return found.model_dump_json(by_alias=True, indent=2) + "\n"


def _deliver(text: str, target: Path) -> None:
    if target == STANDARD_OUTPUT:
        typer.echo(text, nl=False)
        return
    _require_replaceable(target)
    try:
        write_whole(target, text.encode())
    except OSError as error:
        raise UserError(f"{target}: cannot be written ({refusal(error)})") from error


def _require_replaceable(target: Path) -> None:
    """A report may replace an older report, and nothing else."""
    if target.is_dir():
        raise UserError(f"{target}: is a folder; name a file")
    if not os.path.lexists(target):
        return
    try:
        with target.open("rb") as file:
            beginning = file.read(4096)
    except OSError as error:
        raise UserError(f"{target}: cannot be read ({error.strerror})") from error
    if not any(mark in beginning for mark in _MARKS):
        raise UserError(f"{target}: exists and is no report; name another file")


def _tell(found: Report, target: Path) -> None:
    console = Console(soft_wrap=True, highlight=False)
    notes = found.seeds.notes if isinstance(found, SeveralRuns) else found.notes
    sentence = closing_sentence(found)
    told = [note for note in notes if note != sentence]
    for line in (sentence, *told, f"Report: {target}"):
        console.print(line, markup=False)
