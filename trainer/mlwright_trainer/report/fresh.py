"""Fresh, awaited samples before and after: the comparison that a run is judged by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from mlwright_api.mltask import Direction, Split
from mlwright_api.results import Verdict

from mlwright_trainer.ledger import RolloutRow, SealedScore
from mlwright_trainer.report.intervals import bootstrap_difference, bootstrap_mean, newcombe, wilson
from mlwright_trainer.report.model import Difference, Estimate, Fresh, FreshSamples, Range, ScoreHistogram
from mlwright_trainer.report.scale import RunScale
from mlwright_trainer.report.tallies import (
    by_outcome,
    distinct_scripts,
    estimate,
    fraction,
    grouped,
    mean,
    valid,
    with_verdict,
)
from mlwright_trainer.report.words import compared, with_span

Sealed = Mapping[str, SealedScore]
"""Reads of Final by rollout."""
_BINS = 24
_ACCEPTED = (Verdict.VALID, Verdict.TRIVIAL)


@dataclass(frozen=True)
class Group:
    """Samples of one version with their values on the split that is compared."""

    rows: Sequence[RolloutRow]
    scores: Sequence[float]
    """Of valid samples, on the run's axis."""
    with_failures: Sequence[float] | None
    """Of all samples, failures at the baseline; None where a baseline is unknown."""
    summary: FreshSamples

    @property
    def trials(self) -> tuple[int, int]:
        return self.summary.valid, self.summary.n

    @property
    def failures(self) -> int:
        return self.summary.n - len(self.scores)


def fresh_report(rows: Sequence[RolloutRow], sealed: Sequence[SealedScore], scale: RunScale) -> Fresh:
    """Compare the rows of purposes Before and After; Evaluation rounds lie between."""
    final = {score.rollout: score for score in sealed if score.subject == score.rollout}
    by_purpose = grouped(rows, lambda row: row.purpose)
    before_rows, after_rows = by_purpose.get("Before", []), by_purpose.get("After", [])
    split = compared_split(before_rows, after_rows, final)
    before, after = (
        _group(rows, final, scale, split) if rows else None for rows in (before_rows, after_rows)
    )
    rounds = grouped(by_purpose.get("Evaluation", []), lambda row: row.round)
    return Fresh(
        before=before.summary if before else None,
        after=after.summary if after else None,
        difference=_difference(before, after, scale) if before and after else None,
        histogram=_histogram(before, after),
        evaluations=[_group(rounds[number], {}, scale, Split.REWARD).summary for number in sorted(rounds)],
    )


def compared_split(before: Sequence[RolloutRow], after: Sequence[RolloutRow], final: Sealed) -> Split:
    """Final if every valid sample of both groups was read on it; else Reward, for both."""
    asked = [row.id for row in valid([*before, *after])]
    return Split.FINAL if final and all(id in final for id in asked) else Split.REWARD


def _group(rows: Sequence[RolloutRow], final: Sealed, scale: RunScale, split: Split) -> Group:
    judged = with_verdict(rows)
    read = {each: _reader(each, final, scale) for each in Split}
    scores = _scores(judged, read[split])
    with_failures = _with_failures(judged, read[split], scale)
    splits = {each: found for each in Split if (found := estimate(_scores(judged, read[each])))}
    return Group(
        rows=rows,
        scores=scores,
        with_failures=with_failures,
        summary=_summary(rows, scores, with_failures, splits, split),
    )


def _summary(
    rows: Sequence[RolloutRow],
    scores: Sequence[float],
    with_failures: Sequence[float] | None,
    splits: dict[Split, Estimate],
    split: Split,
) -> FreshSamples:
    judged = with_verdict(rows)
    good = len(valid(judged))
    ended = sum(row.outcome is not None for row in rows)
    return FreshSamples(
        policy_version=max((row.policy_version for row in rows), default=None),
        n=len(judged),
        pending=len(rows) - ended,
        excluded=ended - len(judged),
        valid=good,
        valid_fraction=fraction(good, len(judged)),
        valid_interval=wilson(good, len(judged)),
        score_split=split,
        score_mean=mean(scores),
        interval=bootstrap_mean(scores),
        score_with_failures=mean(with_failures or ()),
        score_with_failures_interval=bootstrap_mean(with_failures or ()) if scores else None,
        splits=splits,
        distinct_scripts=distinct_scripts(judged),
        by_outcome=by_outcome(rows),
    )


Read = Callable[[RolloutRow], float | None]


def _reader(split: Split, final: Sealed, scale: RunScale) -> Read:
    """How one sample's score on a split is found, on the run's axis; None where it failed or was not graded."""

    def read(row: RolloutRow) -> float | None:
        if row.outcome is None or not row.outcome.valid:
            return None
        raw = _final(row, final) if split is Split.FINAL else row.score(split)
        value = None if raw is None else scale.value(row.task, raw)
        return value if value is not None and math.isfinite(value) else None

    return read


def _final(row: RolloutRow, final: Sealed) -> float | None:
    found = final.get(row.id)
    return found.score if found is not None and found.verdict in _ACCEPTED else None


def _scores(rows: Sequence[RolloutRow], read: Read) -> list[float]:
    return [score for row in rows if (score := read(row)) is not None]


def _with_failures(rows: Sequence[RolloutRow], read: Read, scale: RunScale) -> list[float] | None:
    values = [score if (score := read(row)) is not None else scale.failure(row.task) for row in rows]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else None


def _difference(before: Group, after: Group, scale: RunScale) -> Difference | None:
    if not before.summary.n or not after.summary.n:
        return None
    first, last = before.summary, after.summary
    if first.pending or last.pending:
        return Difference(sentence=_so_far(first, last))
    either_valid = bool(before.scores or after.scores)
    return Difference(
        valid_fraction=_minus(last.valid_fraction, first.valid_fraction),
        valid_interval=(valid_interval := newcombe(before.trials, after.trials)),
        score_mean=_minus(last.score_mean, first.score_mean),
        interval=(interval := bootstrap_difference(before.scores, after.scores)),
        score_with_failures=_minus(last.score_with_failures, first.score_with_failures),
        score_with_failures_interval=bootstrap_difference(
            before.with_failures or (), after.with_failures or ()
        )
        if either_valid
        else None,
        sentence=_sentence(first, last, (valid_interval, interval), scale),
    )


def _so_far(first: FreshSamples, last: FreshSamples) -> str:
    """What is known while samples are open: no change is claimed of those that happened to end first."""
    open_groups = [group for group in (first, last) if group.pending]
    ended, total = (sum(values) for values in zip(*((g.ended, g.total) for g in open_groups), strict=True))
    return (
        f"Fresh samples are still open: so far ({ended:,} of {total:,}) the valid fraction is "
        f"{with_span((last.valid_fraction, last.valid_interval))} after learning, "
        f"{with_span((first.valid_fraction, first.valid_interval))} before. Those that end first may be the "
        "fast ones: no change is claimed until all have ended."
    )


def _minus(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


def _sentence(
    first: FreshSamples, last: FreshSamples, intervals: tuple[Range | None, Range | None], scale: RunScale
) -> str:
    described = scale.described
    parts = [
        compared(
            "the valid fraction",
            (first.valid_fraction, first.valid_interval),
            (last.valid_fraction, last.valid_interval),
            intervals[0],
            direction=Direction.MAXIMIZE,
        ),
        compared(
            f"the mean {described.title} of valid samples on {last.score_split}",
            (first.score_mean, first.interval),
            (last.score_mean, last.interval),
            intervals[1],
            direction=described.direction,
        ),
    ]
    text = "; ".join(part for part in parts if part)
    return f"{text[0].upper()}{text[1:]}." if text else "Nothing can be compared yet."


def _histogram(before: Group | None, after: Group | None) -> ScoreHistogram | None:
    groups = [group for group in (before, after) if group is not None]
    values = [score for group in groups for score in group.scores]
    if not values:
        return None
    # A few wild scores (a log loss of 30) must not squeeze all others into one bin: they share the outer bins.
    low, high = np.percentile(values, [1, 99])
    low, high = (low, high) if high > low else (low - 0.5, high + 0.5)
    edges = np.linspace(low, high, _BINS + 1)
    return ScoreHistogram(
        edges=[float(edge) for edge in edges],
        before=_binned(before, edges),
        after=_binned(after, edges),
        failures_before=before.failures if before else 0,
        failures_after=after.failures if after else 0,
    )


def _binned(group: Group | None, edges: np.ndarray) -> list[int]:
    if group is None:
        return [0] * (len(edges) - 1)
    counts, _ = np.histogram(np.clip(group.scores, edges[0], edges[-1]), bins=edges)
    return [int(count) for count in counts]
