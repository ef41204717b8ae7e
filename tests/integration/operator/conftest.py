"""A small API server over HTTP that behaves badly on request: resets, codes, slowness, lost and expired watches."""

from __future__ import annotations

import asyncio
import copy
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from kubernetes.aio.client.configuration import Configuration

Raw = dict[str, Any]

KINDS = {
    "namespaces": ("v1", "Namespace"),
    "pods": ("v1", "Pod"),
    "persistentvolumeclaims": ("v1", "PersistentVolumeClaim"),
    "jobs": ("batch/v1", "Job"),
    "networkpolicies": ("networking.k8s.io/v1", "NetworkPolicy"),
    "leases": ("coordination.k8s.io/v1", "Lease"),
    "events": ("events.k8s.io/v1", "Event"),
    "rollouts": ("mlwright.dev/v1alpha1", "Rollout"),
    "mltasks": ("mlwright.dev/v1alpha1", "MLTask"),
    "trainingruns": ("mlwright.dev/v1alpha1", "TrainingRun"),
}
CLUSTER_SCOPED = frozenset({"namespaces"})


@dataclass
class Call:
    """One request, as the server saw it."""

    method: str
    plural: str
    name: str
    query: Mapping[str, str]
    agent: str
    body: Raw | None = None

    @property
    def writes(self) -> bool:
        return self.method not in ("GET", "HEAD")


Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class _Fault:
    method: str
    plural: str
    answer: Fault
    times: int


@dataclass
class _Event:
    version: int
    plural: str
    type: str
    object: Raw


@dataclass
class ApiServer:
    """Objects, watches and faults."""

    objects: dict[tuple[str, str, str], Raw] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    log: list[_Event] = field(default_factory=list)
    faults: list[_Fault] = field(default_factory=list)
    url: str = ""
    served: set[str] = field(default_factory=lambda: set(KINDS))
    oldest: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    watches: set[asyncio.Transport] = field(default_factory=set)
    _versions: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    version: int = 0
    runner: web.AppRunner | None = None
    port: int = 0

    # What a test does to it.

    def configuration(self) -> Configuration:
        configuration = Configuration(host=self.url)
        configuration.api_key = {"BearerToken": "operator", "authorization": "Bearer operator"}
        return configuration

    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.writes]

    def fail(self, method: str, plural: str, answer: Fault, *, times: int = 1) -> None:
        self.faults.append(_Fault(method, plural, answer, times))

    async def put(self, plural: str, raw: Raw) -> Raw:
        """Create or replace an object behind everybody's back."""
        api_version, kind = KINDS[plural]
        key = (plural, raw["metadata"].get("namespace", ""), raw["metadata"]["name"])
        old = self.objects.get(key)
        raw = {"apiVersion": api_version, "kind": kind, **copy.deepcopy(raw)}
        raw["metadata"].setdefault(
            "uid", old["metadata"]["uid"] if old else f"uid-{plural}-{self.version + 1}"
        )
        raw["metadata"].setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        await self._store(key, raw, "MODIFIED" if old else "ADDED")
        return raw

    async def remove(self, plural: str, namespace: str, name: str, *, silently: bool = False) -> Raw:
        """Delete an object; silently: no watch ever says so."""
        raw = self.objects.pop((plural, namespace, name))
        self.version = next(self._versions)
        raw["metadata"]["resourceVersion"] = str(self.version)
        if not silently:
            await self._tell(_Event(self.version, plural, "DELETED", copy.deepcopy(raw)))
        return raw

    async def break_watches(self, *, expire: bool = False) -> None:
        """Cut every watch; `expire`: and forget the past, so that going on from it is answered with 410."""
        if expire:
            self.version = next(self._versions)
            self.oldest = self.version
            self.log.clear()
        for transport in list(self.watches):
            transport.abort()

    async def stop(self) -> None:
        assert self.runner is not None
        await self.runner.cleanup()

    async def start(self) -> None:
        """(Again) on the same port."""
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self.runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self.runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"

    # What it answers.

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        parts = request.path.strip("/").split("/")
        if (discovery := self._discovery(parts)) is not None:
            return web.json_response(discovery)
        namespace, plural, name, subresource = _address(parts)
        body = json.loads(await request.read() or b"null")
        agent = request.headers.get("User-Agent", "")
        self.calls.append(Call(request.method, plural, name, dict(request.query), agent, body))
        for fault in self.faults:
            if fault.times and fault.method in ("*", request.method) and fault.plural in ("*", plural):
                fault.times -= 1
                return await fault.answer(request)
        if plural not in self.served:
            return status(404, "NotFound", "the server could not find the requested resource")
        if request.query.get("watch") == "true":
            return await self._watch(request, plural, namespace)
        return await self.answer(request, (plural, namespace, name), subresource, body)

    def _discovery(self, parts: list[str]) -> Raw | None:
        served = {plural: KINDS[plural] for plural in self.served}
        if parts == ["api"]:
            return {"versions": ["v1"]}
        if parts == ["apis"]:
            groups = sorted({version.split("/")[0] for version, _ in served.values() if "/" in version})
            versions = {version.split("/")[0]: version for version, _ in served.values() if "/" in version}
            return {"groups": [_group(name, versions[name]) for name in groups]}
        version = "/".join(parts[1:])
        if (parts[0] == "api" and len(parts) == 2) or (parts[0] == "apis" and len(parts) == 3):
            return {
                "resources": [_resource(name, kind) for name, (api, kind) in served.items() if api == version]
            }
        return None

    async def answer(
        self, request: web.Request, key: tuple[str, str, str], subresource: str, body: Raw
    ) -> web.StreamResponse:
        plural, namespace, name = key
        if not name:
            return await self._collection(request, plural, namespace, body)
        found = self.objects.get(key)
        if request.method == "PATCH":
            return await self._apply(key, subresource, body)
        if found is None:
            return status(404, "NotFound", f"{plural} {name!r} not found")
        if request.method == "DELETE":
            wanted = ((body or {}).get("preconditions") or {}).get("uid")
            if wanted not in (None, found["metadata"]["uid"]):
                return status(409, "Conflict", "the UID in the precondition does not match")
            await self.remove(*key)
            return web.json_response(
                {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            )
        if request.method == "PUT":
            if body["metadata"].get("resourceVersion") != found["metadata"]["resourceVersion"]:
                return status(409, "Conflict", "the object has been modified")
            await self._store(
                key, {**body, "metadata": {**found["metadata"], **body["metadata"]}}, "MODIFIED"
            )
        return web.json_response(self.objects[key])

    async def _collection(
        self, request: web.Request, plural: str, namespace: str, body: Raw
    ) -> web.StreamResponse:
        if request.method == "POST":
            key = (plural, namespace, body["metadata"]["name"])
            if key in self.objects:
                return status(409, "AlreadyExists", f"{plural} already exists")
            body["metadata"] |= {"namespace": namespace}
            return web.json_response(await self.put(plural, body), status=201)
        selected = [
            raw
            for key, raw in self.objects.items()
            if key[0] == plural and namespace in ("", key[1]) and _matches(raw, request.query)
        ]
        start, limit = int(request.query.get("continue") or 0), int(request.query.get("limit") or 0)
        page = selected[start : start + limit] if limit else selected
        more = str(start + limit) if limit and start + limit < len(selected) else ""
        api_version, kind = KINDS[plural]
        items = [
            {key: value for key, value in raw.items() if key not in ("kind", "apiVersion")} for raw in page
        ]
        return web.json_response(
            {
                "kind": f"{kind}List",
                "apiVersion": api_version,
                "metadata": {"resourceVersion": str(self.version), "continue": more},
                "items": items,
            }
        )

    async def _apply(self, key: tuple[str, str, str], subresource: str, body: Raw) -> web.StreamResponse:
        """Server-side apply, as far as one manager needs it: what is applied replaces what was."""
        found = self.objects.get(key)
        metadata = body["metadata"]
        if found is None:
            if subresource or "uid" in metadata:
                return status(404, "NotFound", f"{key[0]} {key[2]!r} not found")
            return web.json_response(await self.put(key[0], body), status=201)
        for name in ("uid", "resourceVersion"):
            if metadata.get(name, found["metadata"][name]) != found["metadata"][name]:
                return status(409, "Conflict", f"Precondition failed: {name}")
        changed = {**found, "status": body["status"]} if subresource else {**found, **body, "metadata": {}}
        changed["metadata"] = {**found["metadata"], **({} if subresource else metadata)}
        if changed != found:
            await self._store(key, copy.deepcopy(changed), "MODIFIED")
        return web.json_response(self.objects[key])

    async def _store(self, key: tuple[str, str, str], raw: Raw, type: str) -> None:
        self.version = next(self._versions)
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.objects[key] = raw
        await self._tell(_Event(self.version, key[0], type, copy.deepcopy(raw)))

    async def _tell(self, event: _Event) -> None:
        self.log.append(event)
        async with self.changed:
            self.changed.notify_all()

    async def _watch(self, request: web.Request, plural: str, namespace: str) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        if since < self.oldest:
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
            return response
        assert isinstance(request.transport, asyncio.Transport)
        self.watches.add(request.transport)
        try:
            async for event in self._events(since, plural):
                mine = namespace in ("", event.object["metadata"].get("namespace", ""))
                if mine and _matches(event.object, request.query):
                    line = {"type": event.type, "object": event.object}
                    await response.write(json.dumps(line).encode() + b"\n")
        finally:
            self.watches.discard(request.transport)
        return response

    async def _events(self, since: int, plural: str) -> AsyncIterator[_Event]:
        while True:
            for event in [each for each in self.log if each.version > since and each.plural == plural]:
                since = event.version
                yield event
            async with self.changed:
                await self.changed.wait()


def _address(parts: list[str]) -> tuple[str, str, str, str]:
    """(namespace, plural, name, subresource) of a path."""
    rest = parts[2:] if parts[0] == "api" else parts[3:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    return (namespace, *[*rest, "", "", ""][:3])  # type: ignore[return-value]  # three of them, which mypy cannot count


def _group(name: str, version: str) -> Raw:
    one = {"groupVersion": version, "version": version.split("/")[1]}
    return {"name": name, "versions": [one], "preferredVersion": one}


def _resource(plural: str, kind: str) -> Raw:
    return {
        "name": plural,
        "singularName": kind.lower(),
        "kind": kind,
        "namespaced": plural not in CLUSTER_SCOPED,
        "verbs": ["get", "list", "watch", "create", "update", "patch", "delete"],
    }


def _matches(raw: Raw, query: Mapping[str, str]) -> bool:
    selector = query.get("labelSelector", "")
    labels = raw["metadata"].get("labels") or {}
    return all(
        labels.get(name) == value
        for name, _, value in (one.partition("=") for one in selector.split(","))
        if name
    )


def status(code: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """A Kubernetes Status as the answer."""
    said = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}
    return web.json_response(said, status=code, headers=headers)


@asynccontextmanager
async def serving() -> AsyncIterator[ApiServer]:
    server = ApiServer()
    await server.start()
    try:
        yield server
    finally:
        await server.break_watches()
        await server.stop()


@pytest.fixture
def api_server() -> Callable[[], Any]:
    """`async with api_server() as server`: running, with no objects."""
    return serving


@pytest.fixture
def answer() -> Callable[..., Fault]:
    """A fault that answers with a code and a Status."""

    def make(code: int, reason: str = "Failed", headers: Mapping[str, str] | None = None) -> Fault:
        async def give(request: web.Request) -> web.StreamResponse:
            return status(code, reason, "on purpose", headers)

        return give

    return make


@pytest.fixture
def reset() -> Fault:
    """A fault that cuts the connection before any answer."""

    async def cut(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    return cut
