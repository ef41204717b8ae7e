"""Rules between a task and the catalogue of metrics, and between a run and its tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from mlwright_api.explanations import unknown
from mlwright_api.metric_catalog import CATALOG, MetricInfo, metric_info
from mlwright_api.mltask import Direction, MetricSpec, MLTaskSpec, SubmissionKind, TaskReference
from mlwright_api.reward_order import WORST_NORMALIZED, broken_order
from mlwright_api.trainingrun import RewardSpec
from mlwright_api.violations import Cel, Rule, Violation, rule, violations


def check_task(spec: MLTaskSpec) -> list[Violation]:
    """What is wrong with a task's metric (name, options, kind of submission) and with its reference scores."""
    return list(violations(spec, task_rules()))


def task_rules() -> tuple[Rule[MLTaskSpec], ...]:
    """Of an MLTask's spec, beyond its own `rules()`."""
    return (
        _metric_is_known,
        _direction_fits,
        _kind_fits,
        _columns_fit,
        _options_fit,
        _scores_in_order,
        _scores_in_bounds,
    )


_NAME = "self.metric.name"


def _among(holds: Callable[[MetricInfo], Any]) -> str:
    """CEL: whether the metric is one of those of the catalogue for which `holds`."""
    names = ", ".join(f"'{name}'" for name, info in sorted(CATALOG.items()) if holds(info))
    return f"{_NAME} in [{names}]"


_KNOWN = _among(lambda _: True)
_MAXIMIZED = _among(lambda info: info.direction is Direction.MAXIMIZE)


@rule(
    Cel(
        f"has(self.metric.direction) || {_KNOWN}",
        field="metric.name",
        message=f"unknown metric '{{{_NAME}}}': allowed are {', '.join(sorted(CATALOG))} "
        "(a task with its own grade.py gives metric.direction)",
    )
)
def _metric_is_known(spec: MLTaskSpec) -> Iterator[Violation]:
    metric = spec.metric
    if metric.name not in CATALOG and metric.direction is None:
        hint = unknown(metric.name, sorted(CATALOG), what="metric")
        yield Violation("metric.name", f"{hint} (a task with its own grade.py gives metric.direction)")


@rule(
    Cel(
        f"!has(self.metric.direction) || !({_KNOWN}) || ({_MAXIMIZED}) == (self.metric.direction == 'Maximize')",
        field="metric.direction",
        message=f"must be {{{_MAXIMIZED} ? 'Maximize' : 'Minimize'}} for {{{_NAME}}}, or left out",
    )
)
def _direction_fits(spec: MLTaskSpec) -> Iterator[Violation]:
    info = CATALOG.get(spec.metric.name)
    if info is not None and spec.metric.direction not in (None, info.direction):
        yield Violation("metric.direction", f"must be {info.direction} for {info.name}, or left out")


def _kinds_in_cel() -> Iterator[Cel]:
    for kinds in sorted({info.kinds for info in CATALOG.values()} - {frozenset(SubmissionKind)}, key=sorted):
        among = _among(lambda info, kinds=kinds: info.kinds == kinds)  # type: ignore[misc]  # bound here
        listed = ", ".join(f"'{kind}'" for kind in sorted(kinds))
        yield Cel(
            f"!({among}) || self.submission.kind in [{listed}]",
            field="submission.kind",
            message=f"must be {' or '.join(sorted(kinds))} for {{{_NAME}}}, not {{self.submission.kind}}",
        )


@rule(*_kinds_in_cel())
def _kind_fits(spec: MLTaskSpec) -> Iterator[Violation]:
    info = CATALOG.get(spec.metric.name)
    if info is not None and spec.submission.kind not in info.kinds:
        kinds = " or ".join(sorted(info.kinds))
        yield Violation("submission.kind", f"must be {kinds} for {info.name}, not {spec.submission.kind}")


@rule(
    Cel(
        f"self.submission.targetColumns.size() == 1 || !({_among(lambda info: not info.many_columns)})",
        field="submission.targetColumns",
        message=f"must be one column for {{{_NAME}}}, not {{self.submission.targetColumns.size()}}",
    )
)
def _columns_fit(spec: MLTaskSpec) -> Iterator[Violation]:
    info, columns = CATALOG.get(spec.metric.name), len(spec.submission.target_columns)
    if info is not None and columns > 1 and not info.many_columns:
        yield Violation("submission.targetColumns", f"must be one column for {info.name}, not {columns}")


_OPTIONS = ("averaging", "k")


def _means_nothing(option: str) -> Cel:
    among = _among(lambda info: option not in info.parameters)
    return Cel(
        f"!has(self.metric.{option}) || !({among})",
        field=f"metric.{option}",
        message=f"means nothing to {{{_NAME}}}",
    )


@rule(*map(_means_nothing, _OPTIONS))
def _options_fit(spec: MLTaskSpec) -> Iterator[Violation]:
    info = CATALOG.get(spec.metric.name)
    for option in _OPTIONS if info is not None else ():
        if getattr(spec.metric, option) is not None and option not in CATALOG[spec.metric.name].parameters:
            yield Violation(f"metric.{option}", f"means nothing to {spec.metric.name}")


_ORDER = (("baseline", "best"), ("bronze", "silver"), ("silver", "gold"))
_MORE_IS_BETTER = f"({_KNOWN} ? {_MAXIMIZED} : self.metric.?direction.orValue('Maximize') == 'Maximize')"


def _no_worse(worse: str, better: str) -> Cel:
    low, high = f"self.reference.{worse}", f"self.reference.{better}"
    given = " && ".join(f"has({score})" for score in (low, high))
    direction = f"{{{_MORE_IS_BETTER} ? 'Maximize' : 'Minimize'}}"
    return Cel(
        f"!({given}) || ({_MORE_IS_BETTER} ? {high} >= {low} : {high} <= {low})",
        field=f"reference.{better}",
        message=f"{{{high}}} must not be worse than {worse} {{{low}}} ({direction} {{{_NAME}}})",
    )


@rule(*(_no_worse(worse, better) for worse, better in _ORDER))
def _scores_in_order(spec: MLTaskSpec) -> Iterator[Violation]:
    """Each known score is at least as good as the one below it."""
    direction = _direction(spec.metric)
    if direction is None:
        return
    sign = 1 if direction is Direction.MAXIMIZE else -1
    for worse, better in _ORDER:
        low, high = getattr(spec.reference, worse), getattr(spec.reference, better)
        if low is not None and high is not None and sign * (high - low) < 0:
            message = f"{high:g} must not be worse than {worse} {low:g} ({direction} {spec.metric.name})"
            yield Violation(f"reference.{better}", message)


def _bound(bound_of: Callable[[MetricInfo], float | None], *, otherwise: str, as_text: bool = False) -> str:
    """CEL: the metric's bound, as a number or as it is written."""
    choice = f"'{otherwise}'" if as_text else f"double('{otherwise}')"
    for bound in sorted({bound for info in CATALOG.values() if (bound := bound_of(info)) is not None}):
        among = _among(lambda info, bound=bound: bound_of(info) == bound)  # type: ignore[misc]  # bound here
        written = f"'{bound:g}'" if as_text else bound
        choice = f"{among} ? {written} : {choice}"
    return f"({choice})"


def _lower(*, as_text: bool = False) -> str:
    return _bound(lambda info: info.lower, otherwise="-inf", as_text=as_text)


def _upper(*, as_text: bool = False) -> str:
    return _bound(lambda info: info.upper, otherwise="inf", as_text=as_text)


def _in_bounds(name: str) -> Cel:
    score = f"self.reference.{name}"
    interval = f"[{{{_lower(as_text=True)}}}, {{{_upper(as_text=True)}}}]"
    return Cel(
        f"!has({score}) || ({_lower()} <= {score} && {score} <= {_upper()})",
        field=f"reference.{name}",
        message=f"must be in {interval} for {{{_NAME}}}, not {{{score}}}",
    )


@rule(*map(_in_bounds, TaskReference.model_fields))
def _scores_in_bounds(spec: MLTaskSpec) -> Iterator[Violation]:
    info = CATALOG.get(spec.metric.name)
    if info is None:
        return
    lower = -math.inf if info.lower is None else info.lower
    upper = math.inf if info.upper is None else info.upper
    for name in TaskReference.model_fields:
        score = getattr(spec.reference, name)
        if score is not None and not lower <= score <= upper:
            yield Violation(
                f"reference.{name}", f"must be in [{lower:g}, {upper:g}] for {info.name}, not {score:g}"
            )


def _direction(metric: MetricSpec) -> Direction | None:
    info = CATALOG.get(metric.name)
    return metric.direction if info is None else info.direction


def check_reward(reward: RewardSpec, task: MLTaskSpec) -> list[str]:
    """Why this reward cannot be used with this task: one line a reason, none if it can.

    A failure earns at most `invalid` + `milestone` x 7, and must earn less than any valid submission (design,
    section 6); Normalized needs a score that counts as 1.
    """
    info = metric_info(task.metric)
    if reward.score == "Normalized":
        return [*_order(reward, WORST_NORMALIZED), *_scale(task, info)]
    worst = _worst_raw(info)
    if worst is not None:
        return _order(reward, worst)
    if reward.allow_unbounded:
        return []
    return [
        f"reward.score Raw: {task.metric.name} has no worst value, so a failure could outrank a valid "
        "script: use Normalized, or set reward.allowUnbounded: true to insist"
    ]


def _order(reward: RewardSpec, worst: float) -> list[str]:
    broken = broken_order(reward, worst)
    return [] if broken is None else [f"reward: {broken}"]


def _scale(task: MLTaskSpec, info: MetricInfo) -> list[str]:
    best = task.reference.best if task.reference.best is not None else info.best
    if best is None:
        return [f"reference.best is required: {task.metric.name} has no bound that could count as 1"]
    if info.sign * (best - task.reference.baseline) > 0:
        return []
    return [
        f"reference.best {best:g} must be better than reference.baseline {task.reference.baseline:g} "
        f"({info.direction} {task.metric.name})"
    ]


def _worst_raw(info: MetricInfo) -> float | None:
    """The lowest Raw reward of a valid submission: the metric's bound on its bad side, as a gain."""
    if info.direction is Direction.MAXIMIZE:
        return info.lower
    return None if info.upper is None else -info.upper
