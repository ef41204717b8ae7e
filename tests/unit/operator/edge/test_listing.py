"""Lists: page by page, kind by kind; what they lack is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mlwright_operator.actions import Kind
from mlwright_operator.edge.listing import PAGE, Lister
from mlwright_operator.edge.resources import OURS
from mlwright_operator.edge.store import Store
from mlwright_operator.errors import ApiFailure


def item(uid: str, namespace: str = "lab", version: str = "5") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": uid, "namespace": namespace, "resourceVersion": version}}


class Server:
    """Lists, in pages of two."""

    def __init__(self) -> None:
        self.items: dict[str, list[dict[str, Any]]] = {}
        self.namespace: ApiFailure | dict[str, Any] = item("ns", "")

    def __call__(self, request: Any) -> Any:
        if request.verb == "get":
            return self.namespace
        found = self.items.get(request.path.split("/")[-1], [])
        start = int(request.query.get("continue") or 0)
        more = str(start + 2) if start + 2 < len(found) else ""
        metadata = {"resourceVersion": "100", "continue": more}
        return {"metadata": metadata, "items": found[start : start + 2]}


@pytest.fixture
def server(api: Any) -> Server:
    answering = Server()
    api.respond = answering
    return answering


@pytest.fixture
def store() -> Store[Mapping[str, Any]]:
    return Store(lambda _, raw: raw)


def uids(store: Store[Mapping[str, Any]]) -> set[str]:
    return {raw["metadata"]["uid"] for raw in store.values()}


def refresh(api: Any, store: Store[Mapping[str, Any]], *namespaces: str) -> bool:
    return asyncio.run(Lister(api, store=store, namespaces=namespaces).refresh())


def test_every_page_is_read(api: Any, server: Server, store: Store[Mapping[str, Any]]) -> None:
    server.items["rollouts"] = [item(f"r{number}") for number in range(5)]
    assert refresh(api, store)
    assert uids(store) == {f"r{number}" for number in range(5)}


def test_what_a_list_lacks_is_gone(api: Any, server: Server, store: Store[Mapping[str, Any]]) -> None:
    server.items["rollouts"] = [item("a"), item("b"), item("c")]
    refresh(api, store)
    server.items["rollouts"] = [item("c")]
    assert refresh(api, store)
    assert uids(store) == {"c"}


def test_a_list_without_news_says_so(api: Any, server: Server, store: Store[Mapping[str, Any]]) -> None:
    server.items["rollouts"] = [item("a")]
    refresh(api, store)
    assert not refresh(api, store)


def test_lists_are_paged_and_selected_by_the_server(
    api: Any, server: Server, store: Store[Mapping[str, Any]]
) -> None:
    refresh(api, store)
    queries = {request.path.split("/")[-1]: request.query for request in api.requests}
    assert queries["rollouts"]["limit"] == str(PAGE)
    assert "labelSelector" not in queries["rollouts"]
    assert queries["jobs"]["labelSelector"] == queries["pods"]["labelSelector"] == OURS


def test_named_namespaces_are_listed_one_by_one_and_looked_at(
    api: Any, server: Server, store: Store[Mapping[str, Any]]
) -> None:
    refresh(api, store, "lab", "other")
    paths = [request.path for request in api.requests]
    assert "/api/v1/namespaces/lab/pods" in paths
    assert "/api/v1/namespaces/other/pods" in paths
    assert {"/api/v1/namespaces/lab", "/api/v1/namespaces/other"} <= set(paths)
    assert "/api/v1/pods" not in paths
    assert "/api/v1/namespaces" not in paths


@pytest.mark.parametrize("code", [403, 404])
def test_a_namespace_that_we_may_not_look_at_is_no_failure(
    api: Any, server: Server, store: Store[Mapping[str, Any]], failing: Callable[..., ApiFailure], code: int
) -> None:
    server.namespace = failing(code)
    assert not refresh(api, store, "lab")


def test_any_other_failure_is_one(
    api: Any, server: Server, store: Store[Mapping[str, Any]], failing: Callable[..., ApiFailure]
) -> None:
    server.namespace = failing(500)
    with pytest.raises(ApiFailure):
        refresh(api, store, "lab")


def test_a_list_that_breaks_off_takes_nothing_away(
    api: Any, server: Server, store: Store[Mapping[str, Any]], failing: Callable[..., ApiFailure]
) -> None:
    server.items["rollouts"] = [item("a"), item("b"), item("c")]
    refresh(api, store)

    def broken(request: Any) -> Any:
        if request.query and request.query.get("continue"):
            return failing(410)
        return server(request)

    api.respond = broken
    with pytest.raises(ApiFailure):
        refresh(api, store)
    assert uids(store) == {"a", "b", "c"}


def test_kinds_keep_apart(api: Any, server: Server, store: Store[Mapping[str, Any]]) -> None:
    server.items["rollouts"] = [item("a")]
    server.items["jobs"] = [item("j")]
    refresh(api, store)
    assert store.counts()[Kind.ROLLOUT] == store.counts()[Kind.JOB] == 1


@pytest.mark.parametrize("meanwhile", [None, ApiFailure("gone", status=404)], ids=["unseen", "seen"])
def test_a_namespace_that_was_deleted_and_made_again_is_the_new_one_only(
    api: Any, server: Server, store: Store[Mapping[str, Any]], meanwhile: ApiFailure | None
) -> None:
    lister = Lister(api, store=store, namespaces=["lab"])
    asyncio.run(lister.refresh())
    assert uids(store) == {"ns"}
    if meanwhile is not None:
        server.namespace = meanwhile
        assert asyncio.run(lister.refresh())
        assert uids(store) == set()
        assert not asyncio.run(lister.refresh())
    server.namespace = item("another", "", version="9")
    assert asyncio.run(lister.refresh())
    assert uids(store) == {"another"}
    assert not asyncio.run(lister.refresh())
