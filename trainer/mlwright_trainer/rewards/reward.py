"""Outcome and score to reward: normalized or raw, with every failure below every valid script."""

from __future__ import annotations

import math
from collections.abc import Collection

from mlwright_api.consistency import check_reward
from mlwright_api.metric_catalog import MetricInfo
from mlwright_api.mltask import MLTaskSpec, TaskReference
from mlwright_api.reward_order import WORST_NORMALIZED
from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import RewardSpec

from mlwright_trainer.errors import InternalError, UserError

TAIL = -WORST_NORMALIZED
"""How far a normalized reward may leave [0, 1] on either side."""

WITHOUT_MILESTONES = frozenset({Outcome.UNPARSED, Outcome.REFUSED, Outcome.TRUNCATED, Outcome.TAMPERED})
"""Failures that earn nothing for milestones: nothing ran, or what ran cannot be believed."""


def reward_of(
    *,
    outcome: Outcome,
    score: float | None,
    milestones: Collection[str],
    reward: RewardSpec,
    info: MetricInfo,
    reference: TaskReference,
) -> float | None:
    """The reward of one rollout; None where it has none and must never be trained.

    `score` is on the Reward split, in the metric's own units, and is needed only by Scored.
    Raises InternalError for a Scored row without a finite score. Source: design section 6.
    """
    if not outcome.trained:
        return None
    if not outcome.valid:
        earned = 0 if outcome in WITHOUT_MILESTONES else len(set(milestones))
        return reward.invalid + reward.milestone * earned
    return _value(_graded(outcome, score, reference), reward, info, reference)


def normalized_reward(score: float, info: MetricInfo, reference: TaskReference) -> float:
    """The score on the line from baseline (0) to best (1), with tails bounded by `TAIL`."""
    best = best_score(info, reference)
    gap = abs(best - reference.baseline)
    return _with_tails(info.sign * (score - reference.baseline) / gap)


def best_score(info: MetricInfo, reference: TaskReference) -> float:
    """The score that earns 1: the task's own, else the metric's bound; UserError where there is neither."""
    best = info.best if reference.best is None else reference.best
    if best is None:
        raise UserError(
            f"reference.best is required: reward.score Normalized needs it, because metric {info.name} has "
            "no best value of its own"
        )
    return best


def validate_reward(reward: RewardSpec, task: MLTaskSpec) -> None:
    """Refuse settings under which a valid script could rank below a failure, or that give no scale.

    Raises UserError with every reason.
    """
    if problems := check_reward(reward, task):
        raise UserError(f"task {task.title!r}: {'; '.join(problems)}")


def _graded(outcome: Outcome, score: float | None, reference: TaskReference) -> float:
    """The score that counts: trivial and unchanged scripts are worth the constant predictor."""
    if outcome is not Outcome.SCORED:
        return reference.baseline
    if score is None or not math.isfinite(score):
        raise InternalError(f"a rollout is Scored, but its score on the Reward split is {score}")
    return score


def _value(score: float, reward: RewardSpec, info: MetricInfo, reference: TaskReference) -> float:
    if reward.score == "Raw":
        return info.sign * score
    return normalized_reward(score, info, reference)


def _with_tails(z: float) -> float:
    if z > 1:
        return 1 + _tail(z - 1)
    if z < 0:
        return -_tail(-z)
    return z


def _tail(beyond: float) -> float:
    # Slope 1 at 0, bounded by TAIL. Rational rather than exponential: an exponential is flat in floating
    # point from 37 tails on, and a weak model's log loss lies that far below the baseline.
    return TAIL / (1 + TAIL / beyond)
