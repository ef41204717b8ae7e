"""The live copy of what lists, watches and the answers to our own writes said: the newest of each object.

Events may come late, twice or out of order; what is known only ever moves forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mlwright_operator.actions import Kind
from mlwright_operator.edge.sharing import Sharing

Value = TypeVar("Value")

MAX_TOMBSTONES = 50_000
_ALIKE = frozenset({Kind.JOB, Kind.POD})
"""Kinds whose objects are large and nearly the same."""


@dataclass(frozen=True, slots=True)
class _Known(Generic[Value]):
    version: float
    namespace: str
    value: Value


class Store(Generic[Value]):
    """Objects by kind and uid, each kept as what `see` makes of it (once a version, and not once a pass)."""

    def __init__(self, see: Callable[[Kind, Mapping[str, Any]], Value]) -> None:
        self._see = see
        self._shared = Sharing()
        self._known: dict[Kind, dict[str, _Known[Value]]] = {kind: {} for kind in Kind}
        self._tombstones: dict[str, float] = {}

    def take(self, kind: Kind, event: str | None, raw: Mapping[str, Any]) -> bool:
        """Take in what a watch said; whether it is news."""
        if event != "DELETED":
            return self.put(kind, raw)
        metadata = raw["metadata"]
        return self.gone(kind, str(metadata["uid"]), version=version_of(metadata.get("resourceVersion")))

    def put(self, kind: Kind, raw: Mapping[str, Any]) -> bool:
        """Take in an object; whether that is news (False: known already, older than what is known, or deleted)."""
        metadata = raw["metadata"]
        uid, version = str(metadata["uid"]), version_of(metadata.get("resourceVersion"))
        known = self._known[kind].get(uid)
        if known is not None and known.version >= version:
            return False
        if self._tombstones.get(uid, -math.inf) >= version:
            return False
        namespace = str(metadata.get("namespace") or "")
        kept = self._shared(raw) if kind in _ALIKE else raw
        self._known[kind][uid] = _Known(version, namespace, self._see(kind, kept))
        return True

    def gone(self, kind: Kind, uid: str, *, version: float = math.inf) -> bool:
        """Forget an object; whether that is news. Nothing of it up to `version` is taken in again.

        A watch with a selector says "deleted" also of what only lost its label, and may come back: such a deletion
        has a version.
        """
        known = self._known[kind].get(uid)
        if known is not None and known.version > version:
            return False
        self._bury(uid, version)
        return self._known[kind].pop(uid, None) is not None

    def keep_only(self, kind: Kind, listed: Collection[str], *, version: str, namespace: str = "") -> bool:
        """Forget what a complete list (of one namespace, or of all) lacked, unless it was seen since; whether any.

        `listed`: uids; `version`: the list's.
        """
        moment = version_of(version)
        missing = [
            uid
            for uid, known in self._known[kind].items()
            if uid not in listed and known.version <= moment and namespace in ("", known.namespace)
        ]
        for uid in missing:
            self.gone(kind, uid, version=moment)
        return bool(missing)

    def values(self) -> Iterator[Value]:
        """Everything that is known."""
        return (known.value for objects in self._known.values() for known in objects.values())

    def counts(self) -> dict[Kind, int]:
        """Number of objects by kind."""
        return {kind: len(known) for kind, known in self._known.items()}

    def _bury(self, uid: str, version: float) -> None:
        self._tombstones[uid] = max(version, self._tombstones.get(uid, -math.inf))
        while len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


def version_of(resource_version: object) -> float:
    """A resourceVersion as a number: since Kubernetes 1.35 they may be compared, and etcd's always could be.

    What is no number counts as newer than everything: better a needless pass than news that is not seen.
    """
    text = str(resource_version or "")
    return float(int(text)) if text.isdigit() else math.inf
