"""An API server in memory: versions, uids, conflicts, quotas, owner references, and a log of every change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from mlwright_operator.actions import Action, Apply, Delete, Emit, Kind, Ref, WriteStatus
from mlwright_operator.errors import ApiFailure

Raw = dict[str, Any]
Key = tuple[Kind, str, str]
START = datetime(2026, 1, 31, 12, tzinfo=UTC)
_CLUSTER_WIDE = frozenset({Kind.NAMESPACE})


@dataclass(frozen=True)
class Event:
    """Of a watch."""

    type: Literal["MODIFIED", "DELETED"]
    kind: Kind
    raw: Raw


def copied(raw: Mapping[str, Any]) -> Raw:
    """As it would come over the wire."""
    made: Raw = json.loads(json.dumps(raw))
    return made


def stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class ApiServer:
    """Objects by kind, namespace and name; `watchers` are called after every change, to look for what must never be."""

    now: datetime = START
    quotas: dict[str, int] = field(default_factory=dict)
    """Most Jobs, by namespace."""
    objects: dict[Key, Raw] = field(default_factory=dict)
    log: list[Event] = field(default_factory=list)
    events: list[Emit] = field(default_factory=list)
    watchers: list[Callable[[], None]] = field(default_factory=list)
    results: dict[str, list[str]] = field(default_factory=dict)
    """By uid of the Rollout: every outcome that was ever written."""
    version: int = 0
    made: int = 0

    # Reading.

    def get(self, kind: Kind, name: str, namespace: str = "team") -> Raw | None:
        return self.objects.get((kind, "" if kind in _CLUSTER_WIDE else namespace, name))

    def listed(self, kind: Kind) -> list[Raw]:
        """As a client gets them."""
        return [copied(raw) for (each, _, _), raw in self.objects.items() if each is kind]

    def live(self, kind: Kind) -> list[Raw]:
        """Without copies: to be read only."""
        return [raw for (each, _, _), raw in self.objects.items() if each is kind]

    def uids(self) -> set[str]:
        return {raw["metadata"]["uid"] for raw in self.objects.values()}

    # Writing, as anybody.

    def create(self, body: Mapping[str, Any]) -> Raw:
        raw = copied(body)
        kind, metadata = Kind(raw["kind"]), raw["metadata"]
        namespace = "" if kind in _CLUSTER_WIDE else metadata.setdefault("namespace", "team")
        if (kind, namespace, metadata["name"]) in self.objects:
            raise ApiFailure(f"{metadata['name']} already exists", status=409, reason="AlreadyExists")
        self._refuse(kind, namespace)
        self.made += 1
        metadata.setdefault("uid", f"00000000-0000-4000-8000-{self.made:012d}")
        metadata |= {"creationTimestamp": stamp(self.now), "generation": 1}
        self.objects[kind, namespace, metadata["name"]] = raw
        self._changed(kind, raw)
        return copied(raw)

    def _refuse(self, kind: Kind, namespace: str) -> None:
        there = self.get(Kind.NAMESPACE, namespace)
        if there is not None and there["metadata"].get("deletionTimestamp"):
            message = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise ApiFailure(message, status=403, reason="NamespaceTerminating")
        quota = self.quotas.get(namespace)
        jobs = sum(raw["metadata"]["namespace"] == namespace for raw in self.live(Kind.JOB))
        if kind is Kind.JOB and quota is not None and jobs >= quota:
            message = f"exceeded quota: jobs, requested: count/jobs.batch=1, used: {jobs}, limited: {quota}"
            raise ApiFailure(message, status=403, reason="Forbidden")

    def update(self, raw: Raw) -> None:
        """An object that was changed in place (by a controller) has changed."""
        self._changed(Kind(raw["kind"]), raw)

    def remove(self, raw: Raw) -> None:
        """An object is gone, at once."""
        metadata = raw["metadata"]
        kind = Kind(raw["kind"])
        del self.objects[kind, metadata.get("namespace", ""), metadata["name"]]
        self.version += 1
        last = copied(raw)
        last["metadata"]["resourceVersion"] = str(self.version)
        self.log.append(Event("DELETED", kind, last))
        self._look()

    def delete(self, kind: Kind, name: str, namespace: str = "team") -> None:
        """As `kubectl delete`: a pod ends first, anything else is gone at once."""
        raw = self.objects[kind, namespace, name]
        if kind is Kind.POD:
            self.terminate(raw)
        else:
            self.remove(raw)

    def terminate(self, raw: Raw, *, grace_seconds: int = 5) -> None:
        if "deletionTimestamp" not in raw["metadata"]:
            raw["metadata"]["deletionTimestamp"] = stamp(self.now + timedelta(seconds=grace_seconds))
            self.update(raw)

    def _changed(self, kind: Kind, raw: Raw) -> None:
        self.version += 1
        raw["metadata"]["resourceVersion"] = str(self.version)
        self.log.append(Event("MODIFIED", kind, copied(raw)))
        self._look()

    def _look(self) -> None:
        for watcher in self.watchers:
            watcher()

    # What the operator asks for.

    def carry_out(self, action: Action) -> Raw | None:
        """The object as it is afterwards. Raises ApiFailure."""
        match action:
            case Apply():
                return self._apply(action)
            case WriteStatus():
                return self._write_status(action)
            case Delete():
                self._delete(action)
            case Emit():
                self.events.append(action)
        return None

    def _apply(self, action: Apply) -> Raw:
        metadata = action.body["metadata"]
        there = self.get(action.kind, metadata["name"], metadata["namespace"])
        if there is None:
            return self.create(action.body)
        before = copied(there)
        if action.kind is Kind.JOB and there["spec"]["template"] != action.body["spec"]["template"]:
            raise ApiFailure("spec.template: field is immutable", status=422, reason="Invalid")
        there["spec"] |= copied(action.body["spec"])
        for key in ("labels", "annotations"):
            there["metadata"][key] = there["metadata"].get(key, {}) | metadata.get(key, {})
        if there != before:
            self._changed(action.kind, there)
        return copied(there)

    def _write_status(self, action: WriteStatus) -> Raw:
        raw = self._exactly(action.ref)
        if raw is None:
            raise ApiFailure(f"{action.ref.name} not found", status=404, reason="NotFound")
        if raw["metadata"]["resourceVersion"] != action.resource_version:
            raise ApiFailure("the object has been modified", status=409, reason="Conflict")
        status = copied(action.status)
        if (outcome := status.get("outcome")) is not None:
            self.results.setdefault(action.ref.uid, []).append(outcome)
        if raw.get("status") != status:
            raw["status"] = status
            self._changed(action.ref.kind, raw)
        return copied(raw)

    def _delete(self, action: Delete) -> None:
        raw = self._exactly(action.ref)
        if raw is not None:
            self.remove(raw)

    def _exactly(self, ref: Ref) -> Raw | None:
        raw = self.get(ref.kind, ref.name, ref.namespace)
        return raw if raw is not None and raw["metadata"]["uid"] == ref.uid else None

    def owned(self, uid: str, kind: Kind) -> Iterator[Raw]:
        """What has this controller."""
        for raw in self.live(kind):
            if any(each["uid"] == uid for each in raw["metadata"].get("ownerReferences", ())):
                yield raw
