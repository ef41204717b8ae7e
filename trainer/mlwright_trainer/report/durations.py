"""Time accounted: every script that was started for training, launched, finished and trained, by duration."""

from __future__ import annotations

from collections.abc import Sequence

from mlwright_api.rollout import Outcome

from mlwright_trainer.ledger import RolloutRow, WindowRow
from mlwright_trainer.report.model import DurationBucket, Durations

EDGES = tuple(digit * 10.0**power for power in range(-2, 6) for digit in (1, 2, 5))
"""Seconds; buckets are [edge, next edge), the first from 0 and the last without end."""


def duration_report(rows: Sequence[RolloutRow], windows: Sequence[WindowRow], *, published: int) -> Durations:
    """Account for the rows of purpose Train; `published` is how many updates are made."""
    started = [row for row in rows if row.launched_at is not None and not _closed_without_sandbox(row)]
    ended = [row for row in started if row.outcome is not None]
    buckets = [bucket for low, high in _bounds(ended) if (bucket := _bucket(ended, low, high, published))]
    masses = [window.missing_mass for window in windows if window.missing_mass is not None]
    return Durations(
        buckets=buckets,
        launched=len(started),
        finished=sum(map(_finished, ended)),
        trained=sum(_trained(row, published) for row in ended),
        cancelled=sum(row.outcome is Outcome.CANCELLED for row in ended),
        infrastructure_failed=sum(row.outcome is Outcome.INFRASTRUCTURE_FAILED for row in ended),
        running=len(started) - len(ended),
        not_launched=len(rows) - len(started),
        missing_mass=max(masses, default=None),
    )


def _closed_without_sandbox(row: RolloutRow) -> bool:
    return row.outcome is not None and row.outcome.trained and not row.outcome.executed


def _finished(row: RolloutRow) -> bool:
    return row.outcome is not None and row.outcome.executed


def _trained(row: RolloutRow, published: int) -> bool:
    return row.batch is not None and row.batch < published


def _bounds(rows: Sequence[RolloutRow]) -> list[tuple[float, float | None]]:
    """The buckets from the shortest to the longest duration, empty ones between them included."""
    durations = [row.status.seconds.execution for row in rows]
    if not durations:
        return []
    first = max((index for index, edge in enumerate(EDGES) if edge <= min(durations)), default=-1)
    last = max((index for index, edge in enumerate(EDGES) if edge <= max(durations)), default=-1)
    return [
        (EDGES[index] if index >= 0 else 0.0, EDGES[index + 1] if index + 1 < len(EDGES) else None)
        for index in range(first, last + 1)
    ]


def _bucket(rows: Sequence[RolloutRow], low: float, high: float | None, published: int) -> DurationBucket:
    inside = [
        row
        for row in rows
        if low <= row.status.seconds.execution and (high is None or row.status.seconds.execution < high)
    ]
    return DurationBucket(
        low=low,
        high=high,
        launched=len(inside),
        finished=sum(map(_finished, inside)),
        trained=sum(_trained(row, published) for row in inside),
        cancelled=sum(row.outcome is Outcome.CANCELLED for row in inside),
        infrastructure_failed=sum(row.outcome is Outcome.INFRASTRUCTURE_FAILED for row in inside),
    )
