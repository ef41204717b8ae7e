"""Means, intervals and paired differences over seeds."""

from __future__ import annotations

import math

import pytest
from mlwright_api.mltask import Split
from mlwright_trainer.errors import InternalError

from benchmarks.quickstart.comparison import differences, require_shared_start, summaries
from benchmarks.quickstart.records import ArmRecord, BestRecord, FreshRecord
from benchmarks.quickstart.settings import Arm

T_2 = 4.302652729911275
"""Student's t at 97.5 % with two degrees of freedom."""


def record(
    seed: int,
    arm: Arm,
    score: float,
    *,
    task: str = "churn",
    best: float | None = 0.9,
    digest: str = "sha256:1",
) -> ArmRecord:
    fresh = FreshRecord(
        n=256,
        valid_fraction=0.75,
        score_mean=score,
        score_with_failures=0.5 + score / 4,
        distinct_scripts=200,
        execution_seconds_mean=0.5,
    )
    scores = {} if best is None else {Split.FINAL: best}
    found = BestRecord(rollout="train-1", family="boosting", scores=scores, final_interval=None)
    return ArmRecord(
        seed=seed,
        task=task,
        arm=arm,
        fresh=fresh,
        best=found if scores else None,
        sandbox_seconds=100.0 + seed,
        budget_seconds=None,
        capped=False,
        rounds=16,
        scripts=768,
        wall_seconds=200.0,
        fine_tuning_seconds=90.0,
        initial_digest=digest,
        weights_digest="sha256:2",
    )


def test_a_mean_over_three_seeds_has_student_s_interval() -> None:
    [summary] = summaries([record(seed, Arm.RL, 0.8 + seed / 100) for seed in (1, 2, 3)])
    found = summary.measures["scoreMean"]
    assert found is not None
    assert found.n == 3
    assert found.mean == pytest.approx(0.82)
    half = T_2 * 0.01 / math.sqrt(3)
    assert found.interval == pytest.approx((0.82 - half, 0.82 + half))
    assert summary.seeds == [1, 2, 3]


def test_one_seed_has_a_mean_and_no_interval() -> None:
    [summary] = summaries([record(1, Arm.RL, 0.8)])
    found = summary.measures["scoreMean"]
    assert found is not None
    assert found.interval is None


def test_a_difference_is_taken_within_seeds_so_that_what_seeds_share_cancels() -> None:
    records = [record(seed, Arm.RL, 0.5 + seed / 10) for seed in (1, 2, 3)]
    records += [record(seed, Arm.SHUFFLED, 0.4 + seed / 10) for seed in (1, 2, 3)]
    [found] = differences(records)
    assert (found.first, found.second) == (Arm.RL, Arm.SHUFFLED)
    score = found.measures["scoreMean"]
    assert score is not None
    assert score.mean == pytest.approx(0.1)
    assert score.interval == pytest.approx((0.1, 0.1))


def test_seeds_that_only_one_arm_has_are_left_out_of_the_difference() -> None:
    records = [record(1, Arm.RL, 0.9), record(2, Arm.RL, 0.7), record(2, Arm.BEST_OF_N, 0.6)]
    [found] = differences(records)
    assert found.seeds == [2]
    score = found.measures["scoreMean"]
    assert score is not None
    assert score.mean == pytest.approx(0.1)


def test_tasks_are_never_mixed() -> None:
    records = [record(1, Arm.RL, 0.9), record(1, Arm.BEST_OF_N, 0.6, task="credit")]
    assert differences(records) == []
    assert [(one.task, one.arm) for one in summaries(records)] == [
        ("churn", Arm.RL),
        ("credit", Arm.BEST_OF_N),
    ]


def test_shuffled_rewards_are_compared_with_no_learning_at_all() -> None:
    records = [record(1, Arm.SHUFFLED, 0.6), record(1, Arm.BEST_OF_N, 0.6)]
    assert [(one.first, one.second) for one in differences(records)] == [(Arm.SHUFFLED, Arm.BEST_OF_N)]


def test_an_arm_without_a_best_script_counts_in_everything_else() -> None:
    [summary] = summaries([record(1, Arm.RL, 0.8, best=None), record(2, Arm.RL, 0.8)])
    best, score = summary.measures["bestFinal"], summary.measures["scoreMean"]
    assert best is not None
    assert score is not None
    assert (best.n, score.n) == (1, 2)


def test_arms_of_a_seed_must_have_begun_with_the_same_weights() -> None:
    require_shared_start([record(1, Arm.RL, 0.8), record(2, Arm.RL, 0.8, digest="sha256:9")])
    with pytest.raises(InternalError, match="seed 1"):
        require_shared_start([record(1, Arm.RL, 0.8), record(1, Arm.SHUFFLED, 0.8, digest="sha256:9")])
