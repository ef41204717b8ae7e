"""Rules between a run's reward and a task, and between a task and the catalogue of metrics."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_api.consistency import check_reward, check_task
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.trainingrun import RewardSpec

ORDER = "reward: invalid + 7 x milestone must be"
WHY = "so that any valid script outranks any failure"


def task(metric: dict[str, Any], kind: str = "Values", **reference: float) -> MLTaskSpec:
    return MLTaskSpec.model_validate(
        {
            "title": "A task",
            "description": "Text.",
            "metric": metric,
            "submission": {"targetColumns": ["y"], "kind": kind},
            "reference": {"baseline": 0.5} | reference,
        }
    )


AUC = task({"name": "roc_auc"}, "Probabilities")
RMSE = task({"name": "rmse"}, baseline=10.0, best=2.0)
R2 = task({"name": "r2"}, baseline=0.0)
OWN = task({"name": "profit", "direction": "Maximize"}, baseline=0.0, best=100.0)


class TestCheckReward:
    @pytest.mark.parametrize("good", [AUC, RMSE, R2, OWN])
    def test_the_default_reward_fits_every_task_with_a_best_score(self, good: MLTaskSpec) -> None:
        assert check_reward(RewardSpec(), good) == []

    @pytest.mark.parametrize(
        ("reward", "spec", "problem"),
        [
            (
                RewardSpec(invalid=-0.4),
                AUC,
                f"{ORDER} below -0.1, {WHY} (it is -0.05)",
            ),
            (
                RewardSpec(milestone=0.06),
                AUC,
                f"{ORDER} below -0.1, {WHY} (it is -0.08)",
            ),
            (RewardSpec(), task({"name": "rmse"}), None),
            (
                RewardSpec(),
                task({"name": "profit", "direction": "Maximize"}),
                "reference.best is required: profit has no bound that could count as 1",
            ),
            (
                RewardSpec(),
                task({"name": "roc_auc"}, "Probabilities", baseline=0.5, best=0.5),
                "reference.best 0.5 must be better than reference.baseline 0.5 (Maximize roc_auc)",
            ),
            (
                RewardSpec(),
                task({"name": "rmse"}, baseline=1.0, best=2.0),
                "reference.best 2 must be better than reference.baseline 1 (Minimize rmse)",
            ),
            (
                RewardSpec(score="Raw", invalid=-10, milestone=0.1),
                RMSE,
                "reward.score Raw: rmse has no worst value, so a failure could outrank a valid script: use Normalized",
            ),
            (
                RewardSpec(score="Raw", invalid=-10, milestone=0.1),
                R2,
                "reward.score Raw: r2 has no worst value",
            ),
            (
                RewardSpec(score="Raw", invalid=-10, milestone=0.1),
                OWN,
                "reward.score Raw: profit has no worst",
            ),
            (RewardSpec(score="Raw", invalid=-10, milestone=0.1, allow_unbounded=True), RMSE, None),
            (RewardSpec(score="Raw", invalid=-10, milestone=0.1), AUC, None),
            (
                RewardSpec(score="Raw", invalid=-0.5, milestone=0.1),
                AUC,
                f"{ORDER} below 0, {WHY} (it is 0.2)",
            ),
            (
                RewardSpec(score="Raw", invalid=-1.0, milestone=0.05),
                task({"name": "brier"}, "Probabilities", baseline=0.25),
                None if -1.0 + 0.35 < -1 else f"{ORDER} below -1, {WHY} (it is -0.65)",
            ),
        ],
    )
    def test_what_would_let_a_failure_outrank_a_valid_script_is_refused(
        self, reward: RewardSpec, spec: MLTaskSpec, problem: str | None
    ) -> None:
        found = check_reward(reward, spec)
        if problem is None:
            assert found == []
        else:
            (only,) = found
            assert only.startswith(problem)

    def test_all_problems_come_at_once(self) -> None:
        worse = task({"name": "rmse"}, baseline=1.0, best=2.0)
        assert len(check_reward(RewardSpec(invalid=0), worse)) == 2


class TestCheckTask:
    @pytest.mark.parametrize("good", [AUC, RMSE, R2, OWN])
    def test_a_good_task_has_no_problem(self, good: MLTaskSpec) -> None:
        assert check_task(good) == []

    @pytest.mark.parametrize(
        ("spec", "field"),
        [
            (task({"name": "root_mse"}), "metric.name"),
            (task({"name": "rmse", "direction": "Maximize"}), "metric.direction"),
            (task({"name": "rmse"}, "Labels"), "submission.kind"),
            (task({"name": "f1", "k": 3}, "Labels"), "metric.k"),
            (task({"name": "map_at_k", "averaging": "Micro"}, "Labels"), "metric.averaging"),
            (task({"name": "rmse"}, baseline=-1.0), "reference.baseline"),
            (task({"name": "profit", "direction": "Minimize"}, baseline=1.0, best=2.0), "reference.best"),
            (task({"name": "rmse"}, bronze=0.1, silver=0.2), "reference.silver"),
            (task({"name": "rmse"}, silver=0.1, gold=0.2), "reference.gold"),
        ],
    )
    def test_a_bad_one_has_a_problem_at_the_field(self, spec: MLTaskSpec, field: str) -> None:
        assert [each.field for each in check_task(spec)] == [field]

    def test_medals_may_be_equal(self) -> None:
        assert check_task(task({"name": "rmse"}, bronze=0.2, silver=0.2, gold=0.1)) == []

    def test_the_right_direction_may_be_written(self) -> None:
        assert check_task(task({"name": "rmse", "direction": "Minimize"})) == []
