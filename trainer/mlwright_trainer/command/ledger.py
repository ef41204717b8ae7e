"""`mlwright ledger`: list a run's rollouts, a line each, and take the ledger elsewhere."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from mlwright_api.rollout import Outcome

from mlwright_trainer.command.options import JsonOption, RunArgument
from mlwright_trainer.errors import UserError, refusal
from mlwright_trainer.ledger import LedgerReader, RolloutRow
from mlwright_trainer.ledger.export import export_lines, export_sqlite
from mlwright_trainer.report.visible import visible
from mlwright_trainer.report.words import score
from mlwright_trainer.runs.folder import open_run

app = typer.Typer(help="Look into a run's ledger.", no_args_is_help=True)

_REASON_CHARACTERS = 100


class Format(StrEnum):
    """What an exported ledger is written as."""

    SQLITE = "sqlite"
    JSONL = "jsonl"


class PurposeName(StrEnum):
    """What a rollout was sampled for."""

    TRAIN = "Train"
    BEFORE = "Before"
    AFTER = "After"
    EVALUATION = "Evaluation"


@app.command(name="list")
def list_rollouts(
    directory: RunArgument,
    outcome: Annotated[list[Outcome] | None, typer.Option(help="Only this outcome; repeatable.")] = None,
    purpose: Annotated[PurposeName | None, typer.Option(help="Only rollouts sampled for this.")] = None,
    task: Annotated[str | None, typer.Option(help="Only of this task.")] = None,
    update: Annotated[int | None, typer.Option(min=0, help="Only of this update's batch.")] = None,
    still_open: Annotated[bool, typer.Option("--open", help="Only those that have not ended.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List rollouts, a line each: id, purpose and round, task, prompt, outcome, reward, score, seconds, reason."""
    with LedgerReader(open_run(directory).ledger) as ledger:
        rows = ledger.rollouts(None if purpose is None else purpose.value)
    chosen = [
        row
        for row in sorted(rows, key=lambda row: (row.sampled_at, row.round, row.position))
        if (not outcome or row.outcome in outcome)
        and (task is None or row.task == task)
        and (update is None or row.batch == update)
        and (not still_open or row.outcome is None)
    ]
    if as_json:
        typer.echo(json.dumps([_values(row) for row in chosen]))
        return
    for row in chosen:
        typer.echo(line(row))


def line(row: RolloutRow) -> str:
    """A rollout in one line; nothing in it can break the line or steer a terminal."""
    seconds = row.status.seconds.execution
    parts = (
        f"{row.id:<24}",
        f"{row.purpose + ' ' + str(row.round):<10}",
        f"{row.task:<14}",
        f"{row.prompt_kind:<8}",
        f"{row.outcome or 'open':<20}",
        f"{score(row.reward):>8}",
        f"{score(row.score()):>8}",
        f"{seconds:>8.2f} s" if row.outcome is not None and row.launched_at is not None else " " * 10,
        row.status.reason[:_REASON_CHARACTERS],
    )
    return visible(" ".join(parts).rstrip(), keep="")


def _values(row: RolloutRow) -> dict[str, object]:
    return {
        "rollout": row.id,
        "purpose": row.purpose,
        "round": row.round,
        "task": row.task,
        "promptKind": row.prompt_kind,
        "parent": row.parent,
        "policyVersion": row.policy_version,
        "outcome": row.outcome,
        "reason": row.status.reason,
        "reward": row.reward,
        "score": row.score(),
        "executionSeconds": row.status.seconds.execution,
        "batch": row.batch,
    }


@app.command(name="export")
def export(
    directory: RunArgument,
    out: Annotated[
        Path, typer.Option("--out", help="File to write; it must not exist. - writes JSON lines here.")
    ],
    format: Annotated[
        Format | None, typer.Option(help="What to write.", show_default="by the file's name, else sqlite")
    ] = None,
) -> None:
    """Copy the ledger whole, also while the run goes on: another SQLite file, or a line of JSON a row."""
    ledger = open_run(directory).ledger
    if _format(out, format) is Format.SQLITE:
        export_sqlite(ledger, out)
    elif out == Path("-"):
        for text in export_lines(ledger):
            typer.echo(text)
    else:
        _write_lines(ledger, out)


def _format(out: Path, asked: Format | None) -> Format:
    named = Format.JSONL if out == Path("-") or out.suffix in (".jsonl", ".ndjson") else Format.SQLITE
    chosen = asked or named
    if chosen is Format.SQLITE and out == Path("-"):
        raise UserError("--out -: only JSON lines can go to standard output; use --format jsonl")
    return chosen


def _write_lines(ledger: Path, out: Path) -> None:
    if os.path.lexists(out):
        raise UserError(f"{out}: exists already; name a file that does not")
    unfinished = out.with_name(f".{out.name}.unfinished")
    try:
        with unfinished.open("w", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in export_lines(ledger))
        unfinished.rename(out)
    except OSError as error:
        if out.parent.is_dir():
            unfinished.unlink(missing_ok=True)
        raise UserError(f"{out}: cannot be written ({refusal(error)})") from error
