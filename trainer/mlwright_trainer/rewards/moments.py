"""Weighted mean and deviation that forget: what advantages are centred and scaled with.

One `Moments` is kept for each (task, prompt kind). Each batch joins the faded earlier ones before it is used,
so that the first batch is already centred by its own moments and no bias correction is needed: sums of
weights are faded together with the sums that they divide. Source: design section 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

DECAY = 0.9
"""What is left of earlier batches' weight when a new batch joins."""


@dataclass(frozen=True)
class Moments:
    """Sum of weights, weighted mean, and weighted sum of squared distances from that mean."""

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: Sequence[float], weights: Sequence[float]) -> Self:
        """Of `values` with one non-negative weight each; ValueError where the lengths differ."""
        total = math.fsum(weights)
        pairs = list(zip(values, weights, strict=True))
        if total <= 0:
            return cls()
        mean = math.fsum(value * weight for value, weight in pairs) / total
        return cls(total, mean, math.fsum(weight * (value - mean) ** 2 for value, weight in pairs))

    @property
    def variance(self) -> float:
        """Weighted population variance; 0 before anything was seen."""
        return self.squares / self.weight if self.weight > 0 else 0.0

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    def faded(self, decay: float = DECAY) -> Moments:
        """The same mean and deviation with less weight against what comes."""
        return Moments(self.weight * decay, self.mean, self.squares * decay)

    def joined(self, other: Moments) -> Moments:
        """Moments of both together (Chan's pairwise update: no cancellation of large squares)."""
        weight = self.weight + other.weight
        if weight <= 0:
            return Moments()
        apart = other.mean - self.mean
        share = other.weight / weight
        return Moments(
            weight,
            self.mean + apart * share,
            self.squares + other.squares + apart * apart * self.weight * share,
        )


def renewed(earlier: Moments | None, batch: Moments, decay: float = DECAY) -> Moments:
    """The moments to use for this batch and to keep: earlier ones faded once, this batch included."""
    return (earlier or Moments()).faded(decay).joined(batch)
