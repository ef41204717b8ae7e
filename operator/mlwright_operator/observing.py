"""From raw API objects to what the operator has seen: pure, and tolerant of anything in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypedDict, TypeVar

from mlwright_api.base import Condition
from mlwright_api.digests import spec_digest
from mlwright_api.explanations import dotted, explain
from mlwright_api.mltask import MLTaskSpec, MLTaskStatus, TaskLimits
from mlwright_api.podstatus import PodStatus
from mlwright_api.rollout import RolloutSpec, RolloutStatus
from pydantic import BaseModel, ValidationError

from mlwright_operator import labels
from mlwright_operator.actions import Kind, Ref
from mlwright_operator.observed import (
    AnySeen,
    Observed,
    Part,
    SeenClaim,
    SeenJob,
    SeenNamespace,
    SeenPod,
    SeenPolicy,
    SeenRollout,
    SeenRun,
    SeenTask,
)

Raw = Mapping[str, Any]
Model = TypeVar("Model", bound=BaseModel)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PROBLEM_CHARACTERS = 1024
_ATTEMPTS = 1_000_000
"""No honest number of an attempt is as high."""


def observed(objects: Iterable[Raw]) -> Observed:
    """One moment of the cluster from its raw objects, each with its kind; those that are none of ours are left out."""
    return gather(see(Kind(kind), raw) for raw in objects if (kind := _text(raw, "kind")) in _READERS)


def see(kind: Kind, raw: Raw) -> AnySeen | None:
    """What one object is to the operator; None where it is nothing. Never raises.

    The kind is said apart, since what comes in a list does not carry it.
    """
    if not _text(raw, "metadata", "uid") or not _text(raw, "metadata", "name"):
        return None
    return _READERS[kind](raw)


def gather(seen: Iterable[AnySeen | None]) -> Observed:
    """The moment in which all of these are seen at once."""
    found: dict[type, list[Any]] = defaultdict(list)
    for each in seen:
        found[type(each)].append(each)
    policies = [each for each in found[SeenPolicy] if each.ref.name == labels.POLICY_NAME]
    return Observed(
        rollouts={each.ref.uid: each for each in found[SeenRollout]},
        tasks={_key(each): each for each in found[SeenTask]},
        runs={each.ref.uid: each for each in found[SeenRun]},
        jobs=_by_owner(found[SeenJob]),
        pods=_by_owner(found[SeenPod]),
        claims={_key(each): each for each in found[SeenClaim]},
        policies={each.ref.namespace: each for each in policies},
        terminating=frozenset(each.ref.name for each in found[SeenNamespace] if each.terminating),
    )


Owned = TypeVar("Owned", SeenJob, SeenPod)


def _by_owner(found: Iterable[Owned]) -> dict[str, tuple[Owned, ...]]:
    owned: dict[str, list[Owned]] = defaultdict(list)
    for each in found:
        if each.owner_uid:
            owned[each.owner_uid].append(each)
    return {
        uid: tuple(sorted(several, key=lambda each: (each.attempt, each.created_at, each.ref.name)))
        for uid, several in owned.items()
    }


def _key(seen: AnySeen) -> tuple[str, str]:
    return seen.ref.namespace, seen.ref.name


# One reader a kind.


def _rollout(raw: Raw) -> SeenRollout:
    spec, problem = _parsed(RolloutSpec, raw.get("spec"))
    status = _mapping(raw, "status")
    return SeenRollout(
        **_seen(raw, Kind.ROLLOUT),
        spec=spec,
        problem=problem,
        status=readable(RolloutStatus, status),
        ended=bool(status.get("outcome")),
    )


def _task(raw: Raw) -> SeenTask:
    spec, problem = _parsed(MLTaskSpec, raw.get("spec"))
    return SeenTask(
        **_seen(raw, Kind.TASK),
        spec=spec,
        problem=problem,
        digest=spec_digest(spec) if spec is not None else "",
        status=readable(MLTaskStatus, _mapping(raw, "status")),
    )


def _run(raw: Raw) -> SeenRun:
    spec = _mapping(raw, "spec")
    weight = spec.get("weight")
    usable = isinstance(weight, int | float) and not isinstance(weight, bool) and 0 < weight <= 1000
    return SeenRun(
        **_seen(raw, Kind.TRAINING_RUN),
        weight=float(weight) if usable and weight is not None else 1.0,
        suspend=spec.get("suspend") is True,
    )


def _job(raw: Raw) -> SeenJob | None:
    owner, part = _owner(raw)
    if part is None or _controller(raw) != owner:
        return None
    end = next((each for each in _conditions(_at(raw, "status", "conditions")) if _is_end(each)), None)
    return SeenJob(
        **_seen(raw, Kind.JOB),
        owner_uid=owner,
        part=part,
        run_uid=_label(raw, labels.RUN_UID),
        attempt=_attempt(raw),
        finished=end is not None,
        finished_at=end.last_transition_time if end is not None else None,
        message=(end.message or end.reason) if end is not None else "",
        template=_mapping(raw, "spec", "template"),
        sent=_text(raw, "metadata", "annotations", labels.SENT),
        limits=_limits(_text(raw, "metadata", "annotations", labels.LIMITS)),
    )


def _pod(raw: Raw) -> SeenPod | None:
    owner, part = _owner(raw)
    if part is None:
        return None
    return SeenPod(
        **_seen(raw, Kind.POD),
        owner_uid=owner,
        part=part,
        run_uid=_label(raw, labels.RUN_UID),
        attempt=_attempt(raw),
        job_uid=_controller(raw),
        status=_parsed(PodStatus, raw.get("status") or {})[0] or PodStatus(),
        metadata={
            "labels": _mapping(raw, "metadata", "labels"),
            "annotations": _mapping(raw, "metadata", "annotations"),
        },
        spec=_mapping(raw, "spec"),
    )


def _claim(raw: Raw) -> SeenClaim:
    return SeenClaim(
        **_seen(raw, Kind.CLAIM),
        bound=_text(raw, "status", "phase") == "Bound",
        allowed=_label(raw, labels.OPT_IN) == "true",
    )


def _policy(raw: Raw) -> SeenPolicy:
    return SeenPolicy(**_seen(raw, Kind.NETWORK_POLICY), spec=_mapping(raw, "spec"))


def _namespace(raw: Raw) -> SeenNamespace:
    seen = _seen(raw, Kind.NAMESPACE)
    return SeenNamespace(
        **seen, terminating=seen["deleting"] or _text(raw, "status", "phase") == "Terminating"
    )


_READERS: Mapping[Kind, Callable[[Raw], AnySeen | None]] = {
    Kind.ROLLOUT: _rollout,
    Kind.TASK: _task,
    Kind.TRAINING_RUN: _run,
    Kind.JOB: _job,
    Kind.POD: _pod,
    Kind.CLAIM: _claim,
    Kind.NETWORK_POLICY: _policy,
    Kind.NAMESPACE: _namespace,
}


# What objects have in common.


class _SeenFields(TypedDict):
    ref: Ref
    resource_version: str
    generation: int
    created_at: datetime
    deleting: bool
    delete_by: datetime | None


def _seen(raw: Raw, kind: Kind) -> _SeenFields:
    metadata = _mapping(raw, "metadata")
    return {
        "ref": Ref(kind, _text(metadata, "namespace"), _text(metadata, "name"), _text(metadata, "uid")),
        "resource_version": _text(metadata, "resourceVersion"),
        "generation": _whole(metadata.get("generation"), otherwise=1),
        "created_at": _moment(metadata.get("creationTimestamp")) or _EPOCH,
        "deleting": bool(metadata.get("deletionTimestamp")),
        "delete_by": _moment(metadata.get("deletionTimestamp")),
    }


def _owner(raw: Raw) -> tuple[str, Part | None]:
    """Uid of the object that it is labelled as a sandbox or a check of, and which of the two."""
    if _label(raw, labels.PART) == labels.SANDBOX and (uid := _label(raw, labels.ROLLOUT_UID)):
        return uid, "sandbox"
    if _label(raw, labels.PART) == labels.TASK_CHECK and (uid := _label(raw, labels.TASK_UID)):
        return uid, "task-check"
    return "", None


def _controller(raw: Raw) -> str:
    owners = _at(raw, "metadata", "ownerReferences")
    if not isinstance(owners, list):
        return ""
    controllers = [each for each in owners if isinstance(each, Mapping) and each.get("controller") is True]
    return _text(controllers[0], "uid") if controllers else ""


def _attempt(raw: Raw) -> int:
    label = _label(raw, labels.ATTEMPT)
    return min(int(label), _ATTEMPTS) if label.isascii() and label.isdigit() and len(label) < 8 else 0


def _label(raw: Raw, name: str) -> str:
    return _text(raw, "metadata", "labels", name)


def _limits(text: str) -> TaskLimits | None:
    try:
        return TaskLimits.model_validate_json(text) if text else None
    except ValidationError:
        return None


def _is_end(condition: Condition) -> bool:
    return condition.type in ("Complete", "Failed") and condition.status == "True"


_CONDITION_FIELDS = frozenset(field.alias for field in Condition.model_fields.values())


def _conditions(raw: object) -> Iterator[Condition]:
    """Those that can be read; a Job's also have a lastProbeTime."""
    for each in raw if isinstance(raw, list) else ():
        known = (
            {key: each[key] for key in each if key in _CONDITION_FIELDS} if isinstance(each, Mapping) else {}
        )
        condition, _ = _parsed(Condition, known)
        if condition is not None:
            yield condition


def readable(model: type[Model], raw: Raw) -> Model:
    """A status; of one that a later version wrote, the fields that this one can read."""
    whole, _ = _parsed(model, raw)
    if whole is not None:
        return whole
    parts = [part for name in raw if (part := _parsed(model, {name: raw[name]})[0]) is not None]
    return model.model_construct(
        **{name: getattr(part, name) for part in parts for name in part.model_fields_set}
    )


def _parsed(model: type[Model], raw: object) -> tuple[Model | None, str]:
    """The model, or None and what is wrong."""
    try:
        return model.model_validate(raw), ""
    except ValidationError as error:
        found = explain(error, model, raw)
        said = "; ".join(f"{dotted(each.path)}: {each.message}".removeprefix(": ") for each in found)
        return None, said[:_PROBLEM_CHARACTERS] or "cannot be read"


def _at(raw: object, *path: str) -> object:
    for name in path:
        raw = raw.get(name) if isinstance(raw, Mapping) else None
    return raw


def _mapping(raw: object, *path: str) -> Raw:
    found = _at(raw, *path)
    return found if isinstance(found, Mapping) else {}


def _text(raw: object, *path: str) -> str:
    found = _at(raw, *path)
    return found if isinstance(found, str) else ""


def _whole(raw: object, *, otherwise: int) -> int:
    return raw if isinstance(raw, int) and not isinstance(raw, bool) else otherwise


def _moment(raw: object) -> datetime | None:
    if not isinstance(raw, str):
        return None
    try:
        moment = datetime.fromisoformat(raw)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
