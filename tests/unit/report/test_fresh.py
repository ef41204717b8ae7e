"""Before and after: which samples count, on which split, and what the sentence dares to say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_trainer.ledger import RolloutRow, SealedScore
from mlwright_trainer.report.fresh import fresh_report
from mlwright_trainer.report.scale import RunScale, TaskScale

MakeRow = Callable[..., RolloutRow]


@pytest.fixture
def scale(builder: ModuleType) -> RunScale:
    return RunScale({"churn": TaskScale.of("churn", builder.task_spec())})


@pytest.fixture
def losses(builder: ModuleType) -> RunScale:
    """A task whose metric is better when lower."""
    return RunScale({"churn": TaskScale.of("churn", builder.task_spec("rmse"))})


def row(
    id: str, purpose: str, outcome: Outcome | None, score: float | None = None, **changes: Any
) -> RolloutRow:
    scores = {} if score is None else {Split.REWARD: score, Split.SELECTION: score - 0.01}
    values: dict[str, Any] = {
        "id": id, "purpose": purpose, "round": 0, "position": 0, "task": "churn", "prompt_kind": "draft",
        "parent": None, "policy_version": 0, "response_tokens": 3, "response": id, "script": id, "tree": id,
        "sampled_at": 1.0, "launched_at": 2.0, "window": None, "window_offset": None,
        "status": RolloutStatus(outcome=outcome, scores=scores), "reward": 0.0, "closed_at": 3.0, "batch": None,
    }  # fmt: skip
    return RolloutRow(**{**values, **changes})


def group(purpose: str, scores: list[float], failures: int = 0) -> list[RolloutRow]:
    good = [row(f"{purpose}{i}", purpose, Outcome.SCORED, score) for i, score in enumerate(scores)]
    return good + [row(f"{purpose}f{i}", purpose, Outcome.ERROR) for i in range(failures)]


def test_cancelled_lost_and_open_samples_are_counted_apart(scale: RunScale) -> None:
    rows = [
        *group("Before", [0.8, 0.9], failures=1),
        row("c", "Before", Outcome.CANCELLED),
        row("i", "Before", Outcome.INFRASTRUCTURE_FAILED),
        row("o", "Before", None),
    ]
    before = fresh_report(rows, [], scale).before
    assert before is not None
    assert (before.n, before.valid, before.excluded, before.pending) == (3, 2, 2, 1)
    assert before.valid_fraction == pytest.approx(2 / 3)


def test_failures_count_as_the_baseline_in_one_mean_and_not_at_all_in_the_other(scale: RunScale) -> None:
    before = fresh_report(group("Before", [0.8, 0.9], failures=2), [], scale).before
    assert before is not None
    assert before.score_mean == pytest.approx(0.85)
    assert before.score_with_failures == pytest.approx((0.8 + 0.9 + 0.5 + 0.5) / 4)


def test_training_rows_are_not_fresh(scale: RunScale) -> None:
    fresh = fresh_report(group("Train", [0.9] * 5), [], scale)
    assert [fresh.before, fresh.after, fresh.difference, fresh.histogram] == [None] * 4


def sealed(rows: list[RolloutRow], loss: float = 0.02) -> list[SealedScore]:
    return [
        SealedScore(each.id, each.id, "d", "Valid", score=each.status.scores[Split.REWARD] - loss)
        for each in rows
        if each.outcome is Outcome.SCORED
    ]


def test_final_is_compared_where_every_valid_sample_was_read_on_it(scale: RunScale) -> None:
    rows = group("Before", [0.7, 0.8], 1) + group("After", [0.9, 0.92])
    fresh = fresh_report(rows, sealed(rows), scale)
    assert fresh.before is not None
    assert fresh.after is not None
    assert fresh.before.score_split is fresh.after.score_split is Split.FINAL
    assert fresh.after.score_mean == pytest.approx(0.89)
    assert fresh.after.splits[Split.REWARD].mean == pytest.approx(0.91)


def test_reward_is_compared_for_both_where_one_valid_sample_misses_final(scale: RunScale) -> None:
    rows = group("Before", [0.7, 0.8]) + group("After", [0.9, 0.92])
    fresh = fresh_report(rows, sealed(rows)[1:], scale)
    assert fresh.before is not None
    assert fresh.after is not None
    assert fresh.before.score_split is fresh.after.score_split is Split.REWARD


def test_the_best_scripts_reading_of_final_is_not_one_of_a_fresh_sample(scale: RunScale) -> None:
    rows = group("Before", [0.7])
    fresh = fresh_report(rows, [SealedScore("best", "Before0", "d", "Valid", score=0.99)], scale)
    assert fresh.before is not None
    assert fresh.before.score_split is Split.REWARD


def test_a_submission_that_final_refused_is_a_failure_there(scale: RunScale) -> None:
    rows = group("Before", [0.7, 0.8])
    found = sealed(rows, loss=0)
    found[1] = replace(found[1], verdict="Invalid", score=None)
    before = fresh_report(rows, found, scale).before
    assert before is not None
    assert before.score_mean == pytest.approx(0.7)
    assert before.score_with_failures == pytest.approx((0.7 + 0.5) / 2)


def test_a_clear_rise_is_called_one(scale: RunScale) -> None:
    rows = group("Before", [0.70 + i / 1000 for i in range(30)], 30)
    rows += group("After", [0.90 + i / 1000 for i in range(58)], 2)
    difference = fresh_report(rows, [], scale).difference
    assert difference is not None
    assert difference.valid_fraction == pytest.approx(58 / 60 - 0.5)
    assert difference.sentence.startswith("The valid fraction rose from 0.500 [")
    assert "the mean roc_auc of valid samples on Reward rose from 0.71" in difference.sentence


def test_a_change_whose_interval_holds_zero_is_not_called_one(scale: RunScale) -> None:
    rows = group("Before", [0.7, 0.9, 0.8], 2) + group("After", [0.71, 0.9, 0.82], 1)
    difference = fresh_report(rows, [], scale).difference
    assert difference is not None
    assert difference.sentence.count("shows no clear change") == 2
    assert "rose" not in difference.sentence


def test_where_lower_is_better_a_fall_is_said_to_be_better(losses: RunScale) -> None:
    rows = group("Before", [0.9 + i / 500 for i in range(20)]) + group(
        "After", [0.5 + i / 500 for i in range(20)]
    )
    difference = fresh_report(rows, [], losses).difference
    assert difference is not None
    assert "fell from 0.919 [" in difference.sentence
    assert difference.sentence.endswith("which is better.")


def test_a_fall_of_the_valid_fraction_is_said_to_be_worse(scale: RunScale) -> None:
    rows = group("Before", [0.8] * 40) + group("After", [0.8] * 10, 30)
    difference = fresh_report(rows, [], scale).difference
    assert difference is not None
    assert difference.sentence.startswith("The valid fraction fell from 1.000 [")
    assert ", which is worse" in difference.sentence


def test_nothing_valid_can_still_be_compared(scale: RunScale) -> None:
    fresh = fresh_report(group("Before", [], 5) + group("After", [], 5), [], scale)
    assert fresh.before is not None
    assert fresh.before.score_mean is None
    assert fresh.before.score_with_failures == 0.5
    assert fresh.difference is not None
    assert fresh.difference.score_mean is None
    assert fresh.histogram is None


def test_evaluations_come_one_a_round_in_order(scale: RunScale) -> None:
    rows = [
        row(
            f"e{number}{i}",
            "Evaluation",
            Outcome.SCORED,
            0.7 + number / 10,
            round=number,
            policy_version=4 * number,
        )
        for number in (1, 0)
        for i in range(3)
    ]
    evaluations = fresh_report(rows, [], scale).evaluations
    assert [each.policy_version for each in evaluations] == [0, 4]
    assert [each.score_mean for each in evaluations] == pytest.approx([0.7, 0.8])


def test_every_score_is_in_the_histogram_wild_ones_in_its_outer_bins(losses: RunScale) -> None:
    rows = group("Before", [*(0.5 + i / 100 for i in range(150)), 1e9], 3) + group("After", [0.4] * 50)
    histogram = fresh_report(rows, [], losses).histogram
    assert histogram is not None
    assert sum(histogram.before) == 151
    assert sum(histogram.after) == 50
    assert (histogram.failures_before, histogram.failures_after) == (3, 0)
    assert histogram.edges[-1] < 3
    assert histogram.before[-1] >= 1


def test_several_tasks_share_one_axis_from_baseline_to_best(builder: ModuleType) -> None:
    tasks = {
        "churn": TaskScale.of("churn", builder.task_spec()),
        "houses": TaskScale.of("houses", builder.task_spec("rmse")),
    }
    rows = [
        row("a", "Before", Outcome.SCORED, 0.9318),
        row("b", "Before", Outcome.SCORED, 0.75, task="houses"),
        row("c", "Before", Outcome.ERROR, task="houses"),
    ]
    before = fresh_report(rows, [], RunScale(tasks)).before
    assert before is not None
    assert before.score_mean == pytest.approx((1.0 + 0.5) / 2)
    assert before.score_with_failures == pytest.approx((1.0 + 0.5 + 0.0) / 3)


def test_a_whole_run_is_compared_on_final(make_run: Callable[..., Path]) -> None:
    from mlwright_trainer.report import RunReport, load_report

    report = load_report([make_run()])
    assert isinstance(report, RunReport)
    assert report.fresh.difference is not None
    assert report.fresh.before is not None
    assert report.fresh.before.score_split is Split.FINAL
    assert report.fresh.before.n == 64
    assert report.fresh.difference.score_with_failures is not None
    assert report.fresh.difference.score_with_failures > 0
