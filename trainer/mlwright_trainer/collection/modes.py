"""How a batch comes about: Synchronous, Continuous or Window (design section 6).

Each mode turns a batch number into the ids of its rows, in order, and can be asked again after a kill at any moment:
what is committed is not sampled again, what is closed does not run again.
No script runs while the model samples or learns, so that seconds mean something; the one exception is a window that
runs out of samples before its time.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from mlwright_trainer.collection.execution import Executor, WindowClock, timed
from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import Window as WindowFacts
from mlwright_trainer.ledger import Ledger, Purpose, RolloutRow, WindowRow
from mlwright_trainer.progress import Progress
from mlwright_trainer.rewards.weighting import missing_mass, require_small_missing_mass

WINDOWS_WATCHED = 4
"""Windows that the missing mass is estimated from; the policy hardly moves in so few updates."""


class Rounds(Protocol):
    """Where samples come from."""

    def ensure(self, purpose: Purpose, number: int, count: int) -> None:
        """Sample and commit a whole round, unless it is committed already."""
        ...


class Mode(Protocol):
    """One way of collecting."""

    @property
    def goal(self) -> int:
        """What progress counts up to: rows, or seconds of a window."""
        ...

    def collect(self, number: int) -> Sequence[str]:
        """Ids of batch `number`, in order; every one of them closed with a reward."""
        ...


class Synchronous:
    """A round is sampled, launched and awaited whole; batch n is round n."""

    def __init__(
        self, *, ledger: Ledger, rounds: Rounds, executor: Executor, size: int, progress: Progress
    ) -> None:
        self._ledger, self._rounds, self._executor = ledger, rounds, executor
        self._size, self._progress = size, progress

    @property
    def goal(self) -> int:
        return self._size

    def collect(self, number: int) -> list[str]:
        self.await_round("Train", number, self._size)
        return [row.id for row in self._ledger.rollouts("Train", round=number) if row.reward is not None]

    def await_round(self, purpose: Purpose, number: int, count: int) -> list[RolloutRow]:
        """A whole round, sampled if it is not committed, run to its end. Returns its rows."""
        self._rounds.ensure(purpose, number, count)
        waiting = [row for row in self._ledger.rollouts(purpose, round=number) if row.outcome is None]
        done = count - len(waiting)
        self._progress.advance(done)
        with timed(self._ledger, "execution", number):
            self._executor.run(waiting, lambda closed: self._progress.advance(done + closed))
        return self._ledger.rollouts(purpose, round=number)


class Continuous:
    """Workers never stop on a row's account: batch n is the next `size` rows to finish, the rest is carried over.

    Samples are made `ahead` at a time, when the queue is empty. Before the model samples or learns, the scripts that
    run come to their own ends; they count for the next batch.
    """

    def __init__(
        self, *, ledger: Ledger, rounds: Rounds, executor: Executor, size: int, ahead: int, progress: Progress
    ) -> None:
        self._ledger, self._rounds, self._executor = ledger, rounds, executor
        self._size, self._ahead, self._progress = size, ahead, progress

    @property
    def goal(self) -> int:
        return self._size

    def collect(self, number: int) -> list[str]:
        queue = deque(self._ledger.open_rollouts("Train"))
        while (finished := len(self._ledger.unassigned())) < self._size:
            self._progress.advance(finished)
            if not queue:
                queue.extend(self._sample())
            with timed(self._ledger, "execution", number):
                self._work(queue)
        return self._ledger.unassigned()[: self._size]

    def _sample(self) -> list[RolloutRow]:
        self._rounds.ensure("Train", self._ledger.rounds("Train"), self._ahead)
        return self._ledger.open_rollouts("Train")

    def _work(self, queue: deque[RolloutRow]) -> None:
        """Launch from the queue until it is empty or the batch is full; then let what runs finish."""
        while queue and len(self._ledger.unassigned()) < self._size:
            while queue and self._executor.free:
                self._executor.launch(queue.popleft())
            self._executor.settle()
            self._progress.advance(min(self._size, len(self._ledger.unassigned())))
        self._executor.drain()


class Window:
    """The clock closes the batch: every row finished within `seconds` belongs to it, what still runs is Cancelled.

    An interrupted window goes on with the time that it had left; the scripts that ran are launched again first.
    Samples that were never launched are used by the next window.
    """

    def __init__(
        self,
        *,
        ledger: Ledger,
        rounds: Rounds,
        executor: Executor,
        seconds: float,
        ahead: int,
        progress: Progress,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self._rounds, self._executor = ledger, rounds, executor
        self._seconds, self._ahead, self._progress, self._now = seconds, ahead, progress, now

    @property
    def goal(self) -> int:
        return math.ceil(self._seconds)

    def collect(self, number: int) -> list[str]:
        state = self._state(number)
        if not state.closed:
            self._stock_up(number)
            with timed(self._ledger, "execution", number):
                self._run_window(number, state.elapsed)
            self._close_window(number)
        self._require_observable(number)
        return self._ledger.unassigned()

    def _state(self, number: int) -> WindowRow:
        known = [window for window in self._ledger.windows() if window.number == number]
        return known[0] if known else WindowRow(number, self._seconds, elapsed=0, closed=False)

    def _stock_up(self, number: int) -> None:
        """Have enough samples for the window before its clock starts: half as many again as the last one launched."""
        last = len(self._ledger.launches(number - 1))
        wanted = max(self._ahead, last + last // 2)
        missing = wanted - len(self._ledger.open_rollouts("Train"))
        if missing > 0:
            self._rounds.ensure("Train", self._ledger.rounds("Train"), missing)

    def _run_window(self, number: int, elapsed: float) -> None:
        clock = WindowClock(number, self._seconds, opened_at=self._now() - elapsed, now=self._now)
        queue = deque(self._ledger.open_rollouts("Train"))
        while clock.remaining > 0:
            if not queue:
                self._rounds.ensure("Train", self._ledger.rounds("Train"), self._ahead)
                queue.extend(row for row in self._ledger.open_rollouts("Train") if row.launched_at is None)
            while queue and self._executor.free and clock.remaining > 0:
                self._executor.launch(queue.popleft(), clock)
            self._executor.settle(max(0.0, clock.remaining))
            self._note(number, min(self._seconds, clock.elapsed()))
        self._executor.cancel()

    def _note(self, number: int, elapsed: float) -> None:
        self._ledger.record_window(WindowRow(number, self._seconds, elapsed, closed=False))
        self._progress.advance(elapsed, note=f"{len(self._ledger.unassigned())} finished")

    def _close_window(self, number: int) -> None:
        mass = missing_mass(*self._watched(number))
        self._ledger.record_window(
            WindowRow(number, self._seconds, self._seconds, closed=True, missing_mass=mass)
        )

    def _watched(self, number: int) -> list[WindowFacts]:
        """The window and the few before it: one alone estimates so badly that healthy runs would stop by chance."""
        return [
            WindowFacts(self._seconds, tuple(self._ledger.launches(earlier)))
            for earlier in range(number, max(-1, number - WINDOWS_WATCHED), -1)
        ]

    def _require_observable(self, number: int) -> None:
        if not self._ledger.unassigned():
            raise InternalError(
                f"window {number}: no rollout finished within collection.windowSeconds = {self._seconds:g}; "
                "give it more seconds"
            )
        require_small_missing_mass(*self._watched(number))
