"""The metrics by name: direction, bounds and inputs; the numerics are in mlwright_sandbox.metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mlwright_api.errors import ApiError
from mlwright_api.explanations import nearest
from mlwright_api.mltask import Direction, MetricSpec, SubmissionKind, SubmissionSpec

_LABELS = frozenset({SubmissionKind.LABELS})
_PROBABILITIES = frozenset({SubmissionKind.PROBABILITIES})
_VALUES = frozenset({SubmissionKind.VALUES})
_ORDERED = _PROBABILITIES | _VALUES
_ANY_KIND = frozenset(SubmissionKind)
DEFAULT_K = 5
"""Length of a ranking where `metric.k` is not given."""


class MetricError(ApiError):
    """A metric that does not exist, or that does not fit what it is used for."""


@dataclass(frozen=True)
class MetricInfo:
    """What everybody may know of a metric without computing it.

    `lower` and `upper` are bounds of the score, None where there is none; `kinds` are the submissions that
    it can score. `many_columns`: whether more than one target column can be scored (as a mean over columns,
    or as many classes). `parameters`: which of `averaging` and `k` it reads.
    """

    name: str
    title: str
    direction: Direction
    lower: float | None
    upper: float | None
    kinds: frozenset[SubmissionKind]
    many_columns: bool = False
    parameters: frozenset[str] = frozenset()

    @property
    def best(self) -> float | None:
        """The bound in the metric's direction: the score of perfect answers, if the metric has one."""
        return self.upper if self.direction is Direction.MAXIMIZE else self.lower

    @property
    def sign(self) -> int:
        """+1 where more is better, -1 where less is."""
        return 1 if self.direction is Direction.MAXIMIZE else -1


def _gain(
    name: str, title: str, kinds: frozenset[SubmissionKind], *, lower: float | None = 0.0, many: bool = False
) -> MetricInfo:
    return MetricInfo(name, title, Direction.MAXIMIZE, lower, 1.0, kinds, many)


def _loss(
    name: str, title: str, kinds: frozenset[SubmissionKind], *, upper: float | None = None, many: bool = True
) -> MetricInfo:
    return MetricInfo(name, title, Direction.MINIMIZE, 0.0, upper, kinds, many)


def _averaged(name: str, title: str) -> MetricInfo:
    parameters = frozenset({"averaging"})
    return MetricInfo(name, title, Direction.MAXIMIZE, 0.0, 1.0, _LABELS, parameters=parameters)


def _ranking(name: str, title: str) -> MetricInfo:
    return MetricInfo(name, title, Direction.MAXIMIZE, 0.0, 1.0, _LABELS, parameters=frozenset({"k"}))


_METRICS = (
    _gain("accuracy", "Accuracy", _LABELS),
    _gain("balanced_accuracy", "Balanced accuracy: mean recall over classes", _LABELS),
    _averaged("f1", "F1"),
    _averaged("precision", "Precision"),
    _averaged("recall", "Recall"),
    _gain("mcc", "Matthews correlation coefficient", _LABELS, lower=-1.0),
    _gain("quadratic_weighted_kappa", "Quadratic weighted kappa of ratings", _LABELS, lower=-1.0),
    _gain("word_jaccard", "Mean Jaccard index of the two sets of lower-case words", _LABELS),
    _ranking("map_at_k", "Mean average precision of the first k labels of each row"),
    _ranking("recall_at_k", "Share of the true labels among the first k of each row"),
    _gain("roc_auc", "Area under the ROC curve", _ORDERED),
    _gain("mean_column_roc_auc", "Mean over columns of the area under the ROC curve", _ORDERED, many=True),
    _gain("average_precision", "Average precision", _ORDERED),
    _gain("mean_column_average_precision", "Mean over columns of average precision", _ORDERED, many=True),
    _gain("gini", "Normalized Gini coefficient, 2 AUC - 1", _ORDERED, lower=-1.0),
    _loss("log_loss", "Log loss, binary or many-class", _PROBABILITIES),
    _loss("mean_column_log_loss", "Mean over columns of the binary log loss", _PROBABILITIES),
    _loss("brier", "Brier score, scaled to [0, 1]", _PROBABILITIES, upper=1.0),
    _loss("rmse", "Root mean squared error", _VALUES),
    _loss("mse", "Mean squared error", _VALUES),
    _loss("mcrmse", "Mean over columns of the root mean squared error", _VALUES),
    _loss("rmsle", "Root mean squared error of log(1 + value)", _VALUES),
    _loss("mcrmsle", "Mean over columns of the root mean squared error of log(1 + value)", _VALUES),
    _loss("mae", "Mean absolute error", _VALUES),
    _loss("median_ae", "Median absolute error", _VALUES),
    _loss("mape", "Mean absolute percentage error, as a fraction", _VALUES),
    _loss("smape", "Symmetric mean absolute percentage error, as a fraction", _VALUES, upper=2.0),
    _loss("rmspe", "Root mean squared percentage error, as a fraction", _VALUES),
    _gain("r2", "Coefficient of determination", _VALUES, lower=None, many=True),
    _gain("pearson", "Pearson correlation", _VALUES, lower=-1.0, many=True),
    _gain("spearman", "Spearman rank correlation", _ORDERED, lower=-1.0, many=True),
)

CATALOG: Mapping[str, MetricInfo] = MappingProxyType({metric.name: metric for metric in _METRICS})


def nearest_metric(name: str) -> str | None:
    """The catalogue's name that resembles `name` most, if any does."""
    return nearest(name, list(CATALOG))


def metric_info(spec: MetricSpec) -> MetricInfo:
    """What is known of a task's metric; a name outside the catalogue (a task's grade.py) needs a direction.

    Errors: MetricError, one line.
    """
    known = CATALOG.get(spec.name)
    if known is None:
        return _own_metric(spec)
    if spec.direction not in (None, known.direction):
        raise MetricError(
            f"metric {spec.name} has the direction {known.direction}: leave metric.direction out, "
            "or give a metric of your own (grade.py) a name of its own"
        )
    return known


def _own_metric(spec: MetricSpec) -> MetricInfo:
    if spec.direction is None:
        near = nearest_metric(spec.name)
        hint = f"; did you mean {near}?" if near else ""
        raise MetricError(
            f"metric {spec.name} is not in the catalogue{hint} "
            "(a task with its own grade.py sets metric.direction)"
        )
    title = spec.name.replace("_", " ")
    return MetricInfo(spec.name, title, spec.direction, None, None, _ANY_KIND, many_columns=True)


def metric_problems(metric: MetricSpec, submission: SubmissionSpec) -> Iterator[str]:
    """Why this metric cannot score this submission, a line each; nothing where it can.

    Errors: MetricError, as `metric_info`.
    """
    info = metric_info(metric)
    if submission.kind not in info.kinds:
        allowed = " or ".join(sorted(info.kinds))
        yield f"metric {info.name} scores {allowed}, not {submission.kind} (submission.kind)"
    columns = len(submission.target_columns)
    if columns > 1 and not info.many_columns:
        yield f"metric {info.name} scores one target column, not {columns} (submission.targetColumns)"
    if info.name in CATALOG:
        for parameter in ("averaging", "k"):
            if getattr(metric, parameter) is not None and parameter not in info.parameters:
                yield f"metric.{parameter} means nothing to {info.name}"
