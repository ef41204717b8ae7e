"""Whatever the settings that are let through: order and monotonicity of rewards."""

from __future__ import annotations

import math

from hypothesis import assume, given
from hypothesis import strategies as st
from mlwright_api.metric_catalog import CATALOG, MetricInfo
from mlwright_api.mltask import MLTaskSpec, TaskReference
from mlwright_api.results import MILESTONES
from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import RewardSpec
from mlwright_trainer.errors import UserError
from mlwright_trainer.rewards.reward import TAIL, reward_of, validate_reward

VALID = st.sampled_from([outcome for outcome in Outcome if outcome.trained and outcome.valid])
FAILED = st.sampled_from([outcome for outcome in Outcome if outcome.trained and not outcome.valid])
METRICS = st.sampled_from(sorted(CATALOG)).map(CATALOG.__getitem__)
REACHED = st.lists(st.sampled_from(MILESTONES), max_size=9)
NUMBERS = st.floats(-1e6, 1e6)


@st.composite
def settings_let_through(draw: st.DrawFn) -> tuple[RewardSpec, MetricInfo, TaskReference]:
    """Reward settings, a metric and a task's reference that `validate_reward` accepts."""
    info = draw(METRICS)
    reward = RewardSpec(
        score=draw(st.sampled_from(["Normalized", "Raw"])),
        invalid=draw(st.floats(-20, 1)),
        milestone=draw(st.floats(0, 1)),
    )
    reference = TaskReference(
        baseline=within(info, draw(NUMBERS)), best=draw(st.none() | NUMBERS.map(lambda x: within(info, x)))
    )
    try:
        validate_reward(reward, a_task(info, reference))
    except UserError:
        assume(False)
    return reward, info, reference


def a_task(info: MetricInfo, reference: TaskReference) -> MLTaskSpec:
    return MLTaskSpec.model_validate(
        {
            "title": "t",
            "description": "d",
            "metric": {"name": info.name},
            "submission": {"targetColumns": ["y"], "kind": "Values"},
            "reference": reference.model_dump(),
        }
    )


def within(info: MetricInfo, score: float) -> float:
    low = -math.inf if info.lower is None else info.lower
    high = math.inf if info.upper is None else info.upper
    return min(max(score, low), high)


@given(settings_let_through(), VALID, FAILED, NUMBERS, REACHED)
def test_any_valid_script_outranks_any_failure(
    allowed: tuple[RewardSpec, MetricInfo, TaskReference],
    valid: Outcome,
    failed: Outcome,
    score: float,
    reached: list[str],
) -> None:
    reward, info, reference = allowed
    better = reward_of(
        outcome=valid,
        score=within(info, score),
        milestones=reached,
        reward=reward,
        info=info,
        reference=reference,
    )
    worse = reward_of(
        outcome=failed, score=None, milestones=reached, reward=reward, info=info, reference=reference
    )
    assert better is not None
    assert worse is not None
    assert better > worse


@given(settings_let_through(), NUMBERS, NUMBERS)
def test_a_better_score_never_earns_less(
    allowed: tuple[RewardSpec, MetricInfo, TaskReference], one: float, other: float
) -> None:
    reward, info, reference = allowed
    worse, better = sorted((within(info, one), within(info, other)), key=lambda score: info.sign * score)
    low, high = (
        reward_of(
            outcome=Outcome.SCORED,
            score=score,
            milestones=(),
            reward=reward,
            info=info,
            reference=reference,
        )
        for score in (worse, better)
    )
    assert low is not None
    assert high is not None
    assert low <= high


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.floats(1e-3, 1e2), METRICS)
def test_a_visibly_better_score_earns_strictly_more_far_outside_the_known_scores(
    baseline: float, gap: float, score: float, step: float, info: MetricInfo
) -> None:
    reference = TaskReference(baseline=baseline, best=baseline + info.sign * gap)
    low, high = (
        reward_of(
            outcome=Outcome.SCORED,
            score=each,
            milestones=(),
            reward=RewardSpec(),
            info=info,
            reference=reference,
        )
        for each in (score, score + info.sign * step)
    )
    assert low is not None
    assert high is not None
    assert -TAIL <= low < high <= 1 + TAIL


@given(settings_let_through(), FAILED, st.lists(st.sampled_from(MILESTONES), unique=True))
def test_one_more_milestone_never_costs(
    allowed: tuple[RewardSpec, MetricInfo, TaskReference], failed: Outcome, reached: list[str]
) -> None:
    reward, info, reference = allowed
    earned = [
        reward_of(
            outcome=failed,
            score=None,
            milestones=reached[:count],
            reward=reward,
            info=info,
            reference=reference,
        )
        for count in range(len(reached) + 1)
    ]
    numbers = [value for value in earned if value is not None]
    assert len(numbers) == len(earned)
    assert numbers == sorted(numbers)
