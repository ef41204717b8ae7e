"""Rules between objects, and between an object and the catalogue of metrics: what no schema can say."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mlwright_api.explanations import unknown
from mlwright_api.metric_catalog import CATALOG, MetricInfo, metric_info
from mlwright_api.mltask import Direction, MetricSpec, MLTaskSpec, TaskReference
from mlwright_api.reward_order import WORST_NORMALIZED, broken_order
from mlwright_api.trainingrun import RewardSpec
from mlwright_api.violations import Violation


def check_task(spec: MLTaskSpec) -> list[Violation]:
    """What is wrong with a task's metric (name, options, kind of submission) and with its reference scores."""
    return [*_metric_rule(spec), *_reference_rule(spec)]


def _metric_rule(spec: MLTaskSpec) -> Iterator[Violation]:
    metric = spec.metric
    if metric.name not in CATALOG:
        if metric.direction is None:
            hint = unknown(metric.name, sorted(CATALOG), what="metric")
            yield Violation("metric.name", f"{hint} (a task with its own grade.py gives metric.direction)")
        return
    info = CATALOG[metric.name]
    if metric.direction not in (None, info.direction):
        yield Violation("metric.direction", f"must be {info.direction} for {metric.name}, or left out")
    if spec.submission.kind not in info.kinds:
        kinds = " or ".join(sorted(info.kinds))
        yield Violation("submission.kind", f"must be {kinds} for {metric.name}, not {spec.submission.kind}")
    columns = len(spec.submission.target_columns)
    if columns > 1 and not info.many_columns:
        yield Violation("submission.targetColumns", f"must be one column for {metric.name}, not {columns}")
    for option in ("averaging", "k"):
        if getattr(metric, option) is not None and option not in info.parameters:
            yield Violation(f"metric.{option}", f"means nothing to {metric.name}")


def _reference_rule(spec: MLTaskSpec) -> Iterator[Violation]:
    """Each known score is at least as good as the one below it, and none is out of the metric's bounds."""
    direction = _direction(spec.metric)
    if direction is None:
        return
    sign = 1 if direction is Direction.MAXIMIZE else -1
    for worse, better in (("baseline", "best"), ("bronze", "silver"), ("silver", "gold")):
        low, high = getattr(spec.reference, worse), getattr(spec.reference, better)
        if low is not None and high is not None and sign * (high - low) < 0:
            message = f"{high:g} must not be worse than {worse} {low:g} ({direction} {spec.metric.name})"
            yield Violation(f"reference.{better}", message)
    yield from _bounds_rule(spec)


def _bounds_rule(spec: MLTaskSpec) -> Iterator[Violation]:
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
