"""Results on their way from the backend into the ledger."""

from __future__ import annotations

from typing import Any

from mlwright_api.rollout import Outcome

World = Any


def test_a_result_is_released_only_when_its_row_is_closed(world: World) -> None:
    """A process killed in between must find the result where it was."""
    world.rounds.ensure("Train", 0, 3)
    rows = world.ledger.rollouts()
    outcomes: dict[str, Outcome | None] = {}

    def release(rollout: str) -> None:
        outcomes[rollout] = next(row.outcome for row in world.ledger.rollouts() if row.id == rollout)

    world.backend.release = release
    world.executor.run(rows)
    assert outcomes == {row.id: Outcome.SCORED for row in rows}
    assert len(outcomes) == 3
