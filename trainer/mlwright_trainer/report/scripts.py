"""What the scripts are: model families, prompt kinds, milestones, reasons of failure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from mlwright_api.results import MILESTONES
from mlwright_api.rollout import Outcome

from mlwright_trainer.collection.families import NONE, model_family
from mlwright_trainer.ledger import RolloutRow
from mlwright_trainer.report.intervals import wilson
from mlwright_trainer.report.model import (
    FamilyReport,
    MilestoneReach,
    PromptKindReport,
    ReasonReport,
    Scripts,
)
from mlwright_trainer.report.scale import RunScale
from mlwright_trainer.report.tallies import (
    distinct_scripts,
    fraction,
    grouped,
    mean,
    scores,
    script_key,
    seconds,
    valid,
    with_verdict,
)

NO_SCRIPT = "no script"
NO_KNOWN_MODEL = "no known model"
_REASONS = 12
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


class Families:
    """The model family of each rollout's script, looked at once a syntax tree."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def __call__(self, row: RolloutRow) -> str:
        if row.script is None:
            return NO_SCRIPT
        key = script_key(row)
        if key not in self._known:
            found = model_family(row.script)
            self._known[key] = NO_KNOWN_MODEL if found == NONE else found
        return self._known[key]


def scripts_report(rows: Sequence[RolloutRow], scale: RunScale, family: Families) -> Scripts:
    """How varied the training scripts are, the most frequent family first."""
    judged = with_verdict(rows)
    groups = sorted(grouped(judged, family).items(), key=lambda item: (-len(item[1]), item[0]))
    return Scripts(
        total=len(judged),
        distinct=distinct_scripts(judged),
        families=[
            FamilyReport(
                name=name,
                rollouts=len(members),
                valid=len(valid(members)),
                score_mean=mean(scores(members, scale)),
                execution_seconds_mean=mean(seconds(members)),
            )
            for name, members in groups
        ],
    )


def prompt_kind_reports(rows: Sequence[RolloutRow], scale: RunScale) -> list[PromptKindReport]:
    """Drafts and improvements apart; improvements also against their parents."""
    by_id = {row.id: row for row in rows}
    groups = grouped(with_verdict(rows), lambda row: row.prompt_kind)
    return [_prompt_kind(groups[kind], by_id, scale) for kind in sorted(groups)]


def _prompt_kind(
    rows: Sequence[RolloutRow], by_id: dict[str, RolloutRow], scale: RunScale
) -> PromptKindReport:
    good = valid(rows)
    pairs = [pair for row in good if (pair := _beside_parent(row, by_id, scale)) is not None]
    return PromptKindReport(
        kind=rows[0].prompt_kind,
        rollouts=len(rows),
        valid=len(good),
        valid_fraction=fraction(len(good), len(rows)),
        valid_interval=wilson(len(good), len(rows)),
        score_mean=mean(scores(rows, scale)),
        better_than_parent=sum(child > parent for child, parent in pairs),
        compared=len(pairs),
    )


def _beside_parent(
    row: RolloutRow, by_id: dict[str, RolloutRow], scale: RunScale
) -> tuple[float, float] | None:
    """Ranks of a child and its parent, larger being better; None where one has no score."""
    parent = by_id.get(row.parent or "")
    if parent is None:
        return None
    pair = [scores([each], scale) for each in (row, parent)]
    return (scale.rank(pair[0][0]), scale.rank(pair[1][0])) if all(pair) else None


def milestone_reaches(rows: Sequence[RolloutRow]) -> list[MilestoneReach]:
    """Fresh samples before and after where there are both, else the first and the last third of the batches."""
    by_purpose = grouped(rows, lambda row: row.purpose)
    if by_purpose.get("Before") and by_purpose.get("After"):
        groups: dict[str, Sequence[RolloutRow]] = {
            "Fresh, before": by_purpose["Before"],
            f"Fresh, after{_so_far(by_purpose['After'])}": by_purpose["After"],
        }
    else:
        groups = _thirds(by_purpose.get("Train", []))
    return [reach for label, members in groups.items() if (reach := _reach(label, members)).n]


def _so_far(rows: Sequence[RolloutRow]) -> str:
    return ", so far" if any(row.outcome is None for row in rows) else ""


def _thirds(rows: Sequence[RolloutRow]) -> dict[str, Sequence[RolloutRow]]:
    batched = [row for row in rows if row.batch is not None]
    last = max((row.batch for row in batched if row.batch is not None), default=0)
    if last < 2:
        return {"All updates": batched or rows}
    third = (last + 1) // 3
    return {
        f"First {third} updates": [row for row in batched if (row.batch or 0) < third],
        f"Last {third} updates": [row for row in batched if (row.batch or 0) > last - third],
    }


def _reach(label: str, rows: Sequence[RolloutRow]) -> MilestoneReach:
    executed = [row for row in rows if row.outcome is not None and row.outcome.executed]
    counts = Counter[str](milestone for row in executed for milestone in set(row.status.milestones))
    return MilestoneReach(label=label, n=len(executed), reached={name: counts[name] for name in MILESTONES})


def reason_reports(rows: Sequence[RolloutRow]) -> list[ReasonReport]:
    """The most frequent reasons, alike but for numbers counted together."""
    failed = [
        row
        for row in rows
        if row.outcome is not None and row.outcome is not Outcome.SCORED and row.status.reason
    ]
    groups = grouped(failed, lambda row: (row.outcome, _NUMBER.sub("#", row.status.reason)))
    frequent = sorted(groups.values(), key=len, reverse=True)[:_REASONS]
    return [
        ReasonReport(
            outcome=members[0].outcome or Outcome.ERROR,
            reason=members[0].status.reason,
            count=len(members),
            example=members[0].id,
        )
        for members in frequent
    ]
