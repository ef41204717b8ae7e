"""Equal sandbox seconds, in whole rounds."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.ledger import RolloutRow

from benchmarks.quickstart.budget import ROUNDS_FACTOR, Budget, sandbox_seconds


def carried_out(budget: Budget, rounds: Iterator[float]) -> tuple[float, int]:
    """Seconds and rounds of an arm whose rounds take what `rounds` says."""
    spent, number = 0.0, 0
    while budget.another(spent, number):
        spent += next(rounds)
        number += 1
    return spent, number


def always(seconds: float) -> Iterator[float]:
    while True:
        yield seconds


@pytest.mark.parametrize(
    ("each", "rounds"),
    [(10.0, 10), (9.9, 10), (11.0, 9), (30.0, 3), (40.0, 2), (45.0, 2), (99.0, 1), (300.0, 1)],
)
def test_an_arm_stops_at_the_whole_round_nearest_to_its_budget(each: float, rounds: int) -> None:
    spent, number = carried_out(Budget(100.0, 1000), always(each))
    assert number == rounds
    assert spent == pytest.approx(each * rounds)


def test_over_many_arms_of_uneven_rounds_the_budget_is_met_on_average() -> None:
    generator = random.Random(0)
    spent = [
        carried_out(Budget(300.0, 1000), iter(lambda: generator.uniform(5, 25), None))[0] for _ in range(2000)
    ]
    assert sum(spent) / len(spent) == pytest.approx(300, rel=0.01)
    assert max(abs(each - 300) for each in spent) < 25


def test_nothing_to_spend_is_nothing_to_do() -> None:
    assert carried_out(Budget(0.0, 100), always(1.0)) == (0.0, 0)


def test_an_arm_that_spends_nothing_ends_all_the_same_and_is_called_capped() -> None:
    budget = Budget(100.0, 16)
    assert carried_out(budget, always(0.0)) == (0.0, 16)
    assert budget.capped(0.0, 16)


def test_an_arm_that_spent_its_budget_is_not_called_capped() -> None:
    budget = Budget(100.0, 1000)
    assert not budget.capped(*carried_out(budget, always(10.0)))
    assert not Budget(100.0, 10).capped(100.0, 10)


def test_the_budget_is_what_scripts_of_the_other_arm_executed(row: Callable[..., RolloutRow]) -> None:
    rows = [
        row(0, Outcome.SCORED, 1.0, seconds=2.0),
        row(1, Outcome.ERROR, -0.5, seconds=0.5),
        row(2, Outcome.TIMEOUT, -0.5, seconds=20.0),
        row(3, Outcome.UNPARSED, -0.5, seconds=7.0),
        row(4, Outcome.INFRASTRUCTURE_FAILED, None, seconds=7.0),
    ]
    assert sandbox_seconds(rows) == pytest.approx(22.5)
    assert Budget.of(rows, rounds=16) == Budget(22.5, 16 * ROUNDS_FACTOR)
