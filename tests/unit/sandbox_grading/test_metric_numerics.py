"""The numbers of every metric: against values worked out by hand, and against scikit-learn where it has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from mlwright_api.metric_catalog import CATALOG
from mlwright_api.mltask import MetricSpec, MLTaskSpec, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError
from mlwright_sandbox.metrics import NUMERICS, RANKING, WORDS, score
from sklearn import metrics as reference

Array = npt.NDArray[Any]
ROWS = 400
RANDOM = np.random.default_rng(7)
BINARY = RANDOM.integers(0, 2, ROWS).astype(float)
PROBABILITIES = np.round(np.clip(0.3 * BINARY + 0.7 * RANDOM.random(ROWS), 0.001, 0.999), 3)
CLASSES = RANDOM.integers(0, 4, ROWS).astype(float)
GUESSES = np.where(RANDOM.random(ROWS) < 0.6, CLASSES, RANDOM.integers(0, 4, ROWS)).astype(float)
NUMBERS = RANDOM.gamma(2, 3, ROWS)
ESTIMATES = NUMBERS * RANDOM.lognormal(0, 0.3, ROWS)


def spec_of(metric: str, targets: int = 1, **parameters: Any) -> MLTaskSpec:
    kind = sorted(CATALOG[metric].kinds)[0] if metric in CATALOG else SubmissionKind.VALUES
    return MLTaskSpec(
        title="task",
        description="-",
        metric=MetricSpec(name=metric, **parameters),
        submission=SubmissionSpec(target_columns=[f"t{i}" for i in range(targets)], kind=kind),
        reference=TaskReference(baseline=0),
    )


def computed(metric: str, answers: Any, predictions: Any, **parameters: Any) -> float:
    """The score of one target column."""
    spec = spec_of(metric, **parameters)
    return score(spec, {"t0": np.array(answers)}, {"t0": np.array(predictions)})


def of_columns(metric: str, answers: list[Any], predictions: list[Any]) -> float:
    """The score of several target columns."""
    frames = [
        {f"t{i}": np.array(column, dtype=float) for i, column in enumerate(columns)}
        for columns in (answers, predictions)
    ]
    return score(spec_of(metric, len(answers)), *frames)


def test_every_metric_of_the_catalogue_has_numerics_and_the_other_way_round() -> None:
    assert NUMERICS.keys() == CATALOG.keys()
    assert CATALOG.keys() >= RANKING
    assert CATALOG.keys() >= WORDS


BY_HAND: list[tuple[str, list[Any], list[Any], float]] = [
    ("accuracy", [1, 0, 1, 1], [1, 1, 1, 0], 0.5),
    ("accuracy", ["a", "b", "c"], ["a", "b", "b"], 2 / 3),
    ("balanced_accuracy", [1, 1, 1, 0], [1, 1, 0, 0], (2 / 3 + 1) / 2),
    ("f1", [1, 1, 0, 0], [1, 0, 1, 0], 0.5),
    ("f1", ["no", "yes", "yes"], ["yes", "yes", "yes"], 0.8),
    ("precision", [1, 1, 0, 0], [1, 0, 0, 0], 1.0),
    ("recall", [1, 1, 0, 0], [1, 0, 0, 0], 0.5),
    ("precision", [1, 0], [0, 0], 0.0),
    ("mcc", [1, 1, 0, 0], [1, 1, 0, 1], 1 / math.sqrt(3)),
    ("mcc", [1, 1, 0, 0], [1, 1, 1, 1], 0.0),
    ("quadratic_weighted_kappa", [1, 2, 3], [1, 2, 3], 1.0),
    ("quadratic_weighted_kappa", [1, 2, 3], [3, 2, 1], -1.0),
    ("quadratic_weighted_kappa", [1, 2, 3], [2, 2, 2], 0.0),
    ("quadratic_weighted_kappa", [1, 3], [1, 2], 1 - 0.5 / (1 + 0.25 + 0.25)),
    ("word_jaccard", ["so very good", "Bad"], ["very good", "bad"], (2 / 3 + 1) / 2),
    ("word_jaccard", ["", "a"], ["", ""], 0.5),
    ("map_at_k", ["a", "b c"], ["b a", "c x b"], (1 / 2 + (1 + 2 / 3) / 2) / 2),
    ("map_at_k", ["a"], ["b b a"], 1 / 2),
    ("map_at_k", ["a"], [""], 0.0),
    ("recall_at_k", ["a b", "c"], ["a x y", "x y z"], 0.25),
    ("roc_auc", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.75),
    ("roc_auc", [0, 1], [0.5, 0.5], 0.5),
    ("gini", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], 0.5),
    ("average_precision", [0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], (1 + 2 / 3) / 2),
    ("log_loss", [1, 0], [0.8, 0.4], -(math.log(0.8) + math.log(0.6)) / 2),
    ("log_loss", [1.0, 0.0], [0.0, 0.0], -(math.log(1e-15) + math.log(1 - 1e-15)) / 2),
    ("brier", [1, 0], [0.8, 0.4], (0.04 + 0.16) / 2),
    ("rmse", [1, 2, 3], [1, 2, 6], math.sqrt(3)),
    ("mse", [1, 2, 3], [1, 2, 6], 3.0),
    ("rmsle", [0, math.e - 1], [0, 0], math.sqrt(0.5)),
    ("mae", [1, 2, 3], [1, 2, 6], 1.0),
    ("median_ae", [1, 2, 3], [1, 4, 9], 2.0),
    ("mape", [1, -2], [2, -1], 0.75),
    ("smape", [1, 0], [3, 0], 0.5),
    ("smape", [1], [-1], 2.0),
    ("rmspe", [2, 0, 4], [1, 5, 4], math.sqrt(0.125)),
    ("r2", [1, 2, 3], [2, 2, 2], 0.0),
    ("pearson", [1, 2, 3], [2, 4, 6], 1.0),
    ("pearson", [1, 2, 3], [1, 3, 2], 0.5),
    ("spearman", [1, 2, 3, 4], [1, 10, 100, 50], 0.8),
]


@pytest.mark.parametrize(("metric", "answers", "predictions", "expected"), BY_HAND)
def test_a_metric_has_the_value_worked_out_by_hand(
    metric: str, answers: list[Any], predictions: list[Any], expected: float
) -> None:
    assert computed(metric, answers, predictions) == pytest.approx(expected, rel=1e-12)


def test_every_single_column_metric_is_worked_out_by_hand_at_least_once() -> None:
    many_only = {
        "mean_column_roc_auc",
        "mean_column_average_precision",
        "mean_column_log_loss",
        "mcrmse",
        "mcrmsle",
    }
    assert {metric for metric, *_ in BY_HAND} | many_only == CATALOG.keys()


AGAINST_SCIKIT_LEARN: list[tuple[str, Array, Array, Callable[..., float]]] = [
    ("accuracy", CLASSES, GUESSES, reference.accuracy_score),
    ("balanced_accuracy", CLASSES, GUESSES, reference.balanced_accuracy_score),
    ("mcc", CLASSES, GUESSES, reference.matthews_corrcoef),
    ("f1", BINARY, np.rint(PROBABILITIES), reference.f1_score),
    ("f1", CLASSES, GUESSES, lambda a, p: reference.f1_score(a, p, average="macro")),
    ("precision", CLASSES, GUESSES, lambda a, p: reference.precision_score(a, p, average="macro")),
    ("recall", CLASSES, GUESSES, lambda a, p: reference.recall_score(a, p, average="macro")),
    (
        "quadratic_weighted_kappa",
        CLASSES,
        GUESSES,
        lambda a, p: reference.cohen_kappa_score(a, p, weights="quadratic"),
    ),
    ("roc_auc", BINARY, PROBABILITIES, reference.roc_auc_score),
    ("average_precision", BINARY, PROBABILITIES, reference.average_precision_score),
    ("log_loss", BINARY, PROBABILITIES, reference.log_loss),
    ("brier", BINARY, PROBABILITIES, reference.brier_score_loss),
    ("rmse", NUMBERS, ESTIMATES, reference.root_mean_squared_error),
    ("rmsle", NUMBERS, ESTIMATES, reference.root_mean_squared_log_error),
    ("mape", NUMBERS, ESTIMATES, reference.mean_absolute_percentage_error),
    ("r2", NUMBERS, ESTIMATES, reference.r2_score),
    ("pearson", NUMBERS, ESTIMATES, lambda a, p: float(np.corrcoef(a, p)[0, 1])),
    ("spearman", NUMBERS, ESTIMATES, lambda a, p: float(pd.Series(a).corr(pd.Series(p), method="spearman"))),
]


@pytest.mark.parametrize(
    ("metric", "answers", "predictions", "theirs"), AGAINST_SCIKIT_LEARN, ids=lambda value: str(value)[:12]
)
def test_a_metric_equals_scikit_learns(
    metric: str, answers: Array, predictions: Array, theirs: Callable[..., float]
) -> None:
    assert computed(metric, answers, predictions) == pytest.approx(theirs(answers, predictions), rel=1e-12)


@pytest.mark.parametrize("averaging", ["Macro", "Micro", "Weighted"])
def test_averaging_means_what_it_means_in_scikit_learn(averaging: str) -> None:
    expected = reference.f1_score(CLASSES, GUESSES, average=averaging.lower())
    assert computed("f1", CLASSES, GUESSES, averaging=averaging) == pytest.approx(expected, rel=1e-12)


def test_binary_averaging_takes_the_greater_label_as_positive() -> None:
    answers, predictions = ["<=50K", ">50K", ">50K"], ["<=50K", "<=50K", ">50K"]
    assert computed("recall", answers, predictions) == 0.5


def test_a_label_that_no_answer_has_counts_as_wrong_in_a_binary_average() -> None:
    assert computed("f1", [0, 1, 1], [7, 1, 7], averaging="Binary") == pytest.approx(2 / 3)


def test_binary_averaging_of_three_labels_is_the_tasks_fault() -> None:
    with pytest.raises(AnswersError, match="3 labels; averaging Binary needs two"):
        computed("f1", [0, 1, 2], [0, 1, 2], averaging="Binary")


def test_ratings_far_apart_weigh_as_much_as_scikit_learn_says_when_it_knows_all_ratings() -> None:
    answers, predictions = [1, 9, 1, 5], [1, 5, 9, 5]
    expected = reference.cohen_kappa_score(
        answers, predictions, weights="quadratic", labels=list(range(1, 10))
    )
    assert computed("quadratic_weighted_kappa", answers, predictions) == pytest.approx(expected)


def test_many_class_log_loss_equals_scikit_learns_and_normalizes_the_rows() -> None:
    weights = RANDOM.random((ROWS, 4)) + 0.01
    shares = weights / weights.sum(axis=1, keepdims=True)
    one_hot = np.eye(4)[CLASSES.astype(int)]
    expected = reference.log_loss(CLASSES, shares)
    assert of_columns("log_loss", [*one_hot.T], [*shares.T]) == pytest.approx(expected, rel=1e-12)
    assert of_columns("log_loss", [*one_hot.T], [*(1.01 * shares.T)]) == pytest.approx(expected, rel=1e-12)


def test_many_class_brier_is_halved_to_stay_below_one() -> None:
    worst = of_columns("brier", [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    assert worst == 1.0
    shares = [[0.7, 0.2], [0.3, 0.8]]
    assert of_columns("brier", [[1, 0], [0, 1]], shares) == pytest.approx((2 * 0.09 + 2 * 0.04) / 4)


def test_a_mean_over_columns_is_the_plain_mean() -> None:
    answers, predictions = [[0, 0, 1, 1], [1, 0, 1, 0]], [[0.1, 0.4, 0.35, 0.8], [0.9, 0.1, 0.8, 0.2]]
    assert of_columns("mean_column_roc_auc", answers, predictions) == pytest.approx((0.75 + 1) / 2)
    assert of_columns("mean_column_log_loss", [[1], [0]], [[0.5], [0.5]]) == pytest.approx(math.log(2))
    assert of_columns("mean_column_average_precision", answers, predictions) == pytest.approx((5 / 6 + 1) / 2)
    assert of_columns("mcrmse", [[1, 2], [0, 0]], [[1, 2], [3, 3]]) == pytest.approx(1.5)
    assert of_columns("mcrmsle", [[0], [0]], [[0], [math.e - 1]]) == pytest.approx(0.5)


def test_only_the_first_k_of_a_ranking_count() -> None:
    assert computed("map_at_k", ["a"], ["x a"], k=1) == 0.0
    assert computed("map_at_k", ["a"], ["x a"], k=2) == 0.5
    assert computed("map_at_k", ["a b c"], ["a b"], k=2) == 1.0
    assert computed("recall_at_k", ["a b c"], ["a b c"], k=2) == 1.0


def test_a_data_frame_will_do_and_its_other_columns_do_not_matter() -> None:
    answers = pd.DataFrame({"id": [1, 2], "t0": [1, 3]})
    predictions = pd.DataFrame({"t0": [1, 4], "x": ["a", "b"]})
    assert score(spec_of("mae"), answers, predictions) == 0.5


def test_text_labels_and_categories_of_a_data_frame_are_compared_as_text() -> None:
    answers = pd.DataFrame({"t0": pd.Categorical(["a", "b"])})
    assert score(spec_of("accuracy"), answers, pd.DataFrame({"t0": ["a", "a"]})) == 0.5


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "gini"])
def test_answers_of_one_class_are_the_tasks_fault(metric: str) -> None:
    with pytest.raises(AnswersError, match="one class only"):
        computed(metric, [1, 1, 1], [0.1, 0.2, 0.3])


@pytest.mark.parametrize(
    ("metric", "answers", "complaint"),
    [
        ("roc_auc", [0, 2], "must be 0 or 1"),
        ("log_loss", [0, 0.5], "must be 0 or 1"),
        ("quadratic_weighted_kappa", [1, 1], "one rating only"),
        ("quadratic_weighted_kappa", [1, 1.5], "not whole-numbered"),
        ("quadratic_weighted_kappa", ["a", "b"], "not whole-numbered"),
        ("rmsle", [1, -1], "negative values"),
        ("mape", [1, 0], "have zeros"),
        ("rmspe", [0, 0], "all answers are zero"),
        ("r2", [2, 2], "constant"),
        ("pearson", [2, 2], "constant"),
        ("spearman", [2, 2], "constant"),
        ("map_at_k", ["a", ""], "row without a label"),
    ],
)
def test_answers_that_no_prediction_could_match_are_the_tasks_fault(
    metric: str, answers: list[Any], complaint: str
) -> None:
    with pytest.raises(AnswersError, match=complaint):
        computed(metric, answers, answers)


def test_rows_that_are_not_one_hot_are_the_tasks_fault() -> None:
    with pytest.raises(AnswersError, match="exactly one 1 in every row"):
        of_columns("log_loss", [[1, 1], [0, 1]], [[0.5, 0.5], [0.5, 0.5]])


@pytest.mark.parametrize("metric", ["pearson", "spearman"])
def test_constant_predictions_have_no_correlation_and_are_refused(metric: str) -> None:
    with pytest.raises(InvalidSubmissionError, match="predictions are constant"):
        computed(metric, [1, 2, 3], [5, 5, 5])


def test_negative_predictions_are_refused_where_a_logarithm_is_taken() -> None:
    with pytest.raises(InvalidSubmissionError, match="predictions are negative"):
        computed("rmsle", [1, 2], [1, -0.5])


@pytest.mark.parametrize("metric", ["rmse", "mse", "r2", "rmspe"])
def test_a_score_that_overflows_is_refused_not_returned(metric: str) -> None:
    with pytest.raises(InvalidSubmissionError, match="not a finite number"):
        computed(metric, [1.0, 2.0], [1e308, -1e308])


def test_probabilities_of_zero_for_what_happened_cost_a_finite_amount() -> None:
    assert computed("log_loss", [1.0, 0.0], [0.0, 1.0]) == pytest.approx(34.54, abs=0.01)


def test_a_metric_outside_the_catalogue_needs_the_tasks_own_grader() -> None:
    with pytest.raises(
        AnswersError, match=r"metric profit has no numerics of ours: the task needs a grade\.py"
    ):
        computed("profit", [1], [1])
