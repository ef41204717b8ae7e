"""What rejection sampling keeps."""

from __future__ import annotations

from collections.abc import Callable

from mlwright_api.rollout import Outcome
from mlwright_trainer.ledger import RolloutRow

from benchmarks.quickstart.keeping import better_half

Row = Callable[..., RolloutRow]


def kept(rows: list[RolloutRow]) -> list[int]:
    return [row.position for row in better_half(rows)]


def test_the_better_half_of_the_valid_rows_is_kept_in_their_own_order(row: Row) -> None:
    rows = [row(number, Outcome.SCORED, reward) for number, reward in enumerate((0.1, 0.9, 0.2, 0.8))]
    assert kept(rows) == [1, 3]


def test_a_failure_is_never_kept_whatever_it_earned(row: Row) -> None:
    rows = [row(0, Outcome.ERROR, 5.0), row(1, Outcome.TIMEOUT, 5.0), row(2, Outcome.SCORED, -0.1)]
    assert kept(rows) == [2]


def test_of_an_odd_number_the_middle_one_is_kept_too(row: Row) -> None:
    rows = [row(number, Outcome.SCORED, float(number)) for number in range(5)]
    assert kept(rows) == [2, 3, 4]


def test_ties_go_to_the_earlier(row: Row) -> None:
    rows = [row(number, Outcome.SCORED, 0.5) for number in range(4)]
    assert kept(rows) == [0, 1]


def test_trivial_scripts_are_valid_but_lose_to_better_ones(row: Row) -> None:
    rows = [row(0, Outcome.TRIVIAL, 0.0), row(1, Outcome.SCORED, 0.7)]
    assert kept(rows) == [1]


def test_without_a_valid_row_nothing_is_kept(row: Row) -> None:
    assert kept([row(0, Outcome.ERROR, -0.3), row(1, Outcome.INFRASTRUCTURE_FAILED, None)]) == []
    assert kept([]) == []
