"""The one place that decides whether this process may write: until the lease's deadline, unless it is stopping."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from mlwright_operator.edge.clock import since_boot
from mlwright_operator.errors import WritesClosed

MIN_SECONDS = 0.5
"""A write that has less time than this before the deadline is not begun."""


class Gate:
    """Fences writes by a local deadline, so that a paused or cut-off leader stops without asking anybody.

    Closed at first. Election moves the deadline on with each renewal; `shut` is for good.
    """

    def __init__(self, *, clock: Callable[[], float] = since_boot) -> None:
        self._clock = clock
        self._deadline = -math.inf
        self._shut = False
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._opened = asyncio.Event()

    @property
    def remaining(self) -> float:
        """Seconds for which writes are allowed; negative or 0: not now."""
        return -math.inf if self._shut else self._deadline - self._clock()

    @property
    def open(self) -> bool:
        return self.remaining > MIN_SECONDS

    def open_until(self, deadline: float) -> None:
        """Allow writes up to this moment of the clock."""
        self._deadline = deadline
        self._opened.set()

    def shut(self) -> None:
        """No further write begins in this process."""
        self._shut = True
        self._opened.set()

    async def opened(self) -> None:
        """Wait until writes are allowed (or shut for good)."""
        while not self.open and not self._shut:
            self._opened.clear()
            await self._opened.wait()

    async def drained(self) -> None:
        """Wait until the writes in flight have been answered (or have timed out)."""
        await self._idle.wait()

    @contextmanager
    def writing(self) -> Iterator[float]:
        """Around one write: gives the seconds that it may take. Raises WritesClosed where it must not begin."""
        seconds = self.remaining
        if seconds <= MIN_SECONDS:
            raise WritesClosed("stopping" if self._shut else "the lease is not held, or about to expire")
        self._in_flight += 1
        self._idle.clear()
        try:
            yield seconds
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle.set()
