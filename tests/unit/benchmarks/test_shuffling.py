"""Shuffled rewards: the same rewards on other rows, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.rollout import Outcome
from mlwright_trainer.exchange import Batch, Publication, TrainingRow

from benchmarks.quickstart.shuffling import ShuffledRewards, shuffled

Row = Callable[..., TrainingRow]


def batch(row: Row, rewards: list[float], number: int = 0) -> Batch:
    return Batch(number, tuple(row(position, reward) for position, reward in enumerate(rewards)))


def rewards_of(of: Batch) -> list[float]:
    return [row.reward for row in of.rows]


def plain(position: int, reward: float) -> TrainingRow:
    return TrainingRow(
        f"row-{position}", "churn", "draft", (1,), (2,), (-0.1,), 0, Outcome.SCORED, reward, float(position)
    )


@given(st.lists(st.floats(-1, 1), max_size=60), st.integers(0, 2**31), st.integers(0, 500))
def test_rewards_are_permuted_and_everything_else_stays(rewards: list[float], seed: int, number: int) -> None:
    before = batch(plain, rewards, number)
    after = shuffled(before, seed=seed)
    assert sorted(rewards_of(after)) == sorted(rewards)
    assert after.number == number
    assert [replace(row, reward=0.0) for row in after.rows] == [
        replace(row, reward=0.0) for row in before.rows
    ]


def test_the_same_batch_is_shuffled_the_same_way_at_every_asking(trained: Row) -> None:
    asked = batch(trained, [float(number) for number in range(48)])
    assert shuffled(asked, seed=3) == shuffled(asked, seed=3)


def test_another_seed_and_another_batch_are_shuffled_in_other_ways(trained: Row) -> None:
    rewards = [float(number) for number in range(48)]
    first = rewards_of(shuffled(batch(trained, rewards), seed=1))
    assert first != rewards
    assert first != rewards_of(shuffled(batch(trained, rewards), seed=2))
    assert first != rewards_of(shuffled(batch(trained, rewards, number=1), seed=1))


def test_over_many_batches_a_reward_says_nothing_of_its_row() -> None:
    """A row of reward 1 among 9 of reward 0 keeps its reward about once in ten batches."""
    kept = sum(
        shuffled(batch(plain, [1.0] + [0.0] * 9, number), seed=7).rows[0].reward for number in range(2000)
    )
    assert 140 <= kept <= 260


class Recorded:
    """An exchange that remembers what it was told."""

    def __init__(self, rows: Batch) -> None:
        self.rows = rows
        self.published: list[Publication] = []

    def version(self) -> int:
        return 5

    def batch(self, number: int) -> Batch:
        return replace(self.rows, number=number)

    def publish(self, publication: Publication) -> None:
        self.published.append(publication)


def test_the_exchange_passes_everything_on_and_only_shuffles_rewards(trained: Row) -> None:
    rewards = [float(number) for number in range(20)]
    inner = Recorded(batch(trained, rewards))
    exchange = ShuffledRewards(inner, seed=4)
    publication = Publication(1, Path("weights/1"), "sha256:0", {})
    exchange.publish(publication)
    assert exchange.version() == 5
    assert inner.published == [publication]
    assert exchange.batch(2) == shuffled(inner.batch(2), seed=4)
    assert rewards_of(inner.rows) == rewards, "the true rewards stay in the ledger"
