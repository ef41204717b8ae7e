"""Asking again: how long to pause after which failure, and a request that is repeated until it is answered."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from mlwright_trainer.cluster.errors import ApiFailure

FIRST_SECONDS = 0.2
MOST_SECONDS = 15.0
Sleep = Callable[[float], Awaitable[None]]
Result = TypeVar("Result")


class Pause:
    """How long to wait before the next try: doubled by every failure, shortened at random so that clients part."""

    def __init__(self, *, draw: Callable[[], float] = random.random) -> None:
        self._draw = draw
        self._next = FIRST_SECONDS

    def after(self, failure: ApiFailure) -> float:
        """Seconds; at least what the server asked for."""
        seconds = self._next * (0.5 + self._draw() / 2)
        self._next = min(2 * self._next, MOST_SECONDS)
        return max(seconds, failure.retry_after or 0.0)

    def reset(self) -> None:
        """It worked."""
        self._next = FIRST_SECONDS


async def persist(
    request: Callable[[], Awaitable[Result]], *, sleep: Sleep, trouble: Callable[[ApiFailure], None]
) -> Result:
    """The answer of a request that may be sent twice, sent until there is one; `trouble` hears of every failure.

    Errors: ApiFailure that asking again will not mend.
    """
    pause = Pause()
    while True:
        try:
            return await request()
        except ApiFailure as failure:
            if not failure.passing:
                raise
            trouble(failure)
            await sleep(pause.after(failure))
