"""The port to the API server: everything that the backend does to a cluster goes through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

Object = Mapping[str, Any]
"""An API object as JSON."""


@dataclass(frozen=True)
class Event:
    """One line of a watch; of a BOOKMARK only the resourceVersion counts."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Object


@dataclass(frozen=True)
class Listed:
    """All objects at one moment, and the resourceVersion to watch from."""

    objects: Sequence[Object]
    version: str


class RolloutApi(Protocol):
    """The Rollouts of one namespace. Every method raises ApiFailure, and nothing else, where it does not succeed."""

    @property
    def place(self) -> str:
        """Namespace, context and address, for people."""
        ...

    async def create(self, body: Object) -> Object:
        """The object as it was stored; a name that is taken is a conflict."""
        ...

    async def get(self, name: str) -> Object: ...

    async def delete(self, name: str, *, uid: str, version: str | None = None) -> None:
        """Delete exactly that object (at exactly that resourceVersion, where one is given)."""
        ...

    async def list(self, selector: str) -> Listed:
        """What is there now: read consistently, never from a cache."""
        ...

    def watch(self, selector: str, *, version: str, seconds: float) -> AsyncIterator[Event]:
        """What changes after `version`; ends after about `seconds`."""
        ...

    async def close(self) -> None: ...
