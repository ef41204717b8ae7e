"""The order of rewards (design, section 6): any valid script outranks any failure."""

from __future__ import annotations

from mlwright_api.results import MILESTONES
from mlwright_api.sampling import RewardSpec

WORST_NORMALIZED = -0.1
"""The lowest Normalized reward of a valid submission: the end of the lower tail."""


def failure_ceiling(reward: RewardSpec) -> float:
    """The most that a failure can earn: it reached every milestone."""
    return reward.invalid + reward.milestone * len(MILESTONES)


def broken_order(reward: RewardSpec, worst: float) -> str | None:
    """Why a failure could earn as much as a valid submission whose lowest reward is `worst`; None if it cannot."""
    ceiling = failure_ceiling(reward)
    if ceiling < worst:
        return None
    return (
        f"invalid + {len(MILESTONES)} x milestone must be below {worst:g}, so that any valid script outranks any "
        f"failure (it is {ceiling:g})"
    )
