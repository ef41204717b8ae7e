"""Outcome and score to reward, value by value."""

from __future__ import annotations

import math

import pytest
from mlwright_api.metric_catalog import CATALOG
from mlwright_api.mltask import MLTaskSpec, TaskReference
from mlwright_api.results import MILESTONES
from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import RewardSpec
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.rewards.reward import TAIL, reward_of, validate_reward

AUC = TaskReference(baseline=0.5, best=0.9)
RMSE = TaskReference(baseline=10.0, best=2.0)
DEFAULTS = RewardSpec()


def earned(
    outcome: Outcome,
    score: float | None = None,
    *,
    milestones: tuple[str, ...] = (),
    reward: RewardSpec = DEFAULTS,
    metric: str = "roc_auc",
    reference: TaskReference = AUC,
) -> float | None:
    return reward_of(
        outcome=outcome,
        score=score,
        milestones=milestones,
        reward=reward,
        info=CATALOG[metric],
        reference=reference,
    )


def a_task(metric: str, baseline: float, best: float | None = None) -> MLTaskSpec:
    return MLTaskSpec.model_validate(
        {
            "title": "A task",
            "description": "Predict.",
            "metric": {"name": metric, "direction": None if metric in CATALOG else "Maximize"},
            "submission": {"targetColumns": ["y"], "kind": "Values"},
            "reference": {"baseline": baseline, "best": best},
        }
    )


def check(reward: RewardSpec, metric: str, baseline: float, best: float | None = None) -> None:
    validate_reward(reward, a_task(metric, baseline, best))


@pytest.mark.parametrize(
    ("score", "expected"),
    [(0.5, 0.0), (0.7, 0.5), (0.9, 1.0), (0.94, 1 + 0.1 / 2), (0.46, -0.1 / 2)],
)
def test_normalized_is_linear_between_baseline_and_best_and_bent_beyond(
    score: float, expected: float
) -> None:
    assert earned(Outcome.SCORED, score) == pytest.approx(expected)


@pytest.mark.parametrize(("score", "expected"), [(10.0, 0.0), (6.0, 0.5), (2.0, 1.0), (10.8, -0.05)])
def test_the_sign_is_flipped_where_lower_is_better(score: float, expected: float) -> None:
    assert earned(Outcome.SCORED, score, metric="rmse", reference=RMSE) == pytest.approx(expected)


def test_a_hopeless_log_loss_still_tells_bad_from_worse_and_stays_above_every_failure() -> None:
    reference = TaskReference(baseline=0.69, best=0.3)
    bad, worse, absurd = (
        earned(Outcome.SCORED, score, metric="log_loss", reference=reference)
        for score in (11.48, 12.0, 1e300)
    )
    best_failure = earned(Outcome.ERROR, milestones=MILESTONES)
    assert bad is not None
    assert worse is not None
    assert absurd is not None
    assert best_failure is not None
    assert bad > worse > absurd >= -TAIL > best_failure


def test_the_metrics_bound_is_the_best_score_where_the_task_names_none() -> None:
    assert earned(Outcome.SCORED, 0.75, reference=TaskReference(baseline=0.5)) == pytest.approx(0.5)


def test_the_tail_continues_the_line_without_a_kink() -> None:
    inside = earned(Outcome.SCORED, 0.9 - 1e-6)
    outside = earned(Outcome.SCORED, 0.9 + 1e-6)
    assert inside is not None
    assert outside is not None
    assert outside - 1 == pytest.approx(1 - inside, rel=1e-4)


@pytest.mark.parametrize("outcome", [Outcome.TRIVIAL, Outcome.UNCHANGED])
def test_trivial_and_unchanged_earn_the_baseline_whatever_they_scored(outcome: Outcome) -> None:
    assert earned(outcome, 0.9) == 0.0
    assert earned(outcome, None, reward=RewardSpec(score="Raw")) == 0.5


def test_raw_is_the_score_in_the_metrics_direction() -> None:
    raw = RewardSpec(score="Raw", invalid=-10, milestone=0.1, allow_unbounded=True)
    assert earned(Outcome.SCORED, 0.8, reward=raw) == 0.8
    assert earned(Outcome.SCORED, 11.48, reward=raw, metric="log_loss") == -11.48
    assert earned(Outcome.TRIVIAL, reward=raw, metric="rmse", reference=RMSE) == -10.0


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome.INVALID_SUBMISSION,
        Outcome.NO_SUBMISSION,
        Outcome.ERROR,
        Outcome.OUT_OF_MEMORY,
        Outcome.OVER_LIMIT,
        Outcome.TIMEOUT,
    ],
)
def test_a_failure_that_ran_earns_its_distinct_milestones(outcome: Outcome) -> None:
    assert earned(outcome) == -0.5
    assert earned(outcome, milestones=("imports", "data_loaded", "imports")) == pytest.approx(-0.4)


@pytest.mark.parametrize("outcome", [Outcome.UNPARSED, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.TAMPERED])
def test_what_did_not_run_or_cannot_be_believed_earns_no_milestones(outcome: Outcome) -> None:
    assert earned(outcome, milestones=MILESTONES) == -0.5


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.INFRASTRUCTURE_FAILED])
def test_what_was_cut_off_has_no_reward(outcome: Outcome) -> None:
    assert earned(outcome, 0.9, milestones=MILESTONES) is None


def test_every_outcome_has_a_reward_exactly_where_it_is_trained() -> None:
    for outcome in Outcome:
        assert (earned(outcome, 0.8) is not None) == outcome.trained


@pytest.mark.parametrize("score", [None, math.nan, math.inf])
def test_a_scored_row_without_a_number_is_our_fault(score: float | None) -> None:
    with pytest.raises(InternalError, match="Reward split"):
        earned(Outcome.SCORED, score)


def test_normalized_without_any_best_score_names_the_field() -> None:
    with pytest.raises(UserError, match=r"task 'A task': reference\.best is required"):
        validate_reward(RewardSpec(), a_task("lift", 1.0))
    validate_reward(RewardSpec(), a_task("lift", 1.0, best=3.0))


@pytest.mark.parametrize(("metric", "best"), [("roc_auc", 0.5), ("roc_auc", 0.4), ("rmse", 0.6)])
def test_a_best_score_no_better_than_the_baseline_is_refused(metric: str, best: float) -> None:
    with pytest.raises(UserError, match=r"reference\.best .* must be better than reference\.baseline"):
        check(RewardSpec(), metric, 0.5, best)


@pytest.mark.parametrize(
    "reward",
    [
        RewardSpec(invalid=-0.5, milestone=0.06),
        RewardSpec(invalid=-0.1, milestone=0),
        RewardSpec(invalid=0, milestone=0),
        RewardSpec(score="Raw", invalid=-0.5, milestone=0.1),
    ],
)
def test_settings_under_which_a_failure_could_outrank_a_valid_script_are_refused(reward: RewardSpec) -> None:
    with pytest.raises(UserError, match=r"task .A task.: reward: invalid \+ 7 x milestone must be below"):
        check(reward, "roc_auc", 0.5, 0.9)


def test_a_bounded_loss_is_ordered_by_its_upper_bound() -> None:
    check(RewardSpec(score="Raw", invalid=-2), "brier", 0.25)
    with pytest.raises(UserError, match=r"must be below -1"):
        check(RewardSpec(score="Raw", invalid=-1), "brier", 0.25)


@pytest.mark.parametrize("metric", ["rmse", "log_loss", "r2"])
def test_raw_on_an_unbounded_metric_asks_for_the_word(metric: str) -> None:
    paper = RewardSpec(score="Raw", invalid=-10, milestone=0.1)
    with pytest.raises(UserError, match=r"reward\.allowUnbounded"):
        check(paper, metric, 0.5)
    check(paper.model_copy(update={"allow_unbounded": True}), metric, 0.5)


def test_allow_unbounded_does_not_excuse_a_wrong_order_that_can_be_checked() -> None:
    with pytest.raises(UserError, match="outrank"):
        check(RewardSpec(score="Raw", invalid=0.5, allow_unbounded=True), "roc_auc", 0.5)


def test_the_defaults_and_the_papers_preset_are_accepted() -> None:
    check(RewardSpec(), "roc_auc", 0.5, 0.92)
    check(RewardSpec(), "rmse", 10.0, 2.0)
    check(RewardSpec(), "log_loss", 0.69)
    check(RewardSpec(score="Raw", invalid=-10, milestone=0.1), "roc_auc", 0.5)
