"""Carries out actions on a real API server; each may be carried out twice without harm."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Protocol

from mlwright_operator.actions import Action, Apply, Delete, Emit, Kind, Ref, WriteStatus
from mlwright_operator.edge.connection import Api
from mlwright_operator.edge.gate import Gate
from mlwright_operator.edge.resources import RESOURCES
from mlwright_operator.errors import ApiFailure

MANAGER = "mlwright-operator"
"""The one field manager of server-side apply."""
EVENTS = "/apis/events.k8s.io/v1/namespaces/{namespace}/events"
NOTE_BYTES = 1024
_APPLYING = {"fieldManager": MANAGER, "force": "true"}


class Memory(Protocol):
    """Where the answers of our own writes go, so that the next plan knows of them before any watch does."""

    def put(self, kind: Kind, raw: Mapping[str, Any]) -> bool:
        """An object as the API server returned it."""
        ...

    def gone(self, kind: Kind, uid: str) -> bool:
        """It does not exist any more."""
        ...


class KubeCluster:
    """The Cluster behind an API server; every write passes the gate."""

    def __init__(
        self,
        api: Api,
        *,
        gate: Gate,
        memory: Memory,
        instance: str = MANAGER,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = api
        self._gate = gate
        self._memory = memory
        self._instance = instance
        self._now = now

    async def carry_out(self, action: Action) -> Mapping[str, Any] | None:
        """As Cluster says. Raises ApiFailure, and WritesClosed where this process may not write."""
        with self._gate.writing() as seconds:
            match action:
                case Apply():
                    return await self._apply(action, seconds)
                case WriteStatus():
                    return await self._write_status(action, seconds)
                case Delete():
                    await self._delete(action, seconds)
                case Emit():
                    await self._emit(action, seconds)
        return None

    async def _apply(self, action: Apply, seconds: float) -> Mapping[str, Any]:
        metadata = action.body["metadata"]
        path = RESOURCES[action.kind].path(namespace=metadata["namespace"], name=metadata["name"])
        found = await self._api.request("apply", path, query=_APPLYING, body=action.body, seconds=seconds)
        self._memory.put(action.kind, found)
        return found

    async def _write_status(self, action: WriteStatus, seconds: float) -> Mapping[str, Any]:
        try:
            found = await self._api.request(
                "apply",
                _path(action.ref, subresource="status"),
                query=_APPLYING,
                body=_status_body(action),
                seconds=seconds,
            )
        except ApiFailure as failure:
            if failure.gone:
                self._memory.gone(action.ref.kind, action.ref.uid)
            raise
        self._memory.put(action.ref.kind, found)
        return found

    async def _delete(self, action: Delete, seconds: float) -> None:
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": action.ref.uid},
            "propagationPolicy": "Background",
        }
        try:
            left = await self._api.request("delete", _path(action.ref), body=options, seconds=seconds)
        except ApiFailure as failure:
            # 409: the name belongs to a later object, so ours is gone.
            if not failure.gone and not failure.conflict:
                raise
            left = {}
        if left.get("metadata", {}).get("deletionTimestamp"):
            self._memory.put(action.ref.kind, left)
        else:
            self._memory.gone(action.ref.kind, action.ref.uid)

    async def _emit(self, action: Emit, seconds: float) -> None:
        path = EVENTS.format(namespace=action.about.namespace)
        body = event_body(action, now=self._now(), instance=self._instance)
        try:
            await self._api.request("create", path, body=body, seconds=seconds)
        except ApiFailure as failure:
            # 409: said before. 404: whom it is about has gone, with the namespace.
            if not failure.conflict and not failure.gone:
                raise


def _path(ref: Ref, *, subresource: str = "") -> str:
    return RESOURCES[ref.kind].path(namespace=ref.namespace, name=ref.name, subresource=subresource)


def _status_body(action: WriteStatus) -> dict[str, Any]:
    """With uid and resourceVersion, which the API server compares: a stale plan is a conflict, not a status."""
    return {
        "apiVersion": RESOURCES[action.ref.kind].api_version,
        "kind": action.ref.kind.value,
        "metadata": {
            "name": action.ref.name,
            "namespace": action.ref.namespace,
            "uid": action.ref.uid,
            "resourceVersion": action.resource_version,
        },
        "status": action.status,
    }


def event_body(action: Emit, *, now: datetime, instance: str) -> dict[str, Any]:
    """An events.k8s.io Event whose name is derived from what it says: saying it twice makes one."""
    about = action.about
    said = "\0".join((about.uid, action.type, action.reason, action.message))
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {
            "name": f"{about.name[:200].rstrip('.-')}.{hashlib.sha256(said.encode()).hexdigest()[:16]}",
            "namespace": about.namespace,
        },
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": action.type,
        "reason": action.reason[:128],
        "action": "Reconcile",
        "note": action.message.encode()[:NOTE_BYTES].decode(errors="ignore"),
        "regarding": {
            "apiVersion": RESOURCES[about.kind].api_version,
            "kind": about.kind.value,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        },
        "reportingController": "mlwright.dev/operator",
        "reportingInstance": instance[:128],
    }
