"""Whether a valid submission says nothing of its own: constant, or the sample submission again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from mlwright_api.mltask import MLTaskSpec, SubmissionKind
from scipy.stats import rankdata

from mlwright_sandbox.metrics import RANKING
from mlwright_sandbox.metrics.columns import Column


def trivial_reason(
    spec: MLTaskSpec, predictions: Mapping[str, Column], sample: Mapping[str, Column]
) -> str | None:
    """Why the predictions are trivial, or None; over all expected rows, whatever their split.

    Trivial is what is constant in every target column, what equals the sample submission in every cell, and,
    for probabilities and for metrics that only see the order of the rows, what orders the rows in every target
    column as the sample does, ties included.
    """
    if all(_constant(column) for column in predictions.values()):
        return "the predictions are constant: every target column has one value for all rows"
    if all(np.array_equal(column, sample[name]) for name, column in predictions.items()):
        return "the predictions equal the sample submission"
    ordered = spec.submission.kind is SubmissionKind.PROBABILITIES or spec.metric.name in RANKING
    if ordered and all(_same_order(column, sample[name]) for name, column in predictions.items()):
        return "the predictions order the rows as the sample submission does"
    return None


def _constant(column: Column) -> bool:
    return bool((column == column[0]).all())


def _same_order(column: Column, other: Column) -> bool:
    return np.array_equal(rankdata(column), rankdata(other))
