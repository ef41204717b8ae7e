"""Arms over seeds: means with 95 % intervals, and differences paired by seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from mlwright_api.base import ApiModel
from mlwright_api.mltask import Split
from mlwright_trainer.errors import InternalError
from mlwright_trainer.report.model import Estimate
from mlwright_trainer.report.seeds import over_runs

from benchmarks.quickstart.records import ArmRecord
from benchmarks.quickstart.settings import ARMS, Arm

Measure = Callable[[ArmRecord], float | None]

MEASURES: Mapping[str, Measure] = {
    "validFraction": lambda record: record.fresh.valid_fraction,
    "scoreMean": lambda record: record.fresh.score_mean,
    "scoreWithFailures": lambda record: record.fresh.score_with_failures,
    "bestFinal": lambda record: record.best.scores.get(Split.FINAL) if record.best else None,
    "sandboxSeconds": lambda record: record.sandbox_seconds,
    "wallSeconds": lambda record: record.wall_seconds,
}
QUALITY = ("validFraction", "scoreMean", "scoreWithFailures", "bestFinal")
"""Measures whose differences are of interest; all of them are better when higher."""


class Summary(ApiModel):
    """One arm on one task."""

    task: str
    arm: Arm
    seeds: list[int]
    measures: dict[str, Estimate | None]
    """Means over seeds with Student's t intervals (none under two seeds)."""


class PairedDifference(ApiModel):
    """`first` minus `second` within each seed that has both."""

    task: str
    first: Arm
    second: Arm
    seeds: list[int]
    measures: dict[str, Estimate | None]


def summaries(records: Iterable[ArmRecord]) -> list[Summary]:
    """Every arm of which at least one seed is finished."""
    found = list(records)
    return [
        Summary(
            task=task,
            arm=arm,
            seeds=[record.seed for record in same],
            measures={name: over_runs([measure(one) for one in same]) for name, measure in MEASURES.items()},
        )
        for task, arms in ARMS.items()
        for arm in arms
        if (same := [record for record in found if (record.task, record.arm) == (task, arm)])
    ]


def differences(records: Iterable[ArmRecord]) -> list[PairedDifference]:
    """RL minus each control, and shuffled rewards minus the model before any learning (which must be nothing)."""
    found = list(records)
    return [
        difference
        for task, arms in ARMS.items()
        for first, second in [*((Arm.RL, arm) for arm in arms[1:]), (Arm.SHUFFLED, Arm.BEST_OF_N)]
        if (difference := _paired([record for record in found if record.task == task], task, first, second))
    ]


def _paired(records: Sequence[ArmRecord], task: str, first: Arm, second: Arm) -> PairedDifference | None:
    by_arm = {arm: {one.seed: one for one in records if one.arm is arm} for arm in (first, second)}
    seeds = sorted(by_arm[first].keys() & by_arm[second].keys())
    if not seeds:
        return None
    pairs = [(by_arm[first][seed], by_arm[second][seed]) for seed in seeds]
    return PairedDifference(
        task=task,
        first=first,
        second=second,
        seeds=seeds,
        measures={name: over_runs([_minus(MEASURES[name], *pair) for pair in pairs]) for name in QUALITY},
    )


def _minus(measure: Measure, first: ArmRecord, second: ArmRecord) -> float | None:
    a, b = measure(first), measure(second)
    return None if a is None or b is None else a - b


def require_shared_start(records: Iterable[ArmRecord]) -> None:
    """InternalError unless all arms of a seed began with the same weights."""
    starts: dict[int, set[str | None]] = {}
    for record in records:
        starts.setdefault(record.seed, set()).add(record.initial_digest)
    mixed = [seed for seed, digests in starts.items() if len(digests) > 1]
    if mixed:
        raise InternalError(f"arms of seed {mixed[0]} began with different weights")
