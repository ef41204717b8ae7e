"""A collector's world in memory: an engine that says what it is told, a backend with a clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_trainer.collection.execution import Executor
from mlwright_trainer.exchange import PromptKind
from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger import Ledger, Purpose, RolloutRow, Sampled


@dataclass
class FakeClock:
    """Unix time that only moves when somebody waits."""

    time: float = 0.0

    def __call__(self) -> float:
        return self.time


@dataclass
class FakeBackend:
    """Runs scripts of known duration on a fake clock; a script's text is its duration in seconds."""

    clock: FakeClock
    slots: int = 2
    outcome: Callable[[str], Outcome] = lambda _: Outcome.SCORED
    started: list[str] = field(default_factory=list)
    running: dict[str, tuple[float, float]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    released: list[str] = field(default_factory=list)
    most_at_once: int = 0

    def submit(self, request: SandboxRequest) -> None:
        assert len(self.running) < self.slots, "launched more than there are slots"
        assert request.rollout not in self.running
        self.started.append(request.rollout)
        self.running[request.rollout] = (self.clock.time, float(request.script))
        self.most_at_once = max(self.most_at_once, len(self.running))

    def collect(self, timeout: float | None = None) -> Sequence[Finished]:
        if self.cancelled:
            return [self._finish(id, Outcome.CANCELLED) for id in sorted(self.cancelled)]
        until = min(start + seconds for start, seconds in self.running.values())
        if timeout is not None and until > self.clock.time + timeout:
            self.clock.time += timeout
            return []
        self.clock.time = max(self.clock.time, until)
        ended = [id for id, (start, seconds) in self.running.items() if start + seconds <= self.clock.time]
        return [self._finish(id, self.outcome(id)) for id in ended]

    def cancel(self, rollout: str) -> None:
        self.cancelled.add(rollout)

    def release(self, rollout: str) -> None:
        self.released.append(rollout)

    def close(self) -> None: ...

    def _finish(self, id: str, outcome: Outcome) -> Finished:
        start, seconds = self.running.pop(id)
        self.cancelled.discard(id)
        ran = self.clock.time - start if outcome is Outcome.CANCELLED else seconds
        scores = {Split.REWARD: 0.75, Split.SELECTION: 0.7} if outcome is Outcome.SCORED else {}
        status = RolloutStatus(outcome=outcome, scores=scores, seconds=RolloutSeconds(execution=ran))
        return Finished(id, status, started_at=start)


@dataclass
class FakeRounds:
    """Commits rounds of scripts whose durations come from `seconds(round, position)`."""

    ledger: Ledger
    seconds: Callable[[int, int], float] = lambda _round, _position: 1.0
    instant: Callable[[int, int], Outcome | None] = lambda _round, _position: None
    made: list[tuple[Purpose, int, int]] = field(default_factory=list)

    def ensure(self, purpose: Purpose, number: int, count: int) -> None:
        if number < self.ledger.rounds(purpose):
            return
        self.made.append((purpose, number, count))
        self.ledger.commit_round([self._sample(purpose, number, position) for position in range(count)])

    def _sample(self, purpose: Purpose, number: int, position: int) -> Sampled:
        return sample(purpose, number, position, script=str(self.seconds(number, position)))


def sample(
    purpose: Purpose, number: int, position: int, *, script: str = "1.0", kind: PromptKind = "draft"
) -> Sampled:
    return Sampled(
        id=f"{purpose.lower()}-{number:05d}-{position:04d}",
        purpose=purpose,
        round=number,
        position=position,
        task="churn",
        prompt_kind=kind,
        parent=None,
        prompt_tokens=(1, 2),
        response_tokens=(3, 4),
        logprobs=(-0.5, -0.25),
        spans=(VersionSpan(number, 0, 2),),
        response=script,
        script=script,
        tree=script,
    )


@dataclass
class World:
    """Everything that a mode needs, and what happened in it."""

    ledger: Ledger
    clock: FakeClock
    backend: FakeBackend
    rounds: FakeRounds
    executor: Executor

    def restarted(self) -> World:
        """The same ledger after a SIGKILL: another backend, nothing of what ran."""
        return make_world(self.ledger, rounds=FakeRounds(self.ledger, self.rounds.seconds))


def reward(_row: RolloutRow, status: RolloutStatus) -> float | None:
    assert status.outcome is not None
    return float(status.outcome.valid) if status.outcome.trained else None


def make_world(ledger: Ledger, *, slots: int = 2, rounds: FakeRounds | None = None) -> World:
    clock = FakeClock()
    backend = FakeBackend(clock, slots)
    mounts = TaskMounts.__new__(TaskMounts)  # the fake backend never looks at it

    def request(row: RolloutRow) -> SandboxRequest:
        assert row.script is not None
        return SandboxRequest(rollout=row.id, task=mounts, script=row.script, seed=0)

    executor = Executor(ledger=ledger, backend=backend, request=request, reward=reward, limit=slots)
    return World(ledger, clock, backend, rounds or FakeRounds(ledger), executor)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite", {"name": "test"})


@pytest.fixture
def world(ledger: Ledger) -> World:
    return make_world(ledger)


@pytest.fixture
def make(ledger: Ledger) -> Callable[..., World]:
    def made(**options: object) -> World:
        return make_world(ledger, **options)  # type: ignore[arg-type]  # keyword options of make_world

    return made
