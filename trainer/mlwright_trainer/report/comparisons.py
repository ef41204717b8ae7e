"""The charts that compare: before and after, scores against references, durations, milestones, time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlwright_api.mltask import Split
from mlwright_api.results import MILESTONES

from mlwright_trainer.report.charts import Figure, Key
from mlwright_trainer.report.marks import (
    Columns,
    IntervalRow,
    Intervals,
    Layer,
    Mirror,
    Pair,
    PairedDots,
    Rule,
)
from mlwright_trainer.report.model import (
    DurationBucket,
    Durations,
    Fresh,
    FreshSamples,
    MilestoneReach,
    Range,
    Scores,
)
from mlwright_trainer.report.svg import share_format
from mlwright_trainer.report.words import number, percent, plural, score

_BEFORE, _AFTER = "s0", "s1"


def fresh_validity(fresh: Fresh, key: str = "fresh-valid") -> Figure | None:
    """Valid fraction of fresh samples before and after."""
    rows = [
        _row(
            f"{label}, {group.valid} of {group.n}", group.valid_fraction, group.valid_interval, style, percent
        )
        for label, group, style in _groups(fresh)
    ]
    return _intervals(key, "Valid fraction of fresh samples", "share of samples", rows, domain=(0.0, 1.0))


def fresh_scores(fresh: Fresh, unit: str, rules: Sequence[Rule], key: str = "fresh-score") -> Figure | None:
    """Mean score of fresh samples before and after: of the valid ones, and with failures at the baseline."""
    means = [
        _row(f"{label}, valid only", group.score_mean, group.interval, style, score)
        for label, group, style in _groups(fresh)
    ]
    lowered: list[IntervalRow | None] = [
        _row(
            f"{label}, failures as baseline",
            group.score_with_failures,
            group.score_with_failures_interval,
            style,
            score,
        )
        for label, group, style in _groups(fresh)
        if not fresh.nothing_valid
    ]
    return _intervals(key, "Mean score of fresh samples", unit, [*means, *lowered], rules)


def _groups(fresh: Fresh) -> list[tuple[str, FreshSamples, str]]:
    named = (("Before", fresh.before, _BEFORE), ("After", fresh.after, _AFTER))
    return [
        (f"{label}, so far" if group.pending else label, group, style)
        for label, group, style in named
        if group is not None
    ]


Show = Callable[[float], str]


def _row(
    label: str, value: float | None, interval: Range | None, style: str, show: Show
) -> IntervalRow | None:
    if value is None:
        return None
    ends = f" [{show(interval[0])}, {show(interval[1])}]" if interval else ""
    return IntervalRow(label, value, interval, f"{show(value)}{ends}", style)


def _intervals(
    key: str,
    title: str,
    unit: str,
    rows: Sequence[IntervalRow | None],
    rules: Sequence[Rule] = (),
    *,
    domain: tuple[float, float] | None = None,
) -> Figure | None:
    known = [row for row in rows if row is not None]
    if not known:
        return None
    described = "; ".join(f"{row.label}: {row.shown}" for row in known)
    svg = Intervals(
        key=key,
        title=title,
        description=f"{title} ({unit}), with 95 % intervals. {described}.",
        x_label=unit,
        rows=known,
        rules=rules,
        domain=domain,
        format=share_format if domain == (0.0, 1.0) else None,
    ).draw()
    return Figure(title, svg)


def fresh_distribution(fresh: Fresh, unit: str) -> Figure | None:
    """How the scores of fresh samples lie: where the mean comes from."""
    histogram = fresh.histogram
    if histogram is None:
        return None
    before, after = fresh.before, fresh.after
    failures = {"before": (histogram.failures_before, before), "after": (histogram.failures_after, after)}
    told = ", ".join(f"{count} of {group.n} {name}" for name, (count, group) in failures.items() if group)
    svg = Mirror(
        key="fresh-distribution",
        title="Scores of valid fresh samples",
        description=f"Histograms of {unit}, after upwards and before downwards. Failed: {told}.",
        x_label=unit,
        edges=histogram.edges,
        up=Layer("after" if after else "", _AFTER, [float(count) for count in histogram.after]),
        down=Layer("before" if before else "", _BEFORE, [float(count) for count in histogram.before]),
    ).draw()
    return Figure("Scores of valid fresh samples", svg, (), f"Without a score because they failed: {told}.")


def split_scores(scores: Scores, key: str = "splits") -> Figure | None:
    """The best script on the three splits, beside baseline and best known score."""
    rows = [
        _row(
            _SPLIT_LABELS[split],
            scores.best.get(split),
            scores.best_interval if split is Split.FINAL else None,
            _SPLIT_STYLES[split],
            score,
        )
        for split in Split
    ]
    named = [(scores.baseline, "baseline"), (scores.reference, "best known")]
    rules = [Rule(value, name) for value, name in named if value is not None]
    return _intervals(key, "The best script on each split", scores.metric or "score", rows, rules)


_SPLIT_LABELS = {
    Split.REWARD: "Reward, learned from",
    Split.SELECTION: "Selection, chose",
    Split.FINAL: "Final, read once",
}
_SPLIT_STYLES = {Split.REWARD: "s0", Split.SELECTION: "s0", Split.FINAL: "s1"}


def duration_histogram(durations: Durations) -> Figure | None:
    """Every script started for training by its execution time, split by what became of it."""
    buckets = durations.buckets
    if not buckets:
        return None
    layers = [
        Layer("trained", "d-trained", [float(b.trained) for b in buckets]),
        Layer("finished, not trained", "d-finished", [float(b.finished - b.trained) for b in buckets]),
        Layer("lost by the infrastructure", "d-lost", [float(b.infrastructure_failed) for b in buckets]),
        Layer("cancelled: would have taken longer", "d-cancelled", [float(b.cancelled) for b in buckets]),
    ]
    layers = [layer for layer in layers if any(layer.values)]
    svg = Columns(
        key="durations",
        title="Scripts launched, finished and trained, by execution time",
        description="; ".join(
            f"{bounds(b)} s: {b.launched} launched, {b.finished} finished, {b.trained} trained"
            for b in buckets
        )
        + ".",
        y_label="scripts launched",
        x_label="execution seconds",
        layers=layers,
        edges=[number(b.low, 1) for b in buckets] + [_end(buckets[-1])],
    ).draw()
    return Figure(
        "Launched, finished, trained", svg, [Key(layer.label, layer.style) for layer in reversed(layers)]
    )


def _end(bucket: DurationBucket) -> str:
    return "∞" if bucket.high is None else number(bucket.high, 1)


def bounds(bucket: DurationBucket) -> str:
    """A bucket's ends, in seconds."""
    return f"{number(bucket.low, 1)}–{_end(bucket)}"


def milestone_chart(reaches: Sequence[MilestoneReach]) -> Figure | None:
    """Share of executed scripts that reached each milestone, in up to two groups."""
    if not reaches:
        return None
    pairs = [
        Pair(name.replace("_", " "), [reach.reached.get(name, 0) / reach.n for reach in reaches])
        for name in MILESTONES
    ]
    styles = ("s0", "s1") if len(reaches) > 1 else ("s1",)
    described = "; ".join(f"{pair.label}: {' then '.join(percent(v) for v in pair.values)}" for pair in pairs)
    svg = PairedDots(
        key="milestones",
        title="Milestones reached",
        description=f"Share of executed scripts. {described}.",
        x_label="share of executed scripts",
        pairs=pairs,
        styles=styles,
    ).draw()
    legend = [
        Key(f"{reach.label} ({plural(reach.n, 'script')})", style)
        for reach, style in zip(reaches, styles, strict=False)
    ]
    return Figure("Milestones reached", svg, legend)
