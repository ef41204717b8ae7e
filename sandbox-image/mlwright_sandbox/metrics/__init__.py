"""The numerics of the metrics: the score of aligned predictions, finite or refused with a reason."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from mlwright_api.mltask import MLTaskSpec
from sklearn import config_context

from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError
from mlwright_sandbox.metrics.classification import CLASSIFICATION
from mlwright_sandbox.metrics.columns import Column, Frame, Metric
from mlwright_sandbox.metrics.probabilities import PROBABILITIES
from mlwright_sandbox.metrics.regression import REGRESSION
from mlwright_sandbox.metrics.text import TEXT

NUMERICS: Mapping[str, Metric] = MappingProxyType({**CLASSIFICATION, **PROBABILITIES, **REGRESSION, **TEXT})
RANKING = frozenset(
    {
        "roc_auc",
        "mean_column_roc_auc",
        "average_precision",
        "mean_column_average_precision",
        "gini",
        "spearman",
    }
)
"""Metrics that only see the order of the rows."""
WORDS = frozenset(TEXT)
"""Metrics whose cells hold words, so that an empty cell is an answer."""
_NOT_NEGATIVE = frozenset({"rmsle", "mcrmsle"})


def score(spec: MLTaskSpec, answers: Frame, predictions: Frame) -> float:
    """The task's metric over rows that are already aligned; both hold every target column, (rows,) each.

    A pandas data frame will do. Numbers for Probabilities and Values; for Labels numbers or text, alike in both.
    Errors: InvalidSubmissionError where the predictions have no finite score, AnswersError where the answers
    or the metric's name make every score impossible.
    """
    metric = NUMERICS.get(spec.metric.name)
    if metric is None:
        raise AnswersError(f"metric {spec.metric.name} has no numerics of ours: the task needs a grade.py")
    targets = spec.submission.target_columns
    return finite(_quietly(metric, _columns(answers, targets), _columns(predictions, targets), spec))


def needs_not_negative(metric: str) -> bool:
    """Whether predictions below zero have no score."""
    return metric in _NOT_NEGATIVE


def finite(value: float) -> float:
    """`value`, or an InvalidSubmissionError where it is not a finite number."""
    if not math.isfinite(value):
        raise InvalidSubmissionError(f"the score is {value}, not a finite number (are values far too large?)")
    return value


def _quietly(
    metric: Metric, answers: Sequence[Column], predictions: Sequence[Column], spec: MLTaskSpec
) -> float:
    """Libraries warn where we refuse, and check again what has been checked; the reason says it better."""
    fast = config_context(assume_finite=True, skip_parameter_validation=True)
    with warnings.catch_warnings(), np.errstate(all="ignore"), fast:
        warnings.simplefilter("ignore")
        return metric(answers, predictions, spec.metric)


def _columns(frame: Frame, targets: Sequence[str]) -> list[Column]:
    return [_column(np.asarray(frame[name])) for name in targets]


def _column(values: Column) -> Column:
    """Numbers as float64, anything else as text."""
    if values.dtype.kind in "buif":
        return values.astype(np.float64, copy=False)
    return np.array([str(value) for value in values], dtype=object)
