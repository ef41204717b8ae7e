"""`mlwright show`: one rollout, from the prompt's kind to the isolation receipt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from mlwright_api.mltask import Split
from mlwright_api.results import MILESTONES, Receipt
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from mlwright_trainer.command.options import JsonOption, RunArgument
from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import LedgerReader, RolloutRow, SealedScore
from mlwright_trainer.report.visible import visible
from mlwright_trainer.report.words import duration, score
from mlwright_trainer.runs.best import BEST
from mlwright_trainer.runs.folder import open_run


def register(app: typer.Typer) -> None:
    app.command(name="show")(show)


@dataclass(frozen=True)
class Shown:
    """A rollout as it is shown; `scores` holds only what was asked for."""

    row: RolloutRow
    scores: dict[Split, float]
    final: SealedScore | None


def show(
    directory: RunArgument,
    rollout: Annotated[
        str,
        typer.Argument(
            metavar="ROLLOUT",
            help="Its id, the beginning of it, or best (best/TASK where there are several).",
        ),
    ],
    selection: Annotated[
        bool,
        typer.Option(
            "--selection", help="Show the Selection score too: who looks at it should not choose by it."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one rollout: prompt kind, parent, script, outcome, reason, scores, milestones, times, output, receipt."""
    with LedgerReader(open_run(directory).ledger) as ledger:
        shown = find(ledger, rollout, selection=selection)
    if as_json:
        typer.echo(json.dumps(document(shown)))
    else:
        Console(highlight=False).print(view(shown))


def find(ledger: LedgerReader, name: str, *, selection: bool) -> Shown:
    """The rollout that `name` means. Raises UserError where it means none, or several."""
    sealed = {each.subject: each for each in ledger.sealed()}
    id = sealed[name].rollout if name in sealed else _only_id(ledger, name, subjects=list(sealed))
    row = ledger.rollout(id)
    scores = {
        split: value
        for split, value in row.status.scores.items()
        if selection or split is not Split.SELECTION
    }
    of_the_best = [each for each in ledger.sealed() if each.subject.startswith(BEST) and each.rollout == id]
    final = of_the_best[0] if of_the_best else sealed.get(id)
    return Shown(row, scores, final)


def _only_id(ledger: LedgerReader, name: str, *, subjects: Sequence[str]) -> str:
    found = ledger.ids_beginning(name) if name else []
    if name in found or len(found) == 1:
        return name if name in found else found[0]
    if not found:
        best = [subject for subject in subjects if subject.startswith(BEST)]
        hint = "`mlwright ledger list DIR` names them all"
        if name == BEST:
            hint = f"write {' or '.join(best)}" if best else _no_best(ledger)
        raise UserError(f"no rollout {name!r}: {hint}")
    raise UserError(f"{name!r} could be {', '.join(found)}, ...: write more of it")


def _no_best(ledger: LedgerReader) -> str:
    if not ledger.closed:
        return "the run is not sealed yet"
    if any(row.outcome is not None and row.outcome.valid for row in ledger.rollouts()):
        return "every valid script of the run was trivial"
    return "no script of the run was valid; `mlwright ledger list DIR` names the reasons"


def document(shown: Shown) -> dict[str, Any]:
    """The rollout as JSON values."""
    row, status = shown.row, shown.row.status
    final = shown.final
    return {
        "rollout": row.id,
        "purpose": row.purpose,
        "round": row.round,
        "position": row.position,
        "task": row.task,
        "promptKind": row.prompt_kind,
        "parent": row.parent,
        "policyVersion": row.policy_version,
        "responseTokens": row.response_tokens,
        "response": row.response,
        "script": row.script,
        "tree": row.tree,
        "outcome": status.outcome,
        "reason": status.reason,
        "exitCode": status.exit_code,
        "attempt": status.attempt,
        "scores": {str(split): value for split, value in shown.scores.items()},
        "final": None
        if final is None
        else {"verdict": final.verdict, "score": final.score, "interval": final.interval},
        "reward": row.reward,
        "batch": row.batch,
        "milestones": status.milestones,
        "seconds": status.seconds.model_dump(by_alias=True),
        "sampledAt": row.sampled_at,
        "launchedAt": row.launched_at,
        "closedAt": row.closed_at,
        "window": row.window,
        "windowOffset": row.window_offset,
        "outputTail": status.output_tail,
        "isolation": status.isolation.model_dump(mode="json", by_alias=True) if status.isolation else None,
    }


def view(shown: Shown) -> RenderableType:
    """The rollout for a terminal. Scripts and output are hostile: nothing in them reaches the terminal raw."""
    row = shown.row
    parts: list[RenderableType] = [_facts(shown)]
    if row.script is not None:
        code = Syntax(visible(row.script), "python", line_numbers=True, word_wrap=True)
        parts.append(Panel(code, title="script", title_align="left"))
    else:
        parts.append(
            Panel(Text(visible(row.response)), title="response, no script in it", title_align="left")
        )
    if row.status.output_tail:
        parts.append(
            Panel(Text(visible(row.status.output_tail)), title="end of its output", title_align="left")
        )
    return Group(*parts)


def _facts(shown: Shown) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(shown):
        if value:
            table.add_row(name, Text(visible(value)))
    return table


def _lines(shown: Shown) -> list[tuple[str, str]]:
    row, status = shown.row, shown.row.status
    return [
        ("rollout", row.id),
        ("outcome", str(status.outcome) if status.outcome else "still open"),
        ("reason", status.reason),
        ("scores", ", ".join(f"{split} {score(value)}" for split, value in shown.scores.items())),
        ("Final", _final(shown.final)),
        ("reward", "" if row.reward is None else score(row.reward)),
        ("task", row.task),
        ("prompt", row.prompt_kind if row.parent is None else f"{row.prompt_kind} {row.parent}"),
        (
            "sampled",
            f"{row.purpose} round {row.round}, policy version {row.policy_version}, {row.response_tokens} tokens",
        ),
        ("trained", "" if row.batch is None else f"in update {row.batch}"),
        ("milestones", ", ".join(name for name in MILESTONES if name in status.milestones)),
        ("seconds", _seconds(row)),
        ("attempt", str(status.attempt) if status.attempt > 1 else ""),
        ("exit code", "" if status.exit_code is None else str(status.exit_code)),
        ("isolation", _receipt(status.isolation)),
    ]


def _final(final: SealedScore | None) -> str:
    if final is None:
        return ""
    interval = f" [{score(final.interval[0])}, {score(final.interval[1])}]" if final.interval else ""
    return (
        f"{score(final.score)}{interval}" if final.score is not None else f"{final.verdict}: {final.reason}"
    )


def _seconds(row: RolloutRow) -> str:
    if row.outcome is None or row.launched_at is None:
        return ""
    seconds = row.status.seconds
    named = (
        ("execution", seconds.execution),
        ("cpu", seconds.cpu),
        ("starting", seconds.starting),
        ("queued", seconds.queued),
        ("grading", seconds.grading),
    )
    return ", ".join(f"{name} {duration(value)}" for name, value in named)


def _receipt(receipt: Receipt | None) -> str:
    if receipt is None:
        return ""
    broken = [check.name for check in receipt.checks if not check.locked]
    held = f"{len(receipt.checks) - len(broken)} of {len(receipt.checks)} checks held"
    return f"{receipt.backend}, {held}" + (f"; not: {', '.join(broken)}" if broken else "")
