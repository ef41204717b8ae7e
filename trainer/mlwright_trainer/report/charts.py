"""The charts over updates: learning curves, outcome mix, model families, health of the optimizer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup
from mlwright_api.rollout import Outcome

from mlwright_trainer.report.marks import Columns, Layer, Lines, Rule, Series, shares
from mlwright_trainer.report.model import Estimate, Range, RunReport, SeedSummary, SeedUpdate, UpdateReport
from mlwright_trainer.report.svg import share_format
from mlwright_trainer.report.words import number, percent, score

MAX_COLUMNS = 48
"""Columns of a chart over updates; more updates than that share columns."""
_FAMILIES = 6


@dataclass(frozen=True)
class Key:
    """One entry of a legend."""

    label: str
    style: str
    form: str = "box"
    """box or line."""


@dataclass(frozen=True)
class Figure:
    """A chart with what stands around it."""

    title: str
    svg: Markup
    legend: Sequence[Key] = ()
    caption: str = ""


OUTCOME_GROUPS: Mapping[str, tuple[str, tuple[Outcome, ...]]] = {
    "scored": ("o-scored", (Outcome.SCORED,)),
    "trivial or unchanged": ("o-trivial", (Outcome.TRIVIAL, Outcome.UNCHANGED)),
    "invalid submission": ("o-invalid", (Outcome.INVALID_SUBMISSION,)),
    "no submission": ("o-missing", (Outcome.NO_SUBMISSION,)),
    "error": ("o-error", (Outcome.ERROR,)),
    "memory or other limit": ("o-limit", (Outcome.OUT_OF_MEMORY, Outcome.OVER_LIMIT)),
    "timeout": ("o-timeout", (Outcome.TIMEOUT,)),
    "no runnable script": ("o-unparsed", (Outcome.UNPARSED, Outcome.REFUSED, Outcome.TRUNCATED)),
    "tampered": ("o-tampered", (Outcome.TAMPERED,)),
    "cancelled": ("o-cancelled", (Outcome.CANCELLED,)),
    "infrastructure failed": ("o-infrastructure", (Outcome.INFRASTRUCTURE_FAILED,)),
}
"""How outcomes are put together in the mix, best first: style and members."""


def references(run: RunReport) -> list[Rule]:
    """Baseline and best known score as levels on the score axis."""
    if run.score_scale.name == "normalized":
        return [Rule(0.0, "baseline"), Rule(1.0, "best known")]
    named = [(run.scores.baseline, "baseline"), (run.scores.reference, "best known")]
    return [Rule(value, f"{name} {score(value)}") for value, name in named if value is not None]


@dataclass(frozen=True)
class Curve:
    """One of the three learning curves: where its values are, for one run and over runs."""

    key: str
    title: str
    y_label: str
    value: Callable[[UpdateReport], float | None]
    interval: Callable[[UpdateReport], Range | None]
    over_runs: Callable[[SeedUpdate], Estimate | None]
    style: str
    floor: float | None = None
    ceiling: float | None = None
    format: Callable[[float], str] = score


def _curves(run: RunReport) -> list[Curve]:
    return [
        Curve(
            "reward",
            "Mean reward",
            "reward",
            lambda u: u.reward_mean,
            lambda u: u.reward_interval,
            lambda s: s.reward_mean,
            "s1",
        ),
        Curve(
            "valid",
            "Valid scripts",
            "share of the batch",
            lambda u: u.valid_fraction,
            lambda u: u.valid_interval,
            lambda s: s.valid_fraction,
            "s3",
            0.0,
            1.0,
            share_format,
        ),
        Curve(
            "score",
            "Mean score of valid scripts",
            f"{run.score_scale.title} on Reward",
            lambda u: u.score_mean,
            lambda u: u.score_interval,
            lambda s: s.score_mean,
            "s2",
        ),
    ]


def learning_curves(run: RunReport) -> list[Figure]:
    """Reward, valid fraction and score of one run, with 95 % bands over the rows of each batch."""
    if not run.per_update:
        return []
    return [_learning_curve(curve, run) for curve in _curves(run) if _any(curve.value, run.per_update)]


def _any(value: Callable[[UpdateReport], float | None], updates: Sequence[UpdateReport]) -> bool:
    return any(value(update) is not None for update in updates)


def _learning_curve(curve: Curve, run: RunReport) -> Figure:
    points = [(float(u.update), curve.value(u)) for u in run.per_update]
    series = Series(
        curve.title, points, [(float(u.update), curve.interval(u)) for u in run.per_update], curve.style
    )
    rules = references(run) if curve.key == "score" else ()
    return Figure(curve.title, _lines(curve, [series], _from_to(curve, points), rules), (), _levels(rules))


def _levels(rules: Sequence[Rule]) -> str:
    """The levels in words: one that lies far away is not drawn."""
    text = ", ".join(rule.label for rule in rules)
    return f"{text[0].upper()}{text[1:]}." if text else ""


def _lines(
    curve: Curve, series: Sequence[Series], description: str, rules: Sequence[Rule], prefix: str = "curve"
) -> Markup:
    return Lines(
        key=f"{prefix}-{curve.key}",
        title=curve.title,
        description=description,
        y_label=curve.y_label,
        series=series,
        rules=rules,
        floor=curve.floor,
        ceiling=curve.ceiling,
        format=curve.format if curve.key == "valid" else None,
    ).draw()


def _from_to(curve: Curve, points: Sequence[tuple[float, float | None]]) -> str:
    known = [(x, y) for x, y in points if y is not None]
    (first, start), (last, end) = known[0], known[-1]
    return (
        f"{curve.title}: {curve.format(start)} in update {first:.0f}, {curve.format(end)} in update {last:.0f}, "
        f"between {curve.format(min(y for _, y in known))} and {curve.format(max(y for _, y in known))}."
    )


def seed_curves(runs: Sequence[RunReport], seeds: SeedSummary) -> list[Figure]:
    """The learning curves over runs: each run thin, their mean bold, with Student's t bands."""
    figures = []
    for curve in _curves(runs[0]):
        means = [(float(each.update), curve.over_runs(each)) for each in seeds.per_update]
        points = [(x, found.mean if found else None) for x, found in means]
        if all(y is None for _, y in points):
            continue
        single = [
            Series(
                f"seed {run.seed}",
                [(float(u.update), curve.value(u)) for u in run.per_update],
                style="s0",
                dots=False,
            )
            for run in runs
        ]
        bold = Series(
            "mean", points, [(x, found.interval if found else None) for x, found in means], curve.style
        )
        rules = references(runs[0]) if curve.key == "score" else ()
        svg = _lines(curve, [*single, bold], _from_to(curve, points), rules, prefix="seeds")
        legend = [Key("mean of the runs", curve.style, "line"), Key("each run", "s0", "line")]
        figures.append(Figure(curve.title, svg, legend, _levels(rules)))
    return figures


def binned(updates: Sequence[UpdateReport]) -> list[list[UpdateReport]]:
    """Updates in at most MAX_COLUMNS groups of equal size, in order."""
    size = -(-len(updates) // MAX_COLUMNS)
    return [list(updates[start : start + size]) for start in range(0, len(updates), size)]


def _names(columns: Sequence[Sequence[UpdateReport]]) -> list[str]:
    return [
        f"{column[0].update}" if len(column) == 1 else f"{column[0].update}–{column[-1].update}"
        for column in columns
    ]


def outcome_mix(run: RunReport) -> Figure | None:
    """Shares of outcomes in each batch, stacked, the good ones at the bottom."""
    if not run.per_update:
        return None
    columns = binned(run.per_update)
    counts = [
        {
            name: sum(update.by_outcome.get(outcome, 0) for update in column for outcome in members)
            for name, (_, members) in OUTCOME_GROUPS.items()
        }
        for column in columns
    ]
    names = [name for name in OUTCOME_GROUPS if any(column[name] for column in counts)]
    styles = {name: OUTCOME_GROUPS[name][0] for name in names}
    return _stack("outcomes", "Outcome mix", counts, styles, _names(columns))


def family_mix(run: RunReport) -> Figure | None:
    """Shares of model families in each batch, stacked, the most frequent at the bottom."""
    if not run.per_update:
        return None
    columns = binned(run.per_update)
    total: Counter[str] = Counter()
    for update in run.per_update:
        total.update(update.by_family)
    named = [name for name, _ in total.most_common(_FAMILIES)]
    counts = [_with_rest(column, named) for column in columns]
    styles = {name: f"f{index + 1}" for index, name in enumerate(named)}
    if len(total) > len(named):
        styles["other"] = "f0"
    return _stack("families", "Model families", counts, styles, _names(columns))


def _with_rest(column: Sequence[UpdateReport], named: Sequence[str]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for update in column:
        for name, count in update.by_family.items():
            counts[name if name in named else "other"] += count
    return dict(counts)


def _stack(
    key: str,
    title: str,
    counts: Sequence[Mapping[str, int]],
    styles: Mapping[str, str],
    columns: Sequence[str],
) -> Figure:
    found = shares(counts, list(styles))
    first, last = ({name: values[index] for name, values in found.items()} for index in (0, -1))
    described = ", ".join(f"{name} {percent(first[name])} then {percent(last[name])}" for name in styles)
    svg = Columns(
        key=key,
        title=f"{title} over updates",
        description=f"Share of each batch, in the first update and in the last: {described}.",
        y_label="share of the batch",
        x_label="update",
        layers=[Layer(name, style, found[name]) for name, style in styles.items()],
        centres=columns,
        format=share_format,
        ceiling=1.0,
    ).draw()
    legend = [Key(name, style) for name, style in reversed(list(styles.items()))]
    return Figure(title, svg, legend)


def distinct_share(run: RunReport) -> Figure | None:
    """Distinct scripts of a batch as a share of its rows: a policy that copies itself shows here."""
    points = [(float(u.update), u.distinct_scripts / u.rows if u.rows else None) for u in run.per_update]
    return _over_updates(
        "distinct",
        "Distinct scripts",
        "share of the batch",
        points,
        "s5",
        floor=0.0,
        ceiling=1.0,
        format=percent,
    )


def execution_seconds(run: RunReport) -> Figure | None:
    """Mean execution time of the scripts of each batch."""
    points = [(float(u.update), u.execution_seconds_mean) for u in run.per_update]
    return _over_updates("seconds", "Mean execution time", "seconds", points, "s4", floor=0.0)


HEALTH: Sequence[tuple[str, str, str, float | None, float | None]] = (
    ("kl", "KL from the reference policy", "nats per token", None, None),
    ("clipFraction", "Clip fraction", "share of tokens", 0.0, 1.0),
    ("effectiveSampleSize", "Effective sample size", "rows", 0.0, None),
    ("entropy", "Entropy", "nats per token", 0.0, None),
    ("gradientNorm", "Gradient norm before clipping", "L2", 0.0, None),
    ("explainedVariance", "Variance explained by the critic", "share", None, 1.0),
    ("stalenessMean", "Staleness", "updates", 0.0, None),
    ("logprobDifference", "Sampler and learner apart", "mean |difference| of log-probabilities", 0.0, None),
)
"""What the learner measures, as far as it is there: metric, title, unit, floor, ceiling."""


def health(run: RunReport) -> list[Figure]:
    """The optimizer's vital signs over updates."""
    figures = []
    for name, title, unit, floor, ceiling in HEALTH:
        points = [(float(u.update), u.metrics.get(name)) for u in run.per_update]
        figures.append(
            _over_updates(f"health-{name}", title, unit, points, "s6", floor=floor, ceiling=ceiling)
        )
    return [figure for figure in figures if figure is not None]


def _over_updates(
    key: str,
    title: str,
    unit: str,
    points: Sequence[tuple[float, float | None]],
    style: str,
    *,
    floor: float | None = None,
    ceiling: float | None = None,
    format: Callable[[float], str] | None = None,
) -> Figure | None:
    known = [y for _, y in points if y is not None]
    if not known:
        return None
    show = format or number
    svg = Lines(
        key=key,
        title=title,
        description=f"{title} ({unit}): first {show(known[0])}, last {show(known[-1])}.",
        y_label=unit,
        series=[Series(title, points, style=style)],
        floor=floor,
        ceiling=ceiling,
        format=share_format if format is percent else None,
    ).draw()
    return Figure(title, svg)
