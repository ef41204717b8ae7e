"""The cluster behind the port `SandboxBackend`: synchronous outside, one thread with an event loop inside."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from mlwright_sandbox.backend import Finished, SandboxRequest

from mlwright_trainer.cluster.errors import ClusterUnavailable
from mlwright_trainer.cluster.live import LiveRollouts, Told
from mlwright_trainer.cluster.manifest import rollout_object
from mlwright_trainer.cluster.owner import Owner
from mlwright_trainer.cluster.port import RolloutApi
from mlwright_trainer.errors import MlwrightError

CLOSE_SECONDS = 15.0
"""How long `close` tries to delete what still runs."""
Result = TypeVar("Result")


class ClusterBackend:
    """Runs scripts as Rollout objects of one owner. A backend that has failed stays failed: `collect` says why.

    A process that dies leaves its objects; the next one calls `adopt` with what its ledger has open, and submits
    that again under the same ids: each is taken over where it stands, also if it has ended meanwhile.
    """

    def __init__(
        self,
        open_api: Callable[[], Awaitable[RolloutApi]],
        owner: Owner,
        *,
        slots: int,
        sandbox: str = "default",
        told: Told = lambda _rollout, _line: None,
    ) -> None:
        self._owner, self._slots, self._sandbox = owner, slots, sandbox
        self._finished: queue.SimpleQueue[Finished | MlwrightError] = queue.SimpleQueue()
        self._in_flight: set[str] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._told = told
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mlwright-cluster", daemon=True)
        self._thread.start()
        try:
            self._api, self._live = self._call(self._open(open_api))
        except BaseException:
            self._stop()
            raise
        self._following = self._spawn(self._live.follow())

    async def _open(self, open_api: Callable[[], Awaitable[RolloutApi]]) -> tuple[RolloutApi, LiveRollouts]:
        api = await open_api()
        return api, LiveRollouts(api, self._owner, give=self._give, told=self._told)

    @property
    def slots(self) -> int:
        """How many rollouts are worth having in flight; how many run at a time is the operator's to decide."""
        return self._slots

    def object_name(self, rollout: str) -> str:
        """The name of a rollout's object."""
        return self._owner.object_name(rollout)

    def adopt(self, rollouts: Collection[str]) -> list[str]:
        """Which of these an earlier process has left running or ended; whatever else of this owner's is deleted.

        Call it once, before the first `submit`, with every id that will still be asked for.
        """
        self._require_open()
        return self._call(self._live.adopt(rollouts))

    def submit(self, request: SandboxRequest) -> None:
        """Create the Rollout, in the background, or take over the one that is there.

        Errors: ValueError if it is in flight already; ClusterRefused for what no cluster can do.
        """
        body = rollout_object(request, self._owner, sandbox=self._sandbox)
        self._require_open()
        with self._lock:
            if request.rollout in self._in_flight:
                raise ValueError(f"rollout {request.rollout!r} is in flight already")
            self._in_flight.add(request.rollout)
        self._loop.call_soon_threadsafe(self._live.start, request.rollout, body)

    def collect(self, timeout: float | None = None) -> Sequence[Finished]:
        """What has finished; see the port. Errors: MlwrightError where no more will come."""
        found: list[Finished] = []
        try:
            item = self._finished.get(timeout=timeout)
            while not isinstance(item, MlwrightError):
                found.append(item)
                item = self._finished.get_nowait()
        except queue.Empty:
            return found
        self._finished.put(item)
        if not found:
            raise item
        return found

    def cancel(self, rollout: str) -> None:
        """End a rollout; unknown ones have ended, and after `close` all have."""
        if not self._closed:
            self._loop.call_soon_threadsafe(self._live.cancel, rollout)

    def release(self, rollout: str) -> None:
        """Delete the object of a collected rollout, in the background: its result is committed."""
        if not self._closed:
            self._spawn(self._live.release(rollout))

    def detach(self) -> None:
        """Let go without deleting anything: what runs goes on, for whoever adopts it. Idempotent."""
        with self._lock:
            already, self._closed = self._closed, True
        if not already:
            self._call(self._finish())
            self._stop()

    def close(self) -> None:
        """Delete every object of ours, running or not; idempotent. What ran can be collected, as Cancelled."""
        with self._lock:
            already, self._closed = self._closed, True
        if not already:
            self._call(self._end())
            self._call(self._finish())
            self._stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _end(self) -> None:
        self._live.cancel_all()
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._live.ended()
                await self._live.release_all()
        except TimeoutError:
            left = ", ".join(self._live.kept) or "perhaps some"
            self._told(
                "", f"could not delete these Rollouts in {CLOSE_SECONDS:g} s: {left} ({self._api.place})"
            )

    async def _finish(self) -> None:
        """End everything in the loop but this."""
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)
        await self._api.close()

    def _require_open(self) -> None:
        if self._closed:
            raise ClusterUnavailable("the backend is closed")

    def _give(self, item: Finished | MlwrightError) -> None:
        if isinstance(item, Finished):
            with self._lock:
                self._in_flight.discard(item.rollout)
        self._finished.put(item)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._finished.put(ClusterUnavailable("the backend is closed"))
