"""Several runs together: a run counts as one value, differences are taken within runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlwright_api.mltask import Direction, Split

from mlwright_trainer.report.intervals import t_interval
from mlwright_trainer.report.model import (
    Estimate,
    FreshSamples,
    RunReport,
    RunState,
    SeedFresh,
    SeedSummary,
    SeedUpdate,
)
from mlwright_trainer.report.notes import no_valid_script
from mlwright_trainer.report.tallies import mean
from mlwright_trainer.report.words import compared, plural


def seed_summary(runs: Sequence[RunReport]) -> SeedSummary:
    """Means over runs with Student's t intervals; one run gives no interval."""
    fresh = _fresh(runs)
    differing = differing_settings([run.settings for run in runs])
    return SeedSummary(
        runs=len(runs),
        seeds=[run.seed for run in runs],
        differing=differing,
        per_update=_per_update(runs),
        fresh=fresh,
        best={split: found for split in Split if (found := over_runs(_best(runs, split)))},
        sentence=_sentence(runs, fresh),
        notes=_notes(runs, differing),
    )


def over_runs(values: Sequence[float | None], *, share: bool = False) -> Estimate | None:
    """Mean and t interval over the runs that have a value; None where none has.

    The interval of a share is cut to [0, 1].
    """
    known = [value for value in values if value is not None]
    average, interval = mean(known), t_interval(known)
    if share and interval is not None:
        interval = max(0.0, interval[0]), min(1.0, interval[1])
    return None if average is None else Estimate(n=len(known), mean=average, interval=interval)


def _per_update(runs: Sequence[RunReport]) -> list[SeedUpdate]:
    numbers = sorted({update.update for run in runs for update in run.per_update})
    found = [{update.update: update for update in run.per_update} for run in runs]
    rows = [[updates[number] for updates in found if number in updates] for number in numbers]
    return [
        SeedUpdate(
            update=number,
            reward_mean=over_runs([update.reward_mean for update in updates]),
            valid_fraction=over_runs([update.valid_fraction for update in updates], share=True),
            score_mean=over_runs([update.score_mean for update in updates]),
        )
        for number, updates in zip(numbers, rows, strict=True)
    ]


Measure = Callable[[FreshSamples], float | None]


def _fresh(runs: Sequence[RunReport]) -> SeedFresh:
    measures: dict[str, Measure] = {
        "valid_fraction": lambda group: group.valid_fraction,
        "score_mean": lambda group: group.score_mean,
    }
    # Where no run has a valid sample, the baseline itself would look like a measurement.
    nothing = all(run.fresh.nothing_valid for run in runs)
    measures["score_with_failures"] = lambda group: None if nothing else group.score_with_failures
    found = {}
    for name, measure in measures.items():
        pairs = [_pair(run, measure) for run in runs]
        share = name == "valid_fraction"
        found[f"before_{name}"] = over_runs([before for before, _ in pairs], share=share)
        found[f"after_{name}"] = over_runs([after for _, after in pairs], share=share)
        found[f"difference_{name}"] = over_runs(
            [after - before for before, after in pairs if before is not None and after is not None]
        )
    return SeedFresh.model_validate(found)


def _pair(run: RunReport, measure: Measure) -> tuple[float | None, float | None]:
    before, after = run.fresh.before, run.fresh.completed_after
    return (measure(before) if before else None, measure(after) if after else None)


def _best(runs: Sequence[RunReport], split: Split) -> list[float | None]:
    return [run.scores.best.get(split) for run in runs]


def differing_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Paths of spec in which runs differ, the seed left out."""
    flat = [dict(_flat(each.get("spec", {}), "spec")) for each in settings]
    paths = sorted({path for each in flat for path in each} - {"spec.seed"})
    return [path for path in paths if len({repr(each.get(path)) for each in flat}) > 1]


def _flat(value: Any, path: str) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        return [leaf for key, each in value.items() for leaf in _flat(each, f"{path}.{key}")]
    return [(path, value)]


def _sentence(runs: Sequence[RunReport], fresh: SeedFresh) -> str:
    direction = runs[0].score_scale.direction
    parts = [
        _change(
            "the valid fraction",
            fresh.before_valid_fraction,
            fresh.after_valid_fraction,
            fresh.difference_valid_fraction,
            Direction.MAXIMIZE,
        ),
        _change(
            f"the mean {runs[0].score_scale.title} of valid samples",
            fresh.before_score_mean,
            fresh.after_score_mean,
            fresh.difference_score_mean,
            direction,
        ),
    ]
    text = "; ".join(part for part in parts if part)
    return f"Over {plural(len(runs), 'run')}, {text}." if text else "Nothing can be compared yet."


def _change(
    subject: str,
    before: Estimate | None,
    after: Estimate | None,
    difference: Estimate | None,
    direction: Direction | None,
) -> str:
    if before is None or after is None or difference is None:
        return ""
    return compared(
        subject,
        (before.mean, before.interval),
        (after.mean, after.interval),
        difference.interval,
        direction=direction,
    )


def _notes(runs: Sequence[RunReport], differing: Sequence[str]) -> list[str]:
    notes = []
    if differing:
        notes.append(f"These runs are not repetitions of one another: they differ in {', '.join(differing)}.")
    seeds = [run.seed for run in runs]
    if len(set(seeds)) < len(seeds) and not differing:
        notes.append("Some runs share a seed: they are not independent, and the intervals are too narrow.")
    unfinished = sum(run.updates < run.planned_updates for run in runs)
    if unfinished:
        notes.append(f"{plural(unfinished, 'run')} of {len(runs)} did not reach the last update yet.")
    return [*notes, *_samples(runs)]


def _samples(runs: Sequence[RunReport]) -> Iterator[str]:
    waiting = sum(run.fresh.after is not None and run.fresh.completed_after is None for run in runs)
    if waiting:
        yield (
            f"The closing samples of {plural(waiting, 'run')} of {len(runs)} are still open; what came after "
            "learning there is left out."
        )
    for run in runs:
        for sentence in no_valid_script(run.state, run.rollouts, run.reasons):
            yield f"{run.folder}: {sentence}"
    groups = [group for run in runs for group in (run.fresh.before, run.fresh.after) if group is not None]
    if len({group.score_split for group in groups if group.score_mean is not None}) > 1:
        sealed = all(run.state is RunState.SEALED for run in runs)
        why = "Final refused or lacks a valid sample" if sealed else "not every run has been sealed"
        yield f"Scores of fresh samples come from different splits: {why}."
