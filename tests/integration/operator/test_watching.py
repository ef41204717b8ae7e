"""kopf against an API server that resets, expires and refuses: every change is seen, nothing is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from kubernetes.aio.client.api_client import ApiClient
from mlwright_operator.edge.connection import Api
from mlwright_operator.edge.listing import Lister
from mlwright_operator.edge.resources import OURS, watched
from mlwright_operator.edge.store import Store
from mlwright_operator.edge.watching import Watch

Server = Any  # the conftest's ApiServer; importlib mode gives its module no importable name

PATIENCE = 20
LABEL = dict([OURS.split("=")])


def rollout(name: str, namespace: str = "lab", **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {}}


class Watching:
    """A Watch and the Store that it fills."""

    def __init__(self, server: Server, namespaces: tuple[str, ...] = ()) -> None:
        self.store: Store[Mapping[str, Any]] = Store(lambda _, raw: raw)
        self.news = asyncio.Event()
        self.failures: list[str] = []
        self.watch = Watch(
            configuration=server.configuration(),
            resources=watched(everywhere=not namespaces),
            namespaces=namespaces,
            take=self.store.take,
            wake=self.news.set,
            failed=self.failures.append,
            sleep=lambda _: asyncio.sleep(0),
        )
        self.task = asyncio.create_task(self.watch.run())

    def names(self) -> set[str]:
        return {str(raw["metadata"]["name"]) for raw in self.store.values()}

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.news.clear()
                await self.news.wait()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def watching(api_server: Callable[[], Any]) -> Callable[..., None]:
    """Runs a scenario with a server and something that watches it."""

    def run(scenario: Callable[[Server, Watching], Any], namespaces: tuple[str, ...] = ()) -> None:
        async def main() -> None:
            async with api_server() as server:
                seen = Watching(server, namespaces)
                try:
                    await scenario(server, seen)
                finally:
                    await seen.stop()

        asyncio.run(main())

    return run


def test_what_is_there_what_comes_and_what_goes_is_seen(watching: Callable[..., None]) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        await server.put("rollouts", rollout("first"))
        await seen.until(lambda: seen.names() == {"first"})
        await server.put("rollouts", rollout("second"))
        await seen.until(lambda: seen.names() == {"first", "second"})
        await server.remove("rollouts", "lab", "first")
        await seen.until(lambda: seen.names() == {"second"})

    watching(scenario)


def test_selectors_are_applied_by_the_api_server(watching: Callable[..., None]) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        await server.put("jobs", rollout("ours", **LABEL))
        await server.put("jobs", rollout("theirs"))
        await seen.until(lambda: seen.names() == {"ours"})
        calls = [call for call in server.calls if call.plural in ("jobs", "pods", "networkpolicies")]
        assert {call.query.get("labelSelector") for call in calls} == {OURS}

    watching(scenario)


def test_nothing_is_ever_written_to_an_object(watching: Callable[..., None]) -> None:
    """No annotation, no finalizer, no event: kopf only wakes."""

    async def scenario(server: Server, seen: Watching) -> None:
        for turn in range(3):
            await server.put("rollouts", {**rollout("one"), "spec": {"turn": turn}})
        await server.put("jobs", rollout("ours", **LABEL))
        await seen.until(lambda: len(seen.names()) == 2)
        await server.remove("rollouts", "lab", "one")
        await seen.until(lambda: seen.names() == {"ours"})
        assert server.writes() == []
        (job,) = [raw for key, raw in server.objects.items() if key[0] == "jobs"]
        assert "annotations" not in job["metadata"]
        assert "finalizers" not in job["metadata"]

    watching(scenario)


def test_a_cut_watch_goes_on_where_it_was(watching: Callable[..., None]) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        await server.put("rollouts", rollout("first"))
        await seen.until(lambda: seen.names() == {"first"})
        await server.break_watches()
        await server.put("rollouts", rollout("second"))
        await seen.until(lambda: seen.names() == {"first", "second"})

    watching(scenario)


def test_after_an_expired_watch_a_list_tells_what_vanished_meanwhile(watching: Callable[..., None]) -> None:
    """kopf lists again after 410, and so cannot know of deletions in between: relisted says so."""

    async def scenario(server: Server, seen: Watching) -> None:
        await server.put("rollouts", rollout("vanishes"))
        await server.put("rollouts", rollout("stays"))
        await seen.until(lambda: len(seen.names()) == 2)
        seen.watch.relisted.clear()
        await server.remove("rollouts", "lab", "vanishes", silently=True)
        await server.break_watches(expire=True)
        async with asyncio.timeout(PATIENCE):
            await seen.watch.relisted.wait()
        assert seen.names() == {"vanishes", "stays"}
        api = Api(ApiClient(server.configuration()), count=lambda *_: None)
        await Lister(api, store=seen.store, namespaces=()).refresh()
        await api.close()
        assert seen.names() == {"stays"}

    watching(scenario)


def test_a_watch_error_that_ends_kopf_begins_a_new_one(
    watching: Callable[..., None], answer: Callable[..., Any]
) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        await server.put("rollouts", rollout("first"))
        await seen.until(lambda: seen.names() == {"first"})
        server.fail("GET", "rollouts", answer(400, "BadRequest"), times=1)
        await server.break_watches()
        await server.put("rollouts", rollout("second"))
        await seen.until(lambda: seen.names() == {"first", "second"})
        assert seen.failures == ["watch"]

    watching(scenario)


def test_overload_and_resets_are_waited_out(
    watching: Callable[..., None], answer: Callable[..., Any], reset: Any
) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        server.fail("GET", "rollouts", answer(429, "TooManyRequests", {"Retry-After": "0"}))
        server.fail("GET", "rollouts", reset)
        server.fail("GET", "rollouts", answer(503, "ServiceUnavailable"))
        await server.put("rollouts", rollout("first"))
        await seen.until(lambda: seen.names() == {"first"})
        assert seen.failures == []

    watching(scenario)


@pytest.mark.parametrize("namespaces", [("lab",), ("lab", "other")])
def test_only_the_namespaces_that_were_asked_for_are_watched(
    watching: Callable[..., None], namespaces: tuple[str, ...]
) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        for namespace in ("lab", "other", "third"):
            await server.put("rollouts", rollout(f"in-{namespace}", namespace))
        await seen.until(lambda: seen.names() == {f"in-{namespace}" for namespace in namespaces})
        assert "namespaces" not in {call.plural for call in server.calls}

    watching(scenario, namespaces)


def test_stopping_is_quick(watching: Callable[..., None]) -> None:
    async def scenario(server: Server, seen: Watching) -> None:
        await server.put("rollouts", rollout("first"))
        await seen.until(lambda: seen.names() == {"first"})
        async with asyncio.timeout(2):
            await seen.stop()

    watching(scenario)
