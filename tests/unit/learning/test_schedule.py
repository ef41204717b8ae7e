"""Learning rates over updates."""

from __future__ import annotations

import pytest
from mlwright_api.trainingrun import Scheduler
from mlwright_trainer.learning.schedule import learning_rate_factor


def factors(kind: str, warmup: int = 0, updates: int = 4) -> list[float]:
    scheduler = Scheduler(kind=kind, warmup_updates=warmup)
    return [learning_rate_factor(scheduler, update=n, updates=updates) for n in range(updates)]


def test_constant_stays():
    assert factors("Constant") == [1, 1, 1, 1]


def test_linear_falls_evenly():
    assert factors("Linear") == [1, 0.75, 0.5, 0.25]


def test_cosine_falls_slowly_at_both_ends():
    assert factors("Cosine") == pytest.approx([1, 0.8535533905932737, 0.5, 0.14644660940672627])


@pytest.mark.parametrize("kind", ["Constant", "Linear", "Cosine"])
def test_warmup_learns_from_the_first_update_and_ends_at_the_full_rate(kind):
    assert factors(kind, warmup=2, updates=6)[:3] == [0.5, 1.0, 1.0]


def test_after_the_planned_end_the_rate_never_turns_negative():
    assert learning_rate_factor(Scheduler(kind="Linear"), update=9, updates=4) == 0
    assert learning_rate_factor(Scheduler(kind="Cosine"), update=9, updates=4) == pytest.approx(0)


def test_a_warmup_as_long_as_the_run_never_divides_by_zero():
    assert factors("Linear", warmup=4) == [0.25, 0.5, 0.75, 1.0]
    assert learning_rate_factor(Scheduler(kind="Linear", warmup_updates=4), update=4, updates=4) == 1
