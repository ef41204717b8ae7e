"""An API server in memory, with a watch that can lose, double and forget; and an operator that is told what to say."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import Outcome
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_trainer.cluster.errors import ApiFailure
from mlwright_trainer.cluster.live import GRACE_SECONDS, LiveRollouts
from mlwright_trainer.cluster.manifest import rollout_object
from mlwright_trainer.cluster.owner import Owner
from mlwright_trainer.cluster.port import Event, Listed, Object
from mlwright_trainer.errors import MlwrightError

NOW = 1_800_000_000.0
CREATED = "2027-01-15T08:00:00Z"
RUN = Owner("churn-run", "uid-of-the-run")
SPEC = MLTaskSpec.model_validate(
    {
        "title": "t",
        "description": "d",
        "metric": {"name": "accuracy"},
        "submission": {"targetColumns": ["y"], "kind": "Labels"},
        "reference": {"baseline": 0.5},
    }
)
NO_ANSWER = ApiFailure("connection reset", status=0)
Method = str
Answer = TypeVar("Answer")


def request(rollout: str = "train-00000-0001", script: str = "print(1)", **fields: Any) -> SandboxRequest:
    task = TaskMounts(name="churn", spec=SPEC, public=Path(), private=Path())
    return SandboxRequest(rollout=rollout, task=task, script=script, seed=7, **fields)


class MemoryApi:
    """One namespace; every state is kept with its resourceVersion."""

    place = "namespace test"

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.history: list[tuple[int, str, dict[str, Any]]] = []
        self.version = 100
        self.forgotten = 0
        """Watches from at or before this version are refused (410)."""
        self.unheard: Callable[[str, Object], bool] = lambda _type, _live: False
        self.doubled = False
        self.before: dict[Method, list[ApiFailure]] = {}
        """Raised instead of carrying out the next requests of that method."""
        self.after: dict[Method, list[ApiFailure]] = {}
        """Raised although the next requests of that method were carried out: the answer got lost."""
        self.then: dict[Method, Callable[[], None]] = {}
        """Happens once, between the next request of that method and its answer."""
        self.requests: list[str] = []
        self.ends: list[ApiFailure | None] = []
        self.on_create: Callable[[str], None] = lambda _name: None
        self.dies_at: tuple[int, bool] | None = None
        """The process that asks dies with this request (counted from 0), before or after it is carried out."""
        self.died = asyncio.Event()
        self._news = asyncio.Event()
        self._uids = 0

    # What the backend asks.

    async def create(self, body: Object) -> Object:
        name = body["metadata"]["name"]

        def act() -> Object:
            if name in self.objects:
                raise ApiFailure(f'rollouts "{name}" already exists', status=409, reason="AlreadyExists")
            self.put(body)
            self.on_create(name)
            return copy.deepcopy(self.objects[name])

        return await self._asked("create", act)

    async def get(self, name: str) -> Object:
        return await self._asked("get", lambda: copy.deepcopy(self._there(name)))

    async def delete(self, name: str, *, uid: str, version: str | None = None) -> None:
        def act() -> None:
            metadata = self._there(name)["metadata"]
            if metadata["uid"] != uid or version not in (None, metadata["resourceVersion"]):
                raise ApiFailure("the precondition does not hold", status=409, reason="Conflict")
            self.drop(name)

        await self._asked("delete", act)

    async def list(self, selector: str) -> Listed:
        def act() -> Listed:
            chosen = [copy.deepcopy(live) for live in self.objects.values() if _matches(live, selector)]
            return Listed(chosen, str(self.version))

        return await self._asked("list", act)

    async def watch(self, selector: str, *, version: str, seconds: float) -> AsyncIterator[Event]:
        await self._asked("watch", lambda: None)
        at = int(version)
        if at < self.forgotten:
            raise ApiFailure("too old resource version", status=410, reason="Expired")
        while True:
            for number, type, live in self.history:
                if number > at and _matches(live, selector):
                    at = number
                    if not self.unheard(type, live):
                        for _ in range(2 if self.doubled else 1):
                            yield Event(type, copy.deepcopy(live))  # type: ignore[arg-type]  # one of the names
            if self.ends:
                failure = self.ends.pop(0)
                if failure is None:
                    return
                raise failure
            self._news.clear()
            await self._news.wait()

    async def close(self) -> None: ...

    # What others do.

    def put(self, body: Object) -> dict[str, Any]:
        """An object as its creation leaves it."""
        self._uids += 1
        live = copy.deepcopy(dict(body))
        live["metadata"] |= {"uid": f"uid-{self._uids}", "creationTimestamp": CREATED}
        self.objects[live["metadata"]["name"]] = live
        self._log("ADDED", live)
        return live

    def say(self, name: str, **status: Any) -> None:
        """The operator writes into the status."""
        live = self.objects[name]
        live["status"] = {**live.get("status", {}), **status}
        self._log("MODIFIED", live)

    def finish(self, name: str, outcome: Outcome = Outcome.SCORED, **status: Any) -> None:
        started = {
            "type": "Started",
            "status": "True",
            "reason": "Running",
            "lastTransitionTime": "2027-01-15T08:00:05Z",
        }
        self.say(name, attempt=1, outcome=outcome.value, conditions=[started], **status)

    def drop(self, name: str) -> None:
        self._log("DELETED", self.objects.pop(name))

    def end_watch(self, failure: ApiFailure | None = None) -> None:
        self.ends.append(failure)
        self._news.set()

    def _log(self, type: str, live: dict[str, Any]) -> None:
        self.version += 1
        live["metadata"]["resourceVersion"] = str(self.version)
        self.history.append((self.version, type, copy.deepcopy(live)))
        self._news.set()

    def _there(self, name: str) -> dict[str, Any]:
        if name not in self.objects:
            raise ApiFailure(f'rollouts "{name}" not found', status=404, reason="NotFound")
        return self.objects[name]

    async def _asked(self, method: Method, act: Callable[[], Answer]) -> Answer:
        number = len(self.requests)
        self.requests.append(method)
        if self.dies_at == (number, False):
            await self._die()
        if self.before.get(method):
            raise self.before[method].pop(0)
        answer = act()
        if method in self.then:
            self.then.pop(method)()
        if self.dies_at == (number, True):
            await self._die()
        await asyncio.sleep(0)
        if self.after.get(method):
            raise self.after[method].pop(0)
        return answer

    async def _die(self) -> None:
        self.died.set()
        await asyncio.Event().wait()


def _matches(live: Object, selector: str) -> bool:
    key, _, value = selector.partition("=")
    return (live["metadata"].get("labels") or {}).get(key) == value


class World:
    """`LiveRollouts` of one owner against an API in memory, with time that costs nothing."""

    def __init__(self, api: MemoryApi, owner: Owner = RUN) -> None:
        self.api, self.owner = api, owner
        self.given: list[Finished | MlwrightError] = []
        self.told: list[tuple[str, str]] = []
        self.slept: list[float] = []
        self.grace = asyncio.Event()
        self.live = LiveRollouts(
            api,
            owner,
            give=self.given.append,
            told=lambda rollout, line: self.told.append((rollout, line)),
            sleep=self._sleep,
            now=lambda: NOW,
        )
        self.following = asyncio.ensure_future(self.live.follow())

    def start(self, *rollouts: str, **fields: Any) -> list[str]:
        """Submit; the names of the objects."""
        for rollout in rollouts:
            body = rollout_object(request(rollout, **fields), self.owner, sandbox="default")
            self.live.start(rollout, body)
        return [self.owner.object_name(rollout) for rollout in rollouts]

    async def until(self, true: Callable[[], bool], steps: int = 2000) -> None:
        """Let everybody take steps until something holds."""
        for _ in range(steps):
            if true():
                return
            await asyncio.sleep(0)
        raise AssertionError(f"never came true; given {self.given}, told {self.told}")

    async def quiet(self, steps: int = 60) -> None:
        """Let everybody do what they can."""
        for _ in range(steps):
            await asyncio.sleep(0)

    async def results(self, count: int) -> list[Finished]:
        await self.until(lambda: len(self.given) >= count)
        assert len(self.given) == count
        return [self.finished(number) for number in range(count)]

    def finished(self, number: int) -> Finished:
        item = self.given[number]
        assert isinstance(item, Finished), item
        return item

    def kill(self) -> None:
        """The process is no more; what it has asked for and not heard of stays asked for."""
        for task in asyncio.all_tasks():
            if task is not asyncio.current_task():
                task.cancel()

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if seconds == GRACE_SECONDS:
            await self.grace.wait()
        await asyncio.sleep(0)


Scenario = Callable[[World], Coroutine[Any, Any, None]]


@pytest.fixture
def play() -> Callable[[Scenario], None]:
    """Run a scenario in a fresh world."""

    def play(scenario: Scenario) -> None:
        async def whole() -> None:
            await scenario(World(MemoryApi()))

        asyncio.run(whole())

    return play


@pytest.fixture
def memory_api() -> type[MemoryApi]:
    """Makes an API server in memory; to be called in the event loop."""
    return MemoryApi


@pytest.fixture
def requested() -> Callable[..., SandboxRequest]:
    return request


@pytest.fixture
def spec() -> MLTaskSpec:
    return SPEC
