"""Which scripts rejection sampling keeps."""

from __future__ import annotations

from collections.abc import Sequence

from mlwright_trainer.ledger import RolloutRow


def better_half(rows: Sequence[RolloutRow]) -> list[RolloutRow]:
    """The better half (rounded up) of the valid rows by reward, in their own order; ties go to the earlier."""
    valid = [(place, row) for place, row in enumerate(rows) if row.outcome is not None and row.outcome.valid]
    ranked = sorted(valid, key=lambda pair: (-_reward(pair[1]), pair[0]))
    return [row for _, row in sorted(ranked[: (len(valid) + 1) // 2], key=lambda pair: pair[0])]


def _reward(row: RolloutRow) -> float:
    assert row.reward is not None, "valid rows have a reward"
    return row.reward
