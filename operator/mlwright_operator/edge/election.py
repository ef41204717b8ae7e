"""Which of several operators writes: a Lease, with a local deadline for writes, and handed over on a clean stop.

Why not `kubernetes.aio.leaderelection`: it has no time limit a call, does not release, and keeps local time as text.
Times of other machines are never compared: a lease has expired once *we* have seen it unchanged for its duration.
The leader counts from before it sent its renewal, the others from after they saw it, so it stops before they start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mlwright_operator.edge.clock import Sleep, since_boot, sleep
from mlwright_operator.edge.connection import Api
from mlwright_operator.edge.gate import Gate
from mlwright_operator.errors import ApiFailure, LeaseLost

log = logging.getLogger(__name__)

GROUP = "/apis/coordination.k8s.io/v1"


@dataclass(frozen=True)
class LeaseTimes:
    """In seconds: others wait `duration`; the leader writes for `writing` after its last renewal, every `retry`."""

    duration: float = 15
    writing: float = 10
    retry: float = 2
    call: float = 5
    """Time limit of one call."""


@dataclass(frozen=True)
class Held:
    """A lease as it was last seen, and since when it has looked so (by our clock)."""

    holder: str
    version: str
    seconds: float
    transitions: int
    since: float
    metadata: Mapping[str, Any]
    acquired: str | None = None

    def free(self, now: float) -> bool:
        """Nobody holds it, or its holder has not renewed it in time."""
        return not self.holder or now - self.since >= self.seconds


class Election:
    """Takes the lease when it is free, renews it, opens the gate while it is held."""

    def __init__(
        self,
        api: Api,
        *,
        gate: Gate,
        namespace: str,
        name: str,
        identity: str,
        times: LeaseTimes = LeaseTimes(),
        clock: Callable[[], float] = since_boot,
        sleep: Sleep = sleep,
    ) -> None:
        self._api = api
        self._gate = gate
        self._collection = f"{GROUP}/namespaces/{namespace}/leases"
        self._name = name
        self._identity = identity
        self._times = times
        self._clock = clock
        self._sleep = sleep
        self._seen: Held | None = None
        self._led = False
        self.leading = asyncio.Event()
        """Set for good once the lease has been held."""

    async def run(self) -> None:
        """Compete, then hold, until cancelled. Raises LeaseLost once another process leads after us.

        While the API server is away nothing is lost: the gate closes by itself at the deadline, and opens again if
        nobody took the lease meanwhile.
        """
        while True:
            try:
                await self.turn()
            except ApiFailure as failure:
                log.warning("lease: %s", failure)
            await self._sleep(self._times.retry)

    async def turn(self) -> None:
        """One attempt to take or to renew the lease. Raises ApiFailure, LeaseLost."""
        if self._seen is None or not self._mine(self._seen):
            await self._look()
        if self._seen is not None and not self._mine(self._seen):
            if self._led:
                raise LeaseLost(f"{self._seen.holder or 'nobody'} holds the lease now")
            if not self._seen.free(self._clock()):
                return
        await self._take()

    async def release(self) -> None:
        """Let another lead at once; the gate must be shut and drained. A failure only costs the lease's duration."""
        if self._seen is None or not self._mine(self._seen):
            return
        try:
            await self._write(self._seen, holder="")
        except ApiFailure as failure:
            log.warning("lease not released: %s", failure)

    def _mine(self, held: Held) -> bool:
        return held.holder == self._identity

    async def _look(self) -> None:
        try:
            self._see(await self._call("get", f"{self._collection}/{self._name}"))
        except ApiFailure as failure:
            if not failure.gone:
                raise
            if self._led:
                raise LeaseLost("the lease was deleted") from failure
            self._seen = None

    async def _take(self) -> None:
        sent = self._clock()
        try:
            await self._write(self._seen, holder=self._identity)
        except ApiFailure as failure:
            if not failure.conflict and not failure.gone:
                raise
            # Somebody else wrote (or deleted) it: look again at the next turn.
            self._seen = None
            return
        self._gate.open_until(sent + self._times.writing)
        if not self._led:
            log.info("leading", extra={"identity": self._identity})
        self._led = True
        self.leading.set()

    async def _write(self, seen: Held | None, *, holder: str) -> None:
        body = lease_body(seen, name=self._name, holder=holder, times=self._times, now=datetime.now(UTC))
        if seen is None:
            self._see(await self._call("create", self._collection, body))
        else:
            self._see(await self._call("update", f"{self._collection}/{self._name}", body))

    async def _call(self, verb: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return await self._api.request(verb, path, body=body, seconds=self._times.call)

    def _see(self, raw: Mapping[str, Any]) -> None:
        """Remember a lease; one that looks as before keeps the moment since which it does."""
        spec, metadata = raw.get("spec") or {}, raw["metadata"]
        version = str(metadata["resourceVersion"])
        same = self._seen is not None and self._seen.version == version
        self._seen = Held(
            holder=str(spec.get("holderIdentity") or ""),
            version=version,
            seconds=float(spec.get("leaseDurationSeconds") or self._times.duration),
            transitions=int(spec.get("leaseTransitions") or 0),
            since=self._seen.since if same and self._seen is not None else self._clock(),
            metadata=metadata,
            acquired=spec.get("acquireTime"),
        )


def lease_body(
    seen: Held | None, *, name: str, holder: str, times: LeaseTimes, now: datetime
) -> dict[str, Any]:
    """The Lease to write: with the version that was seen, so that of two who write one fails."""
    stamp = now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    renewal = seen is not None and seen.holder == holder
    transitions = 0 if seen is None else seen.transitions + (0 if renewal or not holder else 1)
    metadata: dict[str, Any] = {"name": name}
    if seen is not None:
        metadata |= {"resourceVersion": seen.version, "uid": seen.metadata["uid"]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": metadata,
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": round(times.duration) if holder else 1,
            "acquireTime": seen.acquired if renewal and seen is not None and seen.acquired else stamp,
            "renewTime": stamp,
            "leaseTransitions": transitions,
        },
    }
