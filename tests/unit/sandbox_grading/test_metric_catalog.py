"""The catalogue: names, directions, bounds, and which submissions a metric can score."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_api.metric_catalog import (
    CATALOG,
    MetricError,
    metric_info,
    metric_problems,
    nearest_metric,
)
from mlwright_api.mltask import Direction, MetricSpec, SubmissionKind, SubmissionSpec


def submission(kind: SubmissionKind, columns: int = 1) -> SubmissionSpec:
    return SubmissionSpec(target_columns=[f"t{i}" for i in range(columns)], kind=kind)


def problems(kind: SubmissionKind, columns: int = 1, **metric: Any) -> list[str]:
    return list(metric_problems(MetricSpec(**metric), submission(kind, columns)))


def test_a_name_is_the_key_of_its_entry() -> None:
    assert all(name == info.name for name, info in CATALOG.items())


def test_the_best_score_is_the_bound_in_the_metrics_direction() -> None:
    assert CATALOG["roc_auc"].best == 1.0
    assert CATALOG["rmse"].best == 0.0
    assert CATALOG["r2"].lower is None
    assert CATALOG["r2"].best == 1.0


def test_the_sign_turns_any_metric_into_a_gain() -> None:
    assert CATALOG["accuracy"].sign == 1
    assert CATALOG["log_loss"].sign == -1


@pytest.mark.parametrize("info", CATALOG.values(), ids=lambda info: info.name)
def test_bounds_are_in_order_and_perfection_is_bounded(info: Any) -> None:
    assert info.best is not None
    assert info.lower is None or info.upper is None or info.lower < info.upper
    assert info.kinds


def test_losses_are_minimized_and_gains_maximized() -> None:
    minimized = {name for name, info in CATALOG.items() if info.direction is Direction.MINIMIZE}
    assert minimized == {
        "log_loss",
        "mean_column_log_loss",
        "brier",
        "rmse",
        "mse",
        "mcrmse",
        "rmsle",
        "mcrmsle",
        "mae",
        "median_ae",
        "mape",
        "smape",
        "rmspe",
    }


def test_an_unknown_metric_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(MetricError, match=r"metric roc_acu is not in the catalogue; did you mean roc_auc\?"):
        metric_info(MetricSpec(name="roc_acu"))


def test_an_unknown_metric_unlike_any_other_has_no_suggestion() -> None:
    assert nearest_metric("zzzz") is None
    with pytest.raises(MetricError, match=r"not in the catalogue \(a task with its own grade\.py"):
        metric_info(MetricSpec(name="zzzz"))


def test_a_metric_of_a_tasks_own_has_the_direction_that_it_is_given_and_no_bounds() -> None:
    info = metric_info(MetricSpec(name="profit_per_call", direction=Direction.MAXIMIZE))
    assert (info.title, info.direction, info.lower, info.upper, info.best) == (
        "profit per call",
        Direction.MAXIMIZE,
        None,
        None,
        None,
    )
    assert info.kinds == frozenset(SubmissionKind)


def test_a_direction_that_agrees_with_the_catalogue_changes_nothing() -> None:
    assert metric_info(MetricSpec(name="rmse", direction=Direction.MINIMIZE)) is CATALOG["rmse"]


def test_a_direction_against_the_catalogue_is_refused() -> None:
    with pytest.raises(MetricError, match="metric rmse has the direction Minimize"):
        metric_info(MetricSpec(name="rmse", direction=Direction.MAXIMIZE))


def test_a_fitting_submission_has_no_problems() -> None:
    assert problems(SubmissionKind.PROBABILITIES, name="roc_auc") == []
    assert problems(SubmissionKind.PROBABILITIES, 5, name="log_loss") == []
    assert problems(SubmissionKind.LABELS, name="f1", averaging="Macro") == []
    assert problems(SubmissionKind.LABELS, name="map_at_k", k=3) == []


def test_a_kind_that_a_metric_cannot_score_is_a_problem() -> None:
    assert problems(SubmissionKind.LABELS, name="roc_auc") == [
        "metric roc_auc scores Probabilities or Values, not Labels (submission.kind)"
    ]


def test_several_columns_for_a_metric_of_one_are_a_problem() -> None:
    assert problems(SubmissionKind.LABELS, 2, name="accuracy") == [
        "metric accuracy scores one target column, not 2 (submission.targetColumns)"
    ]


def test_parameters_that_a_metric_does_not_read_are_problems() -> None:
    assert problems(SubmissionKind.VALUES, name="rmse", averaging="Macro", k=3) == [
        "metric.averaging means nothing to rmse",
        "metric.k means nothing to rmse",
    ]


def test_a_tasks_own_metric_may_use_any_parameter() -> None:
    assert problems(SubmissionKind.VALUES, 3, name="own", direction="Maximize", k=3) == []
