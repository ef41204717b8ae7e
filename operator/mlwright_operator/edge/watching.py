"""kopf, which only wakes us: its event handlers hand every watched object over, and write nothing.

kopf runs in a thread with an event loop of its own, because on its way out it cancels every task of its loop, its
signal handlers replace ours, and some answers to a watch end it: none of that may touch a write in flight.
What it cannot tell (which objects vanished while a watch was broken) comes from lists: see Watch.relisted.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

import kopf
from kubernetes.aio.client.configuration import Configuration

from mlwright_operator.actions import Kind
from mlwright_operator.edge.clock import Sleep, sleep
from mlwright_operator.edge.connection import REQUEST_SECONDS
from mlwright_operator.edge.listing import PAGE
from mlwright_operator.edge.resources import Resource

log = logging.getLogger(__name__)

Take = Callable[[Kind, str | None, Mapping[str, Any]], bool]
"""Takes in an event: kind, type (ADDED, MODIFIED, DELETED; None: it was in a list) and object; whether it is news."""
_Hear = Callable[[Kind, str | None, Mapping[str, Any]], None]

STOP_SECONDS = 1.0
RESTART_SECONDS = 5.0


class Watch:
    """Runs kopf, again whenever it ends."""

    def __init__(
        self,
        *,
        configuration: Configuration,
        resources: Sequence[Resource],
        namespaces: Sequence[str],
        take: Take,
        wake: Callable[[], None],
        failed: Callable[[str], None],
        sleep: Sleep = sleep,
    ) -> None:
        self._configuration = configuration
        self._resources = tuple(resources)
        self._namespaces = tuple(namespaces)
        self._take_in = take
        self._wake = wake
        self._failed = failed
        self._sleep = sleep
        self.relisted = asyncio.Event()
        """Set when objects came from a list: a watch began, or began anew, and may have missed deletions."""

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self.relisted.set()
            ended = await self._one_life()
            self._failed("watch")
            log.warning("the watches ended, and begin anew: %s", ended)
            await self._sleep(RESTART_SECONDS)

    async def _one_life(self) -> BaseException | None:
        """One kopf from start to end; why it ended. Cancelled: kopf is stopped, and awaited a little."""
        life = _Life(self._registry(), settings(self._resources), self._namespaces)
        life.start()
        try:
            return await asyncio.shield(life.ended)
        finally:
            life.stop()
            await asyncio.wait([life.ended], timeout=STOP_SECONDS)

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(self._login)
        loop = asyncio.get_running_loop()
        for resource in self._resources:
            handler = _handler(resource.kind, loop, self._take)
            kopf.on.event(resource.group, resource.version, resource.plural, registry=registry)(handler)
        return registry

    def _take(self, kind: Kind, event: str | None, raw: Mapping[str, Any]) -> None:
        if event is None:
            self.relisted.set()
        if self._take_in(kind, event, raw):
            self._wake()

    async def _login(self, **_: Any) -> kopf.ConnectionInfo:
        return await connection_info(self._configuration)


class _Life:
    """A thread with one kopf in it."""

    def __init__(
        self, registry: kopf.OperatorRegistry, settings: kopf.OperatorSettings, namespaces: Sequence[str]
    ) -> None:
        self._registry = registry
        self._settings = settings
        self._namespaces = namespaces
        self._ours = asyncio.get_running_loop()
        self._theirs: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._stopped = False
        self.ended: asyncio.Future[BaseException | None] = self._ours.create_future()

    def start(self) -> None:
        threading.Thread(target=self._run, name="kopf", daemon=True).start()

    def stop(self) -> None:
        """Ask kopf to end; safe at any time."""
        self._stopped = True
        if self._theirs is not None and self._stop is not None and not self.ended.done():
            try:
                self._theirs.call_soon_threadsafe(self._stop.set)
            except RuntimeError:
                log.debug("kopf's loop had closed already")

    def _run(self) -> None:
        problem: BaseException | None = None
        try:
            asyncio.run(self._operate())
        except BaseException as error:
            # Whatever ended it, the thread that started it decides.
            problem = error
        try:
            self._ours.call_soon_threadsafe(self._report, problem)
        except RuntimeError:
            log.debug("nobody waits for kopf any more")

    def _report(self, problem: BaseException | None) -> None:
        if not self.ended.done():
            self.ended.set_result(problem)

    async def _operate(self) -> None:
        self._theirs, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._stopped:
            return
        await kopf.operator(
            registry=self._registry,
            settings=self._settings,
            standalone=True,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            stop_flag=self._stop,
        )


def _handler(kind: Kind, loop: asyncio.AbstractEventLoop, take: _Hear) -> Callable[..., Any]:
    async def hand_over(event: Mapping[str, Any], **_: Any) -> None:
        try:
            loop.call_soon_threadsafe(take, kind, event["type"], event["object"])
        except RuntimeError:
            log.debug("an event after the end")

    return hand_over


def settings(resources: Sequence[Resource]) -> kopf.OperatorSettings:
    """kopf as a mere watcher: selectors applied by the API server, no peering, no events, nothing stored."""
    chosen = kopf.OperatorSettings()
    chosen.posting.enabled = False
    chosen.scanning.disabled = True
    chosen.process.ultimate_exiting_timeout = None
    chosen.networking.request_timeout = REQUEST_SECONDS
    chosen.networking.error_backoffs = _Backoffs()
    chosen.watching.chunk_size = PAGE
    # A task for each object that was listed or changed, and for this long: with 1,000 Rollouts and their Jobs the
    # default of 5 s costs 40 MB.
    chosen.queueing.idle_timeout = 0.1
    chosen.persistence.finalizer = "mlwright.dev/never-set"
    chosen.persistence.diffbase_storage = _NoDiffs()
    chosen.persistence.progress_storage = _NoProgress()
    for resource in resources:
        if resource.selector:
            key = (resource.group, resource.version, resource.plural)
            chosen.watching.label_selectors[key] = resource.selector
    return chosen


class _Backoffs:
    """Seconds between attempts: soon at first, and never giving up."""

    def __iter__(self) -> Iterator[float]:
        yield from (0.5, 1, 2, 3, 5)
        while True:
            yield 5


class _NoDiffs(kopf.DiffBaseStorage):
    """kopf's copy of each object, by which it would tell changes: we compare nothing, and it copies nothing."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return cast(kopf.BodyEssence, {})

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        """Nothing is ever kept on an object."""


class _NoProgress(kopf.ProgressStorage):
    """Progress of handlers, of which we have none that could be repeated."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        """Nothing is ever kept on an object."""

    def purge(self, **_: Any) -> None:
        """There is nothing to purge."""

    def touch(self, **_: Any) -> None:
        """kopf would touch an annotation to be woken later."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        return essence


async def connection_info(configuration: Configuration) -> kopf.ConnectionInfo:
    """kubernetes.aio's way to the API server, in kopf's words; with a fresh token where tokens rotate."""
    auth = (await configuration.auth_settings()).get("BearerToken")
    scheme, _, token = str(auth["value"]).partition(" ") if auth else ("", "", "")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        ca_data=configuration.ca_cert_data,
        insecure=not configuration.verify_ssl,
        scheme=scheme or None,
        token=token or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )
