"""What a plan may ask for; every action may be carried out twice, or by a stale leader, without harm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal


class Kind(StrEnum):
    """The kinds that the operator reads or writes."""

    NAMESPACE = "Namespace"
    TRAINING_RUN = "TrainingRun"
    TASK = "MLTask"
    ROLLOUT = "Rollout"
    JOB = "Job"
    POD = "Pod"
    CLAIM = "PersistentVolumeClaim"
    NETWORK_POLICY = "NetworkPolicy"


@dataclass(frozen=True)
class Ref:
    """Exactly one object: a later one of the same name has another uid."""

    kind: Kind
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class Apply:
    """Server-side apply of a whole object that we own; its name is derived, so a repetition changes nothing."""

    kind: Kind
    body: Mapping[str, Any]
    for_: Ref | None = None
    """The object on whose behalf it is made: a refusal becomes a condition of that one."""


@dataclass(frozen=True)
class Delete:
    """Delete with uid precondition and background propagation; an object that is gone already is no failure."""

    ref: Ref


@dataclass(frozen=True)
class WriteStatus:
    """Replace our part of an object's status, if the object is still at `resource_version`."""

    ref: Ref
    status: Mapping[str, Any]
    resource_version: str


@dataclass(frozen=True)
class Emit:
    """An Event, only ever after the status write that it tells of."""

    about: Ref
    type: Literal["Normal", "Warning"]
    reason: str
    message: str


Action = Apply | Delete | WriteStatus | Emit
