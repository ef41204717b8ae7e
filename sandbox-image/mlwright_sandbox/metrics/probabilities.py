"""Metrics of probabilities and of scores that order the rows: AUC, average precision, log loss, Brier."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from mlwright_api.mltask import MetricSpec
from scipy.stats import rankdata
from sklearn.metrics import average_precision_score

from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.metrics.columns import (
    Column,
    Metric,
    Numbers,
    matrix,
    mean_over_columns,
    require_binary,
    require_both_classes,
    single,
)

LOG_LOSS_CLIP = 1e-15
"""Probabilities are moved into [clip, 1 - clip] before the logarithm, as Kaggle does."""


def roc_auc(answers: Column, predictions: Column) -> float:
    """Share of pairs of a positive and a negative row that are in the right order; ties count half.

    Needs both classes.
    """
    require_both_classes(answers)
    # From the ranks, as Mann and Whitney: a tenth of scikit-learn's time, which is most of a grading's.
    positive = answers == 1
    count = int(positive.sum())
    above = rankdata(predictions)[positive].sum() - count * (count + 1) / 2
    return float(above / (count * (len(answers) - count)))


def gini(answers: Column, predictions: Column) -> float:
    """Normalized Gini coefficient of a binary target."""
    return 2 * roc_auc(answers, predictions) - 1


def average_precision(answers: Column, predictions: Column) -> float:
    """Sum over thresholds of precision times the gain in recall, without interpolation."""
    require_both_classes(answers)
    return float(average_precision_score(answers, predictions))


def binary_log_loss(answers: Column, predictions: Column) -> float:
    """Mean negative log-likelihood in nats of answers 0 or 1."""
    require_binary(answers)
    return _mean_log_loss(np.where(answers == 1, predictions, 1 - predictions))


def log_loss(answers: Sequence[Column], predictions: Sequence[Column], _spec: MetricSpec) -> float:
    """Binary for one target column, else many-class: one column a class, rows normalized to sum to one."""
    if len(answers) == 1:
        return binary_log_loss(answers[0], predictions[0])
    return _mean_log_loss(normalized(matrix(predictions))[_one_hot(answers) == 1])


def brier(answers: Sequence[Column], predictions: Sequence[Column], _spec: MetricSpec) -> float:
    """Mean squared distance to the answers; for many classes summed over them and halved, so in [0, 1]."""
    if len(answers) == 1:
        require_binary(answers[0])
        return float(np.mean((predictions[0] - answers[0]) ** 2))
    squares = (normalized(matrix(predictions)) - _one_hot(answers)) ** 2
    return float(np.mean(squares.sum(axis=1)) / 2)


def normalized(rows: Numbers) -> Numbers:
    """Every row divided by its sum; shape (rows, classes) both."""
    sums: Numbers = rows.sum(axis=1, keepdims=True)
    return rows / sums


def _mean_log_loss(of_truth: Numbers) -> float:
    return float(-np.log(np.clip(of_truth, LOG_LOSS_CLIP, 1 - LOG_LOSS_CLIP)).mean())


def _one_hot(answers: Sequence[Column]) -> Numbers:
    truth = matrix(answers)
    require_binary(truth)
    if not (truth.sum(axis=1) == 1).all():
        raise AnswersError("the answers must have exactly one 1 in every row of the target columns")
    return truth


PROBABILITIES: dict[str, Metric] = {
    "roc_auc": single(roc_auc),
    "mean_column_roc_auc": mean_over_columns(roc_auc),
    "average_precision": single(average_precision),
    "mean_column_average_precision": mean_over_columns(average_precision),
    "gini": single(gini),
    "log_loss": log_loss,
    "mean_column_log_loss": mean_over_columns(binary_log_loss),
    "brier": brier,
}
