"""Running committed rollouts, a bounded number at a time, and closing their rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_sandbox.backend import Finished, SandboxBackend, SandboxRequest

from mlwright_trainer.ledger import Ledger, Phase, Result, RolloutRow

Closed = Callable[[RolloutRow, RolloutStatus], float | None]
"""The reward of a rollout that ended with this status."""


@dataclass(frozen=True)
class WindowClock:
    """A running window: `opened_at` (Unix seconds) is moved back by what had elapsed before an interruption."""

    number: int
    seconds: float
    opened_at: float
    now: Callable[[], float] = time.time

    def elapsed(self, at: float | None = None) -> float:
        """Seconds from the opening to `at`, or to now."""
        return (self.now() if at is None else at) - self.opened_at

    @property
    def remaining(self) -> float:
        return self.seconds - self.elapsed()


class Executor:
    """Hands rollouts to a sandbox backend and writes each result to the ledger as it comes."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        backend: SandboxBackend,
        request: Callable[[RolloutRow], SandboxRequest],
        reward: Closed,
        limit: int,
    ) -> None:
        self._ledger = ledger
        self._backend = backend
        self._request = request
        self._reward = reward
        self._limit = limit
        self._running: dict[str, tuple[RolloutRow, float, WindowClock | None]] = {}

    @property
    def free(self) -> int:
        """How many more rollouts may be launched now."""
        return self._limit - len(self._running)

    @property
    def running(self) -> int:
        return len(self._running)

    def launch(self, row: RolloutRow, clock: WindowClock | None = None) -> None:
        """Start a rollout now, in a window if one is open."""
        number, offset = (None, None) if clock is None else (clock.number, clock.elapsed())
        self._ledger.launch(row.id, window=number, offset=offset)
        self._running[row.id] = (row, time.time(), clock)
        self._backend.submit(self._request(row))

    def settle(self, timeout: float | None = None) -> int:
        """Close what has finished; waits up to `timeout` seconds (None: for ever) for the first. Returns how many."""
        if not self._running:
            return 0
        finished = self._backend.collect(timeout)
        for one in finished:
            self._close(one)
        return len(finished)

    def drain(self) -> None:
        """Let everything that runs come to its own end."""
        while self._running:
            self.settle()

    def cancel(self) -> None:
        """End everything that runs; the rows are closed as Cancelled, or as what they were if they had just ended."""
        for id in list(self._running):
            self._backend.cancel(id)
        self.drain()

    def run(self, rows: Iterable[RolloutRow], closed: Callable[[int], None] = lambda _: None) -> None:
        """Run rows to their ends, as many at a time as the limit allows; `closed` hears how many are closed."""
        count = 0
        for row in rows:
            while self.free < 1:
                count += self.settle()
                closed(count)
            self.launch(row)
        while self._running:
            count += self.settle()
            closed(count)

    def _close(self, finished: Finished) -> None:
        row, launched_at, clock = self._running.pop(finished.rollout)
        status = _within(finished.status, finished.started_at, clock)
        seconds = status.seconds.model_copy(update={"queued": max(0.0, launched_at - row.sampled_at)})
        status = status.model_copy(update={"seconds": seconds})
        self._ledger.close_rollout(
            row.id,
            Result(
                status=status,
                reward=self._reward(row, status),
                started_at=finished.started_at,
                window_offset=None if clock is None else max(0.0, clock.elapsed(finished.started_at)),
                submission=finished.submission,
            ),
        )
        self._backend.release(row.id)  # only now: a process that dies before runs into it again


def _within(status: RolloutStatus, started_at: float, clock: WindowClock | None) -> RolloutStatus:
    """What ended after its window had closed is Cancelled, whoever was faster: the clock decides, not a race."""
    if clock is None or clock.elapsed(started_at) + status.seconds.execution <= clock.seconds:
        return status
    return status.model_copy(
        update={"outcome": Outcome.CANCELLED, "reason": "the window closed", "scores": {}}
    )


@contextmanager
def timed(ledger: Ledger, kind: Phase, round: int | None = None) -> Iterator[None]:
    """Account the wall time of a block to a phase, also when it ends by an exception."""
    started_at, start = time.time(), time.monotonic()
    try:
        yield
    finally:
        ledger.record_phase(kind, started_at=started_at, seconds=time.monotonic() - start, round=round)
