"""Lists everything: before the first pass, whenever a watch began anew, and every so often in any case."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mlwright_operator.edge import clock
from mlwright_operator.edge.clock import Sleep, sleep
from mlwright_operator.edge.health import Health
from mlwright_operator.edge.loop import backoff
from mlwright_operator.errors import ApiFailure

log = logging.getLogger(__name__)

SETTLE_SECONDS = 1.0
"""A watch that begins anew reports many objects: one list after them, and not one each."""


class Resync:
    """Keeps a store complete; `wanted` asks for a list soon."""

    def __init__(
        self,
        refresh: Callable[[], Awaitable[bool]],
        *,
        wanted: asyncio.Event,
        wake: Callable[[], None],
        failed: Callable[[str], None],
        health: Health,
        seconds: float,
        sleep: Sleep = sleep,
    ) -> None:
        self._refresh = refresh
        self._wanted = wanted
        self._wake = wake
        self._failed = failed
        self._health = health
        self._seconds = seconds
        self._sleep = sleep

    async def first(self) -> None:
        """List everything once, however long it takes."""
        failures = 0
        while not await self._list():
            failures += 1
            await self._sleep(backoff(failures))

    async def run(self) -> None:
        """List again and again, until cancelled."""
        while True:
            if await clock.wait(self._wanted, seconds=self._seconds):
                await self._sleep(SETTLE_SECONDS)
            self._wanted.clear()
            await self.first()

    async def _list(self) -> bool:
        try:
            await self._refresh()
        except ApiFailure as failure:
            self._failed("list")
            self._health.failed("list", _explained(failure))
            log.warning("list failed: %s", _explained(failure))
            return False
        self._health.listed()
        # News or not: a pass shows that we can work, and notices what only time changes.
        self._wake()
        return True


def _explained(failure: ApiFailure) -> str:
    """With what to do about it, where a person has to."""
    if failure.gone:
        return f"{failure} (are the CRDs there? kubectl apply -f crds/)"
    if failure.status in (401, 403):
        return f"{failure} (does the service account have the rights in operator/rbac.yaml?)"
    return str(failure)
