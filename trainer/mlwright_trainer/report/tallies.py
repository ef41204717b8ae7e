"""Counting and averaging rollouts: the small sums that every section of the report shares."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome

from mlwright_trainer.ledger import RolloutRow
from mlwright_trainer.report.intervals import bootstrap_mean
from mlwright_trainer.report.model import Estimate
from mlwright_trainer.report.scale import RunScale

Key = TypeVar("Key", bound=Hashable)


def mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def fraction(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def estimate(values: Sequence[float]) -> Estimate | None:
    """Mean of samples with its bootstrap interval; None without values."""
    average = mean(values)
    return None if average is None else Estimate(n=len(values), mean=average, interval=bootstrap_mean(values))


def with_verdict(rows: Iterable[RolloutRow]) -> list[RolloutRow]:
    """Rows that say something about the policy: ended, neither cancelled nor lost by the infrastructure."""
    return [row for row in rows if row.outcome is not None and row.outcome.trained]


def valid(rows: Iterable[RolloutRow]) -> list[RolloutRow]:
    return [row for row in rows if row.outcome is not None and row.outcome.valid]


def by_outcome(rows: Iterable[RolloutRow]) -> dict[Outcome, int]:
    """Counts in the order of the outcome table; absent ones are left out."""
    counts = Counter(row.outcome for row in rows)
    return {outcome: counts[outcome] for outcome in Outcome if counts[outcome]}


def scores(rows: Iterable[RolloutRow], scale: RunScale, split: Split = Split.REWARD) -> list[float]:
    """Scores of valid rows on the run's axis; rows that have none are left out."""
    found = (scale.value(row.task, score) for row in valid(rows) if (score := row.score(split)) is not None)
    return [score for score in found if score is not None and math.isfinite(score)]


def script_key(row: RolloutRow) -> str:
    """Equal for scripts of equal syntax tree; texts that do not parse are told apart as texts."""
    return row.tree or hashlib.sha256((row.script or row.response).encode("utf-8", "replace")).hexdigest()


def distinct_scripts(rows: Iterable[RolloutRow]) -> int:
    return len({script_key(row) for row in rows})


def seconds(rows: Iterable[RolloutRow]) -> list[float]:
    """Execution seconds of rows that a sandbox ran to an end."""
    return [row.status.seconds.execution for row in rows if row.outcome is not None and row.outcome.executed]


def grouped(rows: Iterable[RolloutRow], key: Callable[[RolloutRow], Key]) -> dict[Key, list[RolloutRow]]:
    groups: dict[Key, list[RolloutRow]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics without NaN and infinities, which JSON cannot say."""
    return {name: float(value) for name, value in metrics.items() if math.isfinite(value)}
