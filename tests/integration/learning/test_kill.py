"""Killed at any step and started again, a run ends in the same bits, and the exchange sees nothing contradictory."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from mlwright_trainer.errors import InternalError
from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.disk import Disk, numbered, torn
from mlwright_trainer.learning.learner import Learner

pytestmark = pytest.mark.torch
UPDATES = 2


class Killed(BaseException):
    """Stands for SIGKILL: nothing in our code may catch it."""


class Countdown:
    """Dies when it has been asked `k` times; counts for ever if k is None."""

    def __init__(self, k: int | None, *, hard: bool = False) -> None:
        self.k, self.asked, self.hard = k, 0, hard

    def tick(self) -> None:
        if self.asked == self.k:
            if self.hard:
                os.kill(os.getpid(), signal.SIGKILL)
            raise Killed
        self.asked += 1


class DyingDisk(Disk):
    """Dies before a step, or in the middle of those that have one."""

    def __init__(self, countdown: Countdown) -> None:
        self.countdown = countdown

    def make_folder(self, path: Path) -> None:
        self.countdown.tick()
        super().make_folder(path)

    def fill(self, folder: Path, writer: Any) -> None:
        self.countdown.tick()
        (folder / "half").write_text("written")
        self.countdown.tick()
        (folder / "half").unlink()
        super().fill(folder, writer)

    def write(self, path: Path, text: str) -> None:
        self.countdown.tick()
        path.write_text(text[: len(text) // 2])
        self.countdown.tick()
        super().write(path, text)

    def rename(self, source: Path, target: Path) -> None:
        self.countdown.tick()
        super().rename(source, target)

    def remove(self, path: Path) -> None:
        self.countdown.tick()
        if path.is_dir():
            for child in sorted(path.iterdir())[:1]:
                child.unlink()
            self.countdown.tick()
        super().remove(path)


class DyingExchange:
    """Dies before and after each call of the exchange behind it."""

    def __init__(self, inner: Any, countdown: Countdown) -> None:
        self.inner, self.countdown = inner, countdown

    def version(self) -> int:
        return int(self.inner.version())

    def batch(self, number: int) -> Any:
        self.countdown.tick()
        batch = self.inner.batch(number)
        self.countdown.tick()
        return batch

    def publish(self, publication: Any) -> None:
        self.countdown.tick()
        self.inner.publish(publication)
        self.countdown.tick()


def run(folder: Path, spec: Any, exchange: Any, countdown: Countdown) -> None:
    Learner(
        spec=spec,
        weights=folder / "weights",
        checkpoints=folder / "checkpoints",
        exchange=DyingExchange(exchange, countdown),
        disk=DyingDisk(countdown),
    ).run(UPDATES)


def start_again(folder: Path, initial: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(initial, folder / "weights" / "0")


def settings(spec: Any, every: int) -> Any:
    algorithm = {"epochs": 1, "detachCritic": True, "minibatchSize": 8, "kl": {"target": 0.1}}
    return spec(algorithm, checkpoint={"keep": 1, "everyUpdates": every})


@pytest.mark.parametrize(("every", "stride"), [(1, 1), (2, 4)])
def test_killed_before_every_single_step_it_ends_in_the_same_bits(
    tmp_path, spec, exchange, initial, every, stride
):
    folder, asked = tmp_path / "run", settings(spec, every)
    start_again(folder, initial)
    counting = Countdown(None)
    run(folder, asked, exchange, counting)
    digests, steps = exchange.digests, counting.asked
    assert steps > 30
    for k in range(0, steps, stride):
        start_again(folder, initial)
        known, exchange.published = exchange.published, {}
        with pytest.raises(Killed):
            run(folder, asked, exchange, Countdown(k))
        run(folder, asked, exchange, Countdown(None))
        assert exchange.digests == digests, f"killed at step {k}"
        assert weights_digest(folder / "weights" / str(UPDATES)) == digests[-1]
        assert leftovers(folder) == []
        assert known.keys() == exchange.published.keys()


def leftovers(folder: Path) -> list[str]:
    """Half-made files, and committed folders that are not whole."""
    hidden = [str(p) for parent in ("weights", "checkpoints") for p in (folder / parent).glob(".*")]
    checkpoints = folder / "checkpoints"
    return hidden + [str(n) for n in numbered(checkpoints) if torn(checkpoints / str(n))]


def test_killed_again_and_again_it_still_arrives(tmp_path, spec, exchange, initial):
    folder, asked = tmp_path / "run", settings(spec, 1)
    start_again(folder, initial)
    run(folder, asked, exchange, Countdown(None))
    digests = exchange.digests
    start_again(folder, initial)
    exchange.published = {}
    kills = 0
    for k in range(5, 200):
        try:
            run(folder, asked, exchange, Countdown(k))
            break
        except Killed:
            kills += 1
    assert kills > 5
    assert exchange.digests == digests


@pytest.mark.parametrize("k", [9, 17, 26, 35])
def test_a_real_sigkill_is_no_different(tmp_path, spec, exchange, initial, k):
    folder, asked = tmp_path / "run", settings(spec, 1)
    start_again(folder, initial)
    run(folder, asked, exchange, Countdown(None))
    digests = exchange.digests
    start_again(folder, initial)
    child = os.fork()
    if child == 0:
        run(folder, asked, exchange, Countdown(k, hard=True))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    run(folder, asked, exchange, Countdown(None))
    assert exchange.digests == digests


def test_an_exchange_that_was_told_another_digest_says_so(tmp_path, spec, exchange, initial):
    folder, asked = tmp_path / "run", settings(spec, 1)
    start_again(folder, initial)
    run(folder, asked, exchange, Countdown(None))
    start_again(folder, initial)
    other = asked.model_copy(
        update={"seed": 3, "algorithm": asked.algorithm.model_copy(update={"gamma": 0.5})}
    )
    with pytest.raises(InternalError, match="another digest"):
        run(folder, other, exchange, Countdown(None))
