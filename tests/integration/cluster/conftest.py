"""A real HTTP server that plays the Rollout part of an API server, badly where it is asked to."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskSpec

BASE = "/apis/mlwright.dev/v1alpha1/namespaces/lab"
SPEC = MLTaskSpec.model_validate(
    {
        "title": "Churn",
        "description": "Who leaves?",
        "metric": {"name": "accuracy"},
        "submission": {"targetColumns": ["y"], "kind": "Labels"},
        "reference": {"baseline": 0.5, "best": 0.9},
    }
)
SCORED = {"outcome": "Scored", "attempt": 1, "scores": {"Reward": 0.8}, "seconds": {"execution": 1.5}}
RUNNING = {
    "type": "Started",
    "status": "True",
    "reason": "Running",
    "message": "",
    "lastTransitionTime": "2027-01-15T08:00:05Z",
}
PATIENCE_SECONDS = 120.0
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def status_object(code: int, reason: str, message: str) -> dict[str, Any]:
    return {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": message}


def refusal(code: int, reason: str, message: str, **headers: str) -> web.Response:
    return web.json_response(status_object(code, reason, message), status=code, headers=headers)


@dataclass
class Fault:
    """What happens to the next `times` requests: answered with `code`, or (0) the connection is cut; `late`: after
    the request was carried out."""

    code: int = 0
    times: int = 1
    late: bool = False
    retry_after: str = ""


@dataclass
class ApiServer:
    """State and faults; everything is touched in the server's own thread, and read from the test's."""

    url: str = ""
    token: str = "first"
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    """By verb: create, get, delete, list, watch."""
    requests: Counter[str] = field(default_factory=Counter)
    statuses: list[dict[str, Any]] = field(default_factory=lambda: [dict(SCORED, conditions=[RUNNING])])
    """What the operator writes, one after the other, as soon as an object has been created."""
    installed: bool = True
    watchers: int = 0
    most_watchers: int = 0

    def __post_init__(self) -> None:
        self._history: list[tuple[int, str, dict[str, Any]]] = []
        self._version, self._oldest, self._uids = 1000, 0, 0
        self._open: list[web.Request] = []
        self._news: asyncio.Condition
        self.loop: asyncio.AbstractEventLoop
        self.tasks["churn"] = {
            "metadata": {"name": "churn"},
            "spec": wire(SPEC),
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Checked"}]},
        }

    # For the test's thread.

    def do(self, work: Callable[[], Any]) -> Any:
        """Carry out `work` in the server's thread, and let the watches hear of it."""

        async def carried_out() -> Any:
            done = work()
            async with self._news:
                self._news.notify_all()
            return done

        return asyncio.run_coroutine_threadsafe(carried_out(), self.loop).result(PATIENCE_SECONDS)

    def say(self, name: str, status: dict[str, Any]) -> None:
        self.do(lambda: self._say(name, status))

    def drop(self, name: str) -> None:
        self.do(lambda: self._drop(name))

    def put(self, body: dict[str, Any]) -> None:
        self.do(lambda: self._put(copy.deepcopy(body)))

    def cut_watches(self, *, forget: bool = False) -> None:
        """Reset every watch; `forget`: compact, so that no watch can go on from where it was."""

        def cut() -> None:
            for request in self._open:
                assert request.transport is not None
                request.transport.abort()
            if forget:
                self._version += 1
                self._oldest = self._version

        self.do(cut)

    def bookmark(self) -> None:
        """Tell the watches a version far beyond the last change, and then forget what was before it."""

        def mark() -> None:
            self._version += 100
            self._history.append(
                (self._version, "BOOKMARK", {"metadata": {"resourceVersion": str(self._version)}})
            )

        self.do(mark)

    def wait_for(self, true: Callable[[], bool]) -> None:
        """Until something holds, or patience ends: the machine is shared."""

        async def waited() -> None:
            async with self._news:
                await asyncio.wait_for(self._news.wait_for(true), PATIENCE_SECONDS)

        asyncio.run_coroutine_threadsafe(waited(), self.loop).result(PATIENCE_SECONDS + 10)

    # The server's own.

    def _log(self, type: str, live: dict[str, Any]) -> None:
        self._version += 1
        live["metadata"]["resourceVersion"] = str(self._version)
        self._history.append((self._version, type, copy.deepcopy(live)))

    def _put(self, body: dict[str, Any]) -> dict[str, Any]:
        self._uids += 1
        body["metadata"] |= {"uid": f"uid-{self._uids}", "creationTimestamp": "2027-01-15T08:00:00Z"}
        self.objects[body["metadata"]["name"]] = body
        self._log("ADDED", body)
        answer = copy.deepcopy(body)
        for status in self.statuses:
            self._say(body["metadata"]["name"], status)
        return answer

    def _say(self, name: str, status: dict[str, Any]) -> None:
        self.objects[name]["status"] = copy.deepcopy(status)
        self._log("MODIFIED", self.objects[name])

    def _drop(self, name: str) -> None:
        self._log("DELETED", self.objects.pop(name))

    def application(self) -> web.Application:
        application = web.Application(middlewares=[self._badly])
        application.router.add_post(f"{BASE}/rollouts", self._create)
        application.router.add_get(f"{BASE}/rollouts", self._list_or_watch)
        application.router.add_get(BASE + "/rollouts/{name}", self._get)
        application.router.add_delete(BASE + "/rollouts/{name}", self._delete)
        application.router.add_get(
            "/apis/mlwright.dev/v1alpha1/namespaces/{namespace}/mltasks/{name}", self._task
        )
        application.router.add_get("/api/v1/namespaces/{name}", self._namespace)
        return application

    @web.middleware
    async def _badly(self, request: web.Request, handler: Answer) -> web.StreamResponse:
        if not self.installed:
            return web.Response(status=404, text="404 page not found\n")
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return refusal(401, "Unauthorized", "Unauthorized")
        verb = _verb(request)
        self.requests[verb] += 1
        fault = self.faults.get(verb)
        if fault is None or fault.times == 0:
            return await self._heard(request, handler)
        fault.times -= 1
        if fault.late:
            await self._heard(request, handler)
        if fault.code:
            headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
            return refusal(fault.code, "Broken", "as asked", **headers)
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _heard(self, request: web.Request, answer: Answer) -> web.StreamResponse:
        """Answer, and wake whoever waits for a change."""
        response = await answer(request)
        async with self._news:
            self._news.notify_all()
        return response

    async def _create(self, request: web.Request) -> web.Response:
        body = await request.json()
        name = body["metadata"]["name"]
        if name in self.objects:
            return refusal(409, "AlreadyExists", f'rollouts.mlwright.dev "{name}" already exists')
        return web.json_response(self._put(body), status=201)

    async def _get(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self.objects:
            return refusal(404, "NotFound", f'rollouts.mlwright.dev "{name}" not found')
        return web.json_response(self.objects[name])

    async def _delete(self, request: web.Request) -> web.Response:
        name, options = request.match_info["name"], await request.json()
        if name not in self.objects:
            return refusal(404, "NotFound", f'rollouts.mlwright.dev "{name}" not found')
        metadata, wanted = self.objects[name]["metadata"], options["preconditions"]
        assert options["propagationPolicy"] == "Background"
        if any(metadata[key] != value for key, value in wanted.items()):
            return refusal(409, "Conflict", "Precondition failed")
        self._drop(name)
        return web.json_response(status_object(200, "", "") | {"status": "Success"})

    async def _list_or_watch(self, request: web.Request) -> web.StreamResponse:
        if request.query.get("watch") == "true":
            return await self._watch(request)
        chosen = [live for live in self.objects.values() if _matches(live, request.query["labelSelector"])]
        start, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        metadata = {"resourceVersion": str(self._version)}
        if start + limit < len(chosen):
            metadata["continue"] = str(start + limit)
        return web.json_response({"metadata": metadata, "items": chosen[start : start + limit]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        at = int(request.query["resourceVersion"])
        assert request.query["allowWatchBookmarks"] == "true"
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        if at < self._oldest:
            expired = {"type": "ERROR", "object": status_object(410, "Expired", "too old resource version")}
            await response.write(json.dumps(expired).encode() + b"\n")
            return response
        self._open.append(request)
        self.watchers += 1
        self.most_watchers = max(self.watchers, self.most_watchers)
        async with self._news:
            self._news.notify_all()
        try:
            while True:
                for version, type, live in list(self._history):
                    if version > at and (
                        type == "BOOKMARK" or _matches(live, request.query["labelSelector"])
                    ):
                        at = version
                        line = json.dumps({"type": type, "object": live}).encode() + b"\n"
                        middle = len(line) // 2
                        await response.write(line[:middle])  # an event need not come in one piece
                        await response.write(line[middle:])
                async with self._news:
                    await self._news.wait()
        finally:
            self._open.remove(request)
            self.watchers -= 1

    async def _task(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if request.match_info["namespace"] != "lab" or name not in self.tasks:
            return refusal(404, "NotFound", f'mltasks.mlwright.dev "{name}" not found')
        return web.json_response(self.tasks[name])

    async def _namespace(self, request: web.Request) -> web.Response:
        if request.match_info["name"] != "lab":
            return refusal(404, "NotFound", "namespaces not found")
        return web.json_response({"metadata": {"name": "lab"}})

    async def serve(self, ready: threading.Event, stop: asyncio.Event) -> None:
        self._news = asyncio.Condition()
        runner = web.AppRunner(self.application(), shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await stop.wait()
        for request in list(self._open):
            if request.transport is not None:
                request.transport.abort()
        await runner.cleanup()


def _verb(request: web.Request) -> str:
    if request.method == "POST":
        return "create"
    if request.method == "DELETE":
        return "delete"
    if request.path != f"{BASE}/rollouts":
        return "get"
    return "watch" if request.query.get("watch") == "true" else "list"


def _matches(live: dict[str, Any], selector: str) -> bool:
    key, _, value = selector.partition("=")
    return (live["metadata"].get("labels") or {}).get(key) == value


@pytest.fixture
def api_server() -> Iterator[ApiServer]:
    """Serves until the test ends."""
    server, ready = ApiServer(), threading.Event()
    server.loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: server.loop.run_until_complete(server.serve(ready, stop)))
    thread.start()
    assert ready.wait(10)
    yield server
    server.loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    assert not thread.is_alive()
    server.loop.close()


@pytest.fixture
def kubeconfig(api_server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """$KUBECONFIG for that server; the token is in a file beside it."""
    (tmp_path / "token").write_text(api_server.token)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [
            {"name": "test", "cluster": {"server": api_server.url}},
            {"name": "away", "cluster": {"server": "http://127.0.0.1:9"}},
        ],
        "users": [{"name": "me", "user": {"tokenFile": str(tmp_path / "token")}}],
        "contexts": [
            {"name": "test", "context": {"cluster": "test", "user": "me", "namespace": "lab"}},
            {"name": "away", "context": {"cluster": "away", "user": "me"}},
        ],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    return path


@pytest.fixture
def fault() -> type[Fault]:
    return Fault


@pytest.fixture
def spec() -> MLTaskSpec:
    return SPEC
