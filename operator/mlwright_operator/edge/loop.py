"""One worker: however often it is woken, one pass at a time, again at once while passes write, later after failures."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mlwright_operator.edge import clock
from mlwright_operator.edge.gate import Gate
from mlwright_operator.edge.health import Health
from mlwright_operator.errors import OperatorError, WritesClosed

log = logging.getLogger(__name__)

FIRST_BACKOFF = 0.5
LONGEST_BACKOFF = 15.0


@dataclass(frozen=True)
class Passed:
    """What the loop needs to know of a pass."""

    wrote: bool
    """It changed something: look again at once, until there is nothing left to do."""
    due: float | None = None
    """Seconds until something is due by the clock alone (a retry, a deadline)."""


Pass = Callable[[], Awaitable[Passed]]
Wait = Callable[[asyncio.Event, float | None], Awaitable[bool]]


async def _wait(event: asyncio.Event, seconds: float | None) -> bool:
    return await clock.wait(event, seconds=seconds)


class Worker:
    """Runs passes when woken, as long as the gate is open."""

    def __init__(
        self,
        one_pass: Pass,
        *,
        gate: Gate,
        health: Health,
        failed: Callable[[str], None],
        wait: Wait = _wait,
    ) -> None:
        self._pass = one_pass
        self._gate = gate
        self._health = health
        self._failed = failed
        self._wait = wait
        self._woken = asyncio.Event()
        self._failures = 0

    def wake(self) -> None:
        """There is news. Cheap: any number of wakes before the next pass make one pass."""
        self._woken.set()

    async def run(self) -> None:
        """Work until cancelled."""
        due: float | None = None
        while True:
            await self._wait(self._woken, due)
            await self._gate.opened()
            self._woken.clear()
            due = await self.turn()

    async def turn(self) -> float | None:
        """One pass; seconds until the next is due without a wake (None: none is)."""
        self._health.began()
        try:
            passed = await self._pass()
        except Exception as error:
            return await self._failed_pass(first_cause(error))
        self._failures = 0
        self._health.passed()
        return 0 if passed.wrote else passed.due

    async def _failed_pass(self, error: BaseException) -> float | None:
        if isinstance(error, WritesClosed):
            # The lease ran out in the middle: what was not written is planned anew by whoever leads then.
            log.info("pass ended early: %s", error)
            self._health.stood_by()
            return 0
        self._failures += 1
        self._failed("pass" if isinstance(error, OperatorError) else "bug")
        self._health.failed("pass", str(error) or type(error).__name__)
        log.error("pass failed: %s", error, exc_info=error)
        # Wakes wait meanwhile: what fails at once would else be tried a hundred times a second.
        await self._wait(asyncio.Event(), backoff(self._failures))
        return 0


def backoff(failures: int) -> float:
    """Seconds to wait after so many failures in a row."""
    return float(min(LONGEST_BACKOFF, FIRST_BACKOFF * 2 ** min(failures - 1, 10)))


def first_cause(error: BaseException) -> BaseException:
    """The first real error of a group; that we may not write where that is among them."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    causes = [first_cause(each) for each in error.exceptions]
    return next((each for each in causes if isinstance(each, WritesClosed)), causes[0])
