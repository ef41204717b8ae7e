"""Duration weights: what a batch that was cut off by the clock does to slow scripts, and how it is undone.

`DurationAware` is the weight of arXiv 2509.01684, `InverseInclusion` is ours; both are compared with the
truth in docs/explanation/time.md. Sums are exact (`fsum`), so that a row's weight does not depend on the
rows' order.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from mlwright_api.trainingrun import DurationWeighting, WeightingMode

from mlwright_trainer.errors import UserError
from mlwright_trainer.exchange import Batch, TrainingRow, Window
from mlwright_trainer.rewards.survival import survival_after


@dataclass(frozen=True)
class DurationWeights:
    """One weight a row, in the batch's order, of mean 1.

    `missing_mass` is the estimated share of launches that would take longer than the window (None
    without one); `clipped` counts the rows held at `maxWeight`.
    """

    values: tuple[float, ...]
    effective_sample_size: float
    missing_mass: float | None
    clipped: int


def duration_weights(batch: Batch, spec: DurationWeighting) -> DurationWeights:
    """Weights for the rows of `batch`; UserError for InverseInclusion without a window."""
    values, clipped = capped_to_mean_one(_raw_weights(batch, spec.mode), spec.max_weight)
    return DurationWeights(
        values=values,
        effective_sample_size=effective_sample_size(values),
        missing_mass=None if batch.window is None else missing_mass(batch.window),
        clipped=clipped,
    )


def _raw_weights(batch: Batch, mode: WeightingMode) -> list[float]:
    if mode is WeightingMode.DURATION_AWARE:
        return _duration_aware(batch.rows)
    if mode is WeightingMode.INVERSE_INCLUSION:
        return _inverse_inclusion(batch)
    return [1.0] * len(batch.rows)


def _duration_aware(rows: Sequence[TrainingRow]) -> list[float]:
    """Execution seconds over their mean in the batch, task by task; rows without a sandbox weigh 1."""
    by_task: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row.execution_seconds is not None:
            by_task[row.task].append(row.execution_seconds)
    means = {task: math.fsum(seconds) / len(seconds) for task, seconds in by_task.items()}
    return [
        1.0
        if row.execution_seconds is None or means[row.task] <= 0
        else row.execution_seconds / means[row.task]
        for row in rows
    ]


def _inverse_inclusion(batch: Batch) -> list[float]:
    if batch.window is None:
        raise UserError(
            "algorithm.durationWeighting.mode InverseInclusion needs collection.mode Window: "
            f"batch {batch.number} has no window to estimate inclusion from"
        )
    inclusion = Inclusion(batch.window)
    return [
        1.0 if row.execution_seconds is None else 1 / inclusion.probability(row.execution_seconds)
        for row in batch.rows
    ]


class Inclusion:
    """p(d): the share of all launches of a window, cancelled ones too, after which d seconds fitted.

    Never 0: a row that is in the batch did fit once, so the smallest value is one launch's share.
    """

    def __init__(self, window: Window) -> None:
        self._room = sorted(window.seconds - launch.offset for launch in window.launches)

    def probability(self, seconds: float) -> float:
        launched = len(self._room)
        fitting = launched - bisect_left(self._room, seconds)
        return max(fitting, 1) / max(launched, 1)


LARGEST_MISSING_MASS = 0.05
"""Share of launches beyond the window above which weights are refused: they cannot repair it."""


def missing_mass(window: Window, *earlier: Window) -> float:
    """Estimated share of launches that take longer than `window`, by Kaplan-Meier; 0 without launches.

    Cancelled launches are censored. `earlier` windows add launches of the same kind to the estimate;
    give them only while the policy has hardly moved. Where nothing was watched up to the window's
    length, what was still running at the longest time watched counts as missing, which errs on the safe
    side.
    """
    launches = [launch for each in (window, *earlier) for launch in each.launches]
    return survival_after(launches, window.seconds)


def require_small_missing_mass(
    window: Window, *earlier: Window, largest: float = LARGEST_MISSING_MASS
) -> float:
    """The missing mass, or UserError above `largest`: rows that never enter a batch cannot be weighted."""
    mass = missing_mass(window, *earlier)
    if mass > largest:
        raise UserError(
            f"about {mass:.0%} of the scripts would take longer than collection.windowSeconds "
            f"({window.seconds:g}), more than the {largest:.0%} that an update may miss; no weight repairs "
            "that. "
            "Make the window longer, lower the task's limits.timeoutSeconds, or use mode Continuous"
        )
    return mass


def capped_to_mean_one(raw: Sequence[float], cap: float) -> tuple[tuple[float, ...], int]:
    """Scale `raw` by one factor so that min(factor x raw, cap) has mean 1; also how many rows are at the cap.

    Clipping first and normalizing after would let weights leave the cap again, and the other way round
    would lose the mean. Where too few rows are above 0 for that (cap x rows above 0 < rows) the mean
    wins over the cap.
    """
    count, positive = len(raw), sorted((weight for weight in raw if weight > 0), reverse=True)
    if not positive:
        return (1.0,) * count, 0
    if cap * len(positive) <= count:
        share = count / len(positive)
        return tuple(share if weight > 0 else 0.0 for weight in raw), len(positive)
    held = _rows_at_cap(positive, count, cap)
    factor = (count - cap * held) / math.fsum(positive[held:])
    level = positive[held - 1] if held else math.inf
    return tuple(cap if weight >= level else weight * factor for weight in raw), held


def _rows_at_cap(descending: Sequence[float], count: int, cap: float) -> int:
    """How many of the largest weights end at the cap: the fewest for which no other one passes it."""
    last = len(descending) - 1
    for held in range(last):
        factor = (count - cap * held) / math.fsum(descending[held:])
        if descending[held] * factor <= cap:
            return held
    return last


def effective_sample_size(weights: Sequence[float]) -> float:
    """(sum w)^2 / sum w^2: how many equally weighted rows would be as noisy; 0 for no rows."""
    squares = math.fsum(weight * weight for weight in weights)
    return math.fsum(weights) ** 2 / squares if squares > 0 else 0.0
