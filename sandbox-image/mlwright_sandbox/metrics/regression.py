"""Metrics of numbers: errors, percentage errors, R2, correlations; several columns count as their mean."""

from __future__ import annotations

import numpy as np
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import (
    mean_absolute_error,
    mean_absolute_percentage_error,
    mean_squared_error,
    median_absolute_error,
    r2_score,
    root_mean_squared_error,
    root_mean_squared_log_error,
)

from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError
from mlwright_sandbox.metrics.columns import Column, Metric, mean_over_columns, require_spread


def rmse(answers: Column, predictions: Column) -> float:
    """Root mean squared error."""
    return float(root_mean_squared_error(answers, predictions))


def mse(answers: Column, predictions: Column) -> float:
    """Mean squared error."""
    return float(mean_squared_error(answers, predictions))


def mae(answers: Column, predictions: Column) -> float:
    """Mean absolute error."""
    return float(mean_absolute_error(answers, predictions))


def median_ae(answers: Column, predictions: Column) -> float:
    """Median absolute error."""
    return float(median_absolute_error(answers, predictions))


def rmsle(answers: Column, predictions: Column) -> float:
    """Root mean squared error of log(1 + value); neither may be negative."""
    if (answers < 0).any():
        raise AnswersError("the answers have negative values, for which the metric is not defined")
    if (predictions < 0).any():
        raise InvalidSubmissionError("predictions are negative, for which the metric is not defined")
    return float(root_mean_squared_log_error(answers, predictions))


def mape(answers: Column, predictions: Column) -> float:
    """Mean absolute percentage error, as a fraction; no answer may be zero."""
    if (answers == 0).any():
        raise AnswersError("the answers have zeros, for which the metric is not defined")
    return float(mean_absolute_percentage_error(answers, predictions))


def smape(answers: Column, predictions: Column) -> float:
    """Mean of 2 |p - a| / (|p| + |a|), where 0 / 0 counts as 0."""
    scale = np.abs(answers) + np.abs(predictions)
    apart = 2 * np.abs(answers - predictions)
    return float(np.divide(apart, scale, out=np.zeros_like(apart), where=scale > 0).mean())


def rmspe(answers: Column, predictions: Column) -> float:
    """Root mean squared percentage error, as a fraction; rows whose answer is 0 are left out, as on Kaggle."""
    counted = answers != 0
    if not counted.any():
        raise AnswersError("all answers are zero, for which the metric is not defined")
    return float(np.sqrt(np.mean((1 - predictions[counted] / answers[counted]) ** 2)))


def r2(answers: Column, predictions: Column) -> float:
    """Coefficient of determination: 1 - squared error / variance of the answers."""
    if len(answers) < 2 or np.ptp(answers) == 0:
        raise AnswersError("the answers are constant, for which the metric is not defined")
    return float(r2_score(answers, predictions))


def pearson(answers: Column, predictions: Column) -> float:
    """Linear correlation; not defined for constant predictions."""
    require_spread(answers, predictions)
    return float(pearsonr(answers, predictions).statistic)


def spearman(answers: Column, predictions: Column) -> float:
    """Correlation of ranks, ties averaged; not defined for constant predictions."""
    require_spread(answers, predictions)
    return float(spearmanr(answers, predictions).statistic)


REGRESSION: dict[str, Metric] = {
    "rmse": mean_over_columns(rmse),
    "mse": mean_over_columns(mse),
    "mcrmse": mean_over_columns(rmse),
    "rmsle": mean_over_columns(rmsle),
    "mcrmsle": mean_over_columns(rmsle),
    "mae": mean_over_columns(mae),
    "median_ae": mean_over_columns(median_ae),
    "mape": mean_over_columns(mape),
    "smape": mean_over_columns(smape),
    "rmspe": mean_over_columns(rmspe),
    "r2": mean_over_columns(r2),
    "pearson": mean_over_columns(pearson),
    "spearman": mean_over_columns(spearman),
}
