"""The run update by update: what each batch was like and what the learner measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from mlwright_trainer.ledger import RolloutRow, UpdateRow
from mlwright_trainer.report.folder import RunRecord
from mlwright_trainer.report.intervals import t_interval, wilson
from mlwright_trainer.report.model import UpdateReport
from mlwright_trainer.report.scale import RunScale
from mlwright_trainer.report.tallies import (
    by_outcome,
    distinct_scripts,
    finite,
    fraction,
    grouped,
    mean,
    scores,
    seconds,
    valid,
)

Family = Callable[[RolloutRow], str]


def update_reports(record: RunRecord, family: Family) -> list[UpdateReport]:
    """One report a batch, published or not, in order."""
    batches = grouped((row for row in record.rollouts if row.batch is not None), lambda row: row.batch)
    published = {update.version - 1: update for update in record.updates if update.version > 0}
    return [
        _update_report(
            number,
            batches.get(number, []),
            published.get(number),
            record.effective_sizes.get(number),
            scale=record.scale,
            family=family,
        )
        for number in sorted(record.batch_sizes)
    ]


def _update_report(
    number: int,
    rows: Sequence[RolloutRow],
    update: UpdateRow | None,
    effective: float | None,
    *,
    scale: RunScale,
    family: Family,
) -> UpdateReport:
    rewards = [row.reward for row in rows if row.reward is not None]
    found, good = scores(rows, scale), len(valid(rows))
    return UpdateReport(
        update=number,
        rows=len(rows),
        reward_mean=mean(rewards),
        reward_interval=t_interval(rewards),
        valid_fraction=fraction(good, len(rows)),
        valid_interval=wilson(good, len(rows)),
        score_mean=mean(found),
        score_interval=t_interval(found),
        score_best=max(found, key=scale.rank, default=None),
        execution_seconds_mean=mean(seconds(rows)),
        effective_sample_size=_effective(rows, update, effective),
        distinct_scripts=distinct_scripts(rows),
        staleness_mean=mean([float(number - row.policy_version) for row in rows]) or 0.0,
        by_outcome=by_outcome(rows),
        by_family=_counted(map(family, rows)),
        metrics=finite(update.metrics) if update else {},
        published=update is not None,
    )


def _effective(rows: Sequence[RolloutRow], update: UpdateRow | None, computed: float | None) -> float:
    """As the learner measured it, else as its weights give it, else every row alike."""
    measured = finite(update.metrics).get("effectiveSampleSize") if update else None
    return next((value for value in (measured, computed) if value is not None), float(len(rows)))


def _counted(names: Sequence[str] | map[str]) -> Mapping[str, int]:
    return dict(sorted(Counter(names).items()))
