"""Running moments of token advantages per (task, prompt kind), and the normalisation with them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Group = tuple[str, str]
"""(task, prompt kind)."""
Normalization = Literal["Running", "Batch", "None"]

DECAY = 0.9
EPSILON = 1e-8


@dataclass(frozen=True)
class Moments:
    """Weighted sums over the tokens seen, older batches decayed: sum w, sum w A, sum w A^2.

    Kept as sums, the mean is corrected for bias by construction: after one batch it is that batch's.
    """

    weight: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """Weighted mean; 0 before anything was seen."""
        return self.total / self.weight if self.weight else 0.0

    @property
    def deviation(self) -> float:
        """Weighted population standard deviation."""
        if not self.weight:
            return 0.0
        return math.sqrt(max(0.0, self.squares / self.weight - self.mean**2))

    def observe(self, advantages: Tensor, weights: Tensor) -> Moments:
        """These, decayed, with one more batch of tokens; both tensors of one shape, float64."""
        return Moments(
            DECAY * self.weight + float(weights.sum()),
            DECAY * self.total + float((weights * advantages).sum()),
            DECAY * self.squares + float((weights * advantages.square()).sum()),
        )


class RunningMoments:
    """Moments of every group; a group without rows in a batch keeps its own."""

    def __init__(self, moments: Mapping[Group, Moments] | None = None) -> None:
        self.moments: dict[Group, Moments] = dict(moments or {})

    def normalize(
        self, advantages: Tensor, mask: Tensor, *, weights: Tensor, groups: Sequence[Group]
    ) -> Tensor:
        """(A - mean) / deviation with the moments of each row's group, this batch included; [R, T], float64.

        `weights` [R] are the rows' duration weights, `groups` has R entries. Centring uses the *weighted*
        mean and the result is not yet multiplied: see `weighted`.
        """
        result = torch.zeros_like(advantages)
        for group in sorted(set(groups)):
            rows = _rows_of(group, groups, advantages)
            token_weights = weights[rows, None] * mask[rows]
            moments = self.moments.get(group, Moments()).observe(advantages[rows], token_weights)
            self.moments[group] = moments
            result[rows] = (advantages[rows] - moments.mean) / (moments.deviation + EPSILON)
        return result * mask

    def state(self) -> list[list[object]]:
        """Plain data for a checkpoint."""
        return [
            [task, kind, m.weight, m.total, m.squares] for (task, kind), m in sorted(self.moments.items())
        ]

    @classmethod
    def restored(cls, state: Sequence[Sequence[object]]) -> RunningMoments:
        """The inverse of `state`."""
        return cls({(str(r[0]), str(r[1])): Moments(*(float(str(x)) for x in r[2:])) for r in state})


def whiten(advantages: Tensor, mask: Tensor, *, weights: Tensor) -> Tensor:
    """The standard whitening over all tokens of the batch, with weighted moments; [R, T], weights [R]."""
    token_weights = weights[:, None] * mask
    moments = Moments().observe(advantages, token_weights)
    return (advantages - moments.mean) / (moments.deviation + EPSILON) * mask


def normalized(
    advantages: Tensor,
    mask: Tensor,
    *,
    weights: Tensor,
    groups: Sequence[Group],
    running: RunningMoments,
    kind: Normalization,
) -> Tensor:
    """Normalised advantages, multiplied by the rows' duration weights [R]; what the policy loss takes.

    After centring by weighted moments and then multiplying, the batch's advantages sum to zero: with plain
    moments they would not, which pushes towards (or away from) whatever was sampled.
    """
    if kind == "Running":
        advantages = running.normalize(advantages, mask, weights=weights, groups=groups)
    elif kind == "Batch":
        advantages = whiten(advantages, mask, weights=weights)
    return advantages * weights[:, None] * mask


def _rows_of(group: Hashable, groups: Sequence[Hashable], like: Tensor) -> Tensor:
    return torch.tensor([i for i, g in enumerate(groups) if g == group], device=like.device)
