"""What a metric is given: columns of numbers or of labels, aligned row by row; and checks of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from mlwright_api.mltask import MetricSpec

from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError

Numbers: TypeAlias = npt.NDArray[np.float64]
Column: TypeAlias = npt.NDArray[Any]
"""Shape (rows,): float64 for numbers and numeric labels, object for text."""
Metric: TypeAlias = Callable[[Sequence[Column], Sequence[Column], MetricSpec], float]
"""(answers, predictions, spec) -> score; one column for each target, the same rows in both."""


class Frame(Protocol):
    """Columns by name: a mapping of arrays, or a pandas data frame."""

    def __getitem__(self, name: str, /) -> Any: ...


def single(score: Callable[[Column, Column], float]) -> Metric:
    """A metric of one target column."""

    def one(answers: Sequence[Column], predictions: Sequence[Column], _spec: MetricSpec) -> float:
        return score(answers[0], predictions[0])

    return described(one, score.__doc__)


def mean_over_columns(score: Callable[[Column, Column], float]) -> Metric:
    """A metric that is the plain mean of its columns' scores."""

    def mean(answers: Sequence[Column], predictions: Sequence[Column], _spec: MetricSpec) -> float:
        return float(np.mean([score(*pair) for pair in zip(answers, predictions, strict=True)]))

    return described(mean, score.__doc__)


def described(metric: Metric, text: str | None) -> Metric:
    """The metric, with its rules as its docstring: docs/reference/metrics.md shows them."""
    metric.__doc__ = text
    return metric


def matrix(columns: Sequence[Column]) -> Numbers:
    """Shape (rows, columns)."""
    return np.column_stack(columns).astype(np.float64, copy=False)


def require_binary(answers: Column) -> None:
    """Answers must be 0 or 1."""
    if not np.isin(answers, (0.0, 1.0)).all():
        raise AnswersError("the answers must be 0 or 1 in every target column")


def require_both_classes(answers: Column) -> None:
    """Answers must be 0 or 1, and both must occur: ranking metrics are not defined otherwise."""
    require_binary(answers)
    if len(np.unique(answers)) < 2:
        raise AnswersError("the answers have one class only, for which the metric is not defined")


def require_spread(answers: Column, predictions: Column) -> None:
    """Neither may be constant: a correlation is not defined otherwise."""
    if len(answers) < 2 or np.ptp(answers) == 0:
        raise AnswersError("the answers are constant, for which the metric is not defined")
    if np.ptp(predictions) == 0:
        raise InvalidSubmissionError("predictions are constant, for which the metric is not defined")
