"""The exchange: batches assigned once, versions taken over once, time accounted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlwright_api.trainingrun import Evaluation
from mlwright_trainer.collection.collector import Collector, describe_batch
from mlwright_trainer.collection.modes import Synchronous
from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import Publication
from mlwright_trainer.ledger import LedgerError
from mlwright_trainer.progress import Silence

World = Any


class Weights:
    """An engine that only remembers which weights it was given."""

    def __init__(self) -> None:
        self.version = 0
        self.loaded: list[int] = []

    def generate(self, requests: Any) -> Any:
        raise AssertionError("the rounds are made elsewhere")

    def load(self, version: int, folder: Path) -> None:
        self.version = version
        self.loaded.append(version)


def collector(world: World, engine: Weights | None = None, **evaluation: int) -> Collector:
    mode = Synchronous(
        ledger=world.ledger, rounds=world.rounds, executor=world.executor, size=4, progress=Silence()
    )
    return Collector(
        ledger=world.ledger,
        engine=engine or Weights(),
        mode=mode,
        fresh=mode,
        progress=Silence(),
        evaluation=Evaluation(**evaluation),
    )


def publication(version: int, digest: str = "d") -> Publication:
    return Publication(version, Path("weights") / str(version), f"{digest}{version}", {"kl": 0.1})


def test_a_batch_is_the_same_however_often_it_is_asked_for(world: World) -> None:
    exchange = collector(world)
    first = exchange.batch(0)
    assert exchange.batch(0) == first
    assert collector(world.restarted()).batch(0) == first
    assert len(first.rows) == 4


def test_a_batch_carries_tokens_logprobs_rewards_and_seconds(world: World) -> None:
    row = collector(world).batch(0).rows[0]
    assert row.prompt_tokens == (1, 2)
    assert row.response_tokens == (3, 4)
    assert row.logprobs == (-0.5, -0.25)
    assert row.reward == 1.0
    assert row.execution_seconds == 1.0


def test_batches_come_in_order(world: World) -> None:
    with pytest.raises(InternalError, match="batch 0 comes next"):
        collector(world).batch(3)


def test_an_empty_batch_stops_the_run_instead_of_learning_from_nothing(world: World) -> None:
    from mlwright_api.rollout import Outcome

    world.backend.outcome = lambda _: Outcome.INFRASTRUCTURE_FAILED
    with pytest.raises(InternalError, match="batch 0 is empty"):
        collector(world).batch(0)


def test_the_version_is_minus_one_before_the_initial_weights(world: World) -> None:
    exchange = collector(world)
    assert exchange.version() == -1
    exchange.publish(publication(0))
    assert exchange.version() == 0


def test_published_weights_are_loaded_once(world: World) -> None:
    engine = Weights()
    exchange = collector(world, engine)
    for version in (0, 1, 1, 2):
        exchange.publish(publication(version))
    assert engine.loaded == [1, 2]


def test_a_version_published_with_another_digest_is_refused(world: World) -> None:
    exchange = collector(world)
    exchange.publish(publication(0))
    exchange.publish(publication(1))
    with pytest.raises(LedgerError, match="not reproducible"):
        exchange.publish(publication(1, digest="other"))


def test_the_time_between_a_batch_and_its_weights_is_learning(world: World) -> None:
    exchange = collector(world)
    exchange.publish(publication(0))
    exchange.batch(0)
    exchange.publish(publication(1))
    assert set(world.ledger.phase_seconds()) == {"execution", "learning"}


def test_fresh_samples_between_updates_are_taken_at_the_asked_rhythm(world: World) -> None:
    exchange = collector(world, every_updates=2, samples=3)
    for number in range(5):
        exchange.publish(publication(number))
        exchange.batch(number)
    rows = world.ledger.rollouts("Evaluation")
    assert [(row.round, row.position) for row in rows] == [(r, p) for r in range(2) for p in range(3)]
    assert all(row.batch is None for row in rows)


def test_a_batch_in_one_line_says_reward_validity_and_score(world: World) -> None:
    collector(world).batch(0)
    line = describe_batch(0, world.ledger.rollouts("Train"))
    assert line == "update   0  reward 1.000  valid 1.00  score 0.750  1.000 s a script"
