"""Rules between objects, and between an object and the catalogue of metrics: what no schema can say."""

from __future__ import annotations

from collections.abc import Iterator

from mlwright_api.explanations import unknown
from mlwright_api.metric_catalog import CATALOG, MetricInfo, metric_info
from mlwright_api.mltask import Direction, MetricSpec, MLTaskSpec
from mlwright_api.results import MILESTONES
from mlwright_api.trainingrun import RewardSpec
from mlwright_api.violations import Violation

WORST_NORMALIZED = -0.1
"""The lowest Normalized reward of a valid submission: the end of the lower tail."""


def check_metric(spec: MLTaskSpec) -> list[Violation]:
    """What is wrong with a task's metric: its name, its options, the kind of submission it needs."""
    return list(_metric_violations(spec))


def _metric_violations(spec: MLTaskSpec) -> Iterator[Violation]:
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


def check_reward(reward: RewardSpec, task: MLTaskSpec) -> list[str]:
    """Why this reward cannot be used with this task: one line a reason, none if it can.

    A failure earns at most `invalid` + `milestone` x 7, and must earn less than any valid submission (design,
    section 6); Normalized needs a score that counts as 1.
    """
    info = metric_info(task.metric)
    if reward.score == "Normalized":
        return [*_order(reward, WORST_NORMALIZED), *_scale(task, info)]
    worst = _worst_raw(info)
    if reward.allow_unbounded:
        return []
    if worst is None:
        return [
            f"reward.score Raw: {task.metric.name} has no worst value, so a failure could outrank a valid "
            "script: use Normalized, or set reward.allowUnbounded: true to insist"
        ]
    return _order(reward, worst)


def _order(reward: RewardSpec, worst: float) -> list[str]:
    ceiling = reward.invalid + reward.milestone * len(MILESTONES)
    if ceiling < worst:
        return []
    return [
        f"reward.invalid + {len(MILESTONES)} x reward.milestone is {ceiling:g} and must be below {worst:g}, "
        "so that any valid script outranks any failure"
    ]


def _scale(task: MLTaskSpec, info: MetricInfo) -> list[str]:
    best = task.reference.best if task.reference.best is not None else info.best
    if best is None:
        return [f"reference.best is required: {task.metric.name} has no bound that could count as 1"]
    sign = 1 if info.direction is Direction.MAXIMIZE else -1
    if sign * (best - task.reference.baseline) > 0:
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


def metric_options(metric: MetricSpec) -> list[str]:
    """The options of a metric that were given."""
    return [name for name in ("averaging", "k") if getattr(metric, name) is not None]
