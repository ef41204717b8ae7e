"""Time that only goes forward, also while the machine sleeps, and waiting: as values, so that tests need not wait."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

Sleep = Callable[[float], Awaitable[None]]

# A suspended machine's monotonic clock stands still on Linux, while its lease runs out elsewhere.
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def since_boot() -> float:
    """Seconds."""
    return time.clock_gettime(_CLOCK)


async def sleep(seconds: float) -> None:
    """asyncio.sleep."""
    await asyncio.sleep(seconds)


async def wait(event: asyncio.Event, *, seconds: float | None) -> bool:
    """Wait for an event, at most so long (None: for ever); whether it came."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
