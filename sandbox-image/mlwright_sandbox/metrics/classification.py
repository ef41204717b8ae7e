"""Metrics of labels: accuracy and its kin, F1, MCC, quadratic weighted kappa."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from mlwright_api.mltask import MetricSpec
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    f1_score,
    matthews_corrcoef,
    precision_score,
    recall_score,
)

from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.metrics.columns import Column, Metric, described, single

_AVERAGED = {"f1": f1_score, "precision": precision_score, "recall": recall_score}
Codes = npt.NDArray[np.intp]


def codes(answers: Column, predictions: Column) -> tuple[Codes, Codes]:
    """Labels as whole numbers in the order of the labels; text and fractions alike."""
    _, coded = np.unique(np.concatenate([answers, predictions]), return_inverse=True)
    return coded[: len(answers)], coded[len(answers) :]


def accuracy(answers: Column, predictions: Column) -> float:
    """Share of equal labels."""
    return float(accuracy_score(*codes(answers, predictions)))


def balanced_accuracy(answers: Column, predictions: Column) -> float:
    """Mean recall over the classes that the answers have."""
    return float(balanced_accuracy_score(*codes(answers, predictions)))


def mcc(answers: Column, predictions: Column) -> float:
    """Matthews correlation; 0 for constant predictions."""
    return float(matthews_corrcoef(*codes(answers, predictions)))


def averaged(name: str) -> Metric:
    """A class that is never predicted counts as 0; without averaging it is Binary for two labels, else Macro.

    Binary takes the greater label as positive.
    """
    measure = _AVERAGED[name]

    def score(answers: Sequence[Column], predictions: Sequence[Column], spec: MetricSpec) -> float:
        truth, guess = codes(answers[0], predictions[0])
        classes = np.unique(truth)
        average = spec.averaging or ("Binary" if len(classes) <= 2 else "Macro")
        if average != "Binary":
            return float(measure(truth, guess, average=average.lower(), zero_division=0))
        if len(classes) != 2:
            raise AnswersError(f"the answers have {len(classes)} labels; averaging Binary needs two")
        positive = classes[1]
        return float(measure(truth == positive, guess == positive, zero_division=0))

    return described(score, averaged.__doc__)


def quadratic_weighted_kappa(answers: Column, predictions: Column) -> float:
    """Cohen's kappa with quadratic weights, of whole-numbered ratings.

    In closed form: 1 - E(a - p)^2 / E'(a - p)^2, where E' pairs the two at random.
    """
    if answers.dtype == object or not np.array_equal(answers, np.rint(answers)):
        raise AnswersError("the answers are not whole-numbered ratings")
    if np.ptp(answers) == 0:
        raise AnswersError("the answers have one rating only, for which the metric is not defined")
    apart = np.var(answers) + np.var(predictions) + (np.mean(answers) - np.mean(predictions)) ** 2
    return float(1 - np.mean((answers - predictions) ** 2) / apart)


CLASSIFICATION: dict[str, Metric] = {
    "accuracy": single(accuracy),
    "balanced_accuracy": single(balanced_accuracy),
    "mcc": single(mcc),
    "quadratic_weighted_kappa": single(quadratic_weighted_kappa),
    **{name: averaged(name) for name in _AVERAGED},
}
