"""Lists whole kinds: what a watch cannot tell is what it missed, deletions above all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

from mlwright_operator.actions import Kind
from mlwright_operator.edge.connection import Api
from mlwright_operator.edge.resources import RESOURCES, Resource, watched
from mlwright_operator.edge.store import Store, Value
from mlwright_operator.errors import ApiFailure

PAGE = 100
"""Objects a request: bounds the memory that a list takes."""


class Lister:
    """Brings a store up to date with the API server."""

    def __init__(self, api: Api, *, store: Store[Value], namespaces: Sequence[str]) -> None:
        self._api = api
        self._store = store
        self._namespaces = tuple(namespaces)
        self._uids: dict[str, str] = {}
        """Of namespaces that were got, by name."""

    async def refresh(self) -> bool:
        """List every kind, in all namespaces or in those given; whether anything is news. Raises ApiFailure."""
        news = False
        for resource in watched(everywhere=not self._namespaces):
            for namespace in self._namespaces or ("",):
                news = await self._refresh_one(resource, namespace) or news
        for namespace in self._namespaces:
            news = await self._refresh_namespace(namespace) or news
        return news

    async def _refresh_one(self, resource: Resource, namespace: str) -> bool:
        listed: set[str] = set()
        news, version = False, ""
        # A page at a time, so that never all objects are there twice.
        async for page in self._pages(resource, namespace):
            version = page["metadata"]["resourceVersion"]
            for raw in page["items"]:
                listed.add(raw["metadata"]["uid"])
                news = self._store.put(resource.kind, raw) or news
        gone = self._store.keep_only(resource.kind, listed, version=version, namespace=namespace)
        return gone or news

    async def _pages(self, resource: Resource, namespace: str) -> AsyncIterator[dict[str, Any]]:
        query = {"limit": str(PAGE), **({"labelSelector": resource.selector} if resource.selector else {})}
        path = resource.path(namespace=namespace)
        while True:
            page = await self._api.request("list", path, query=query)
            yield page
            query["continue"] = page["metadata"].get("continue", "")
            if not query["continue"]:
                return

    async def _refresh_namespace(self, name: str) -> bool:
        """A namespace that we may not watch, but may get: whether it is going away."""
        resource = RESOURCES[Kind.NAMESPACE]
        try:
            found = await self._api.request("get", resource.path(name=name))
        except ApiFailure as failure:
            if failure.gone:
                return self._replaced(name, "")
            if failure.status == 403:
                # Without the right to look, the API server's refusals say that a namespace is terminating.
                return False
            raise
        replaced = self._replaced(name, str(found["metadata"]["uid"]))
        return self._store.put(Kind.NAMESPACE, found) or replaced

    def _replaced(self, name: str, uid: str) -> bool:
        """Forget an earlier namespace of that name, of whose end nobody tells us; whether there was one."""
        before = self._uids.pop(name, "")
        if uid:
            self._uids[name] = uid
        return before not in ("", uid) and self._store.gone(Kind.NAMESPACE, before)
