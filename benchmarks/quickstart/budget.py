"""Spending the same sandbox seconds, in whole rounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mlwright_trainer.ledger import RolloutRow
from mlwright_trainer.report.tallies import seconds

ROUNDS_FACTOR = 8
"""A control that hardly spends anything (scripts that fail at once) ends after this many times the RL arm's rounds."""


def sandbox_seconds(rows: Iterable[RolloutRow]) -> float:
    """Execution seconds of all rows that a sandbox ran."""
    return math.fsum(seconds(rows))


@dataclass(frozen=True)
class Budget:
    """`seconds` of script execution, and a bound on rounds."""

    seconds: float
    rounds_at_most: int

    @classmethod
    def of(cls, rows: Iterable[RolloutRow], *, rounds: int) -> Budget:
        """What another arm has spent on `rows` in so many rounds."""
        return cls(sandbox_seconds(rows), ROUNDS_FACTOR * rounds)

    def another(self, spent: float, rounds: int) -> bool:
        """Whether a further round, as long as those so far on average, ends nearer to the budget than stopping.

        So a control misses its budget by half a round at most, and on average by nothing.
        """
        if rounds >= self.rounds_at_most:
            return False
        if rounds == 0:
            return self.seconds > 0
        return spent + spent / rounds / 2 < self.seconds

    def capped(self, spent: float, rounds: int) -> bool:
        """Whether it was the bound on rounds that ended the arm."""
        return rounds >= self.rounds_at_most and spent + spent / max(1, rounds) / 2 < self.seconds
