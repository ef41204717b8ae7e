"""Choosing the best script: the top few by Reward, then the one that is best on Selection."""

from __future__ import annotations

from collections.abc import Iterable

from mlwright_api.metric_catalog import MetricInfo
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome

from mlwright_trainer.ledger import RolloutRow

BEST = "best"
"""Subject of the sealed grading of a best script's submission: "best", or "best/<task>" with several tasks."""
FINALISTS = 5
"""How many distinct scripts Selection chooses among: few, so that the choice hardly overfits it."""


def best_rollout(rows: Iterable[RolloutRow], metric: MetricInfo) -> RolloutRow | None:
    """The best scored rollout of one task, or None; ties go to the earliest.

    Reward alone would pick the luckiest of thousands, Selection alone too: each sees the other's shortlist.
    """

    def value(row: RolloutRow, split: Split) -> float:
        score = row.score(split)
        return float("-inf") if score is None else metric.sign * score

    distinct: dict[str, RolloutRow] = {}
    for row in sorted(rows, key=lambda row: (row.sampled_at, row.id)):
        if row.outcome is Outcome.SCORED and row.tree is not None:
            distinct.setdefault(row.tree, row)
    finalists = sorted(distinct.values(), key=lambda row: -value(row, Split.REWARD))[:FINALISTS]
    return max(finalists, key=lambda row: value(row, Split.SELECTION), default=None)
