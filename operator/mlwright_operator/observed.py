"""What the operator has seen of the cluster: values made from API objects, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mlwright_api.mltask import MLTaskSpec
from mlwright_api.podstatus import PodStatus
from mlwright_api.rollout import RolloutSpec

from mlwright_operator.actions import Ref


@dataclass(frozen=True)
class Seen:
    """What every object has."""

    ref: Ref
    resource_version: str
    generation: int
    created_at: datetime
    deleting: bool = False


@dataclass(frozen=True)
class SeenRollout(Seen):
    spec: RolloutSpec | None = None
    """None where it does not hold what the schema cannot say; `problem` says what."""
    problem: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)
    """As it stands in the API, in wire form."""


@dataclass(frozen=True)
class SeenTask(Seen):
    spec: MLTaskSpec | None = None
    problem: str = ""
    digest: str = ""
    status: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SeenRun(Seen):
    weight: float = 1.0
    suspend: bool = False


@dataclass(frozen=True)
class SeenJob(Seen):
    owner_uid: str = ""
    """Of the Rollout or MLTask that it belongs to (from the label, checked against the owner reference)."""
    attempt: int = 0
    finished: bool = False
    """Condition Complete or Failed is True."""
    message: str = ""


@dataclass(frozen=True)
class SeenPod(Seen):
    owner_uid: str = ""
    attempt: int = 0
    job_uid: str = ""
    status: PodStatus = field(default_factory=PodStatus)
    spec: Mapping[str, Any] = field(default_factory=dict)
    """As the API server returned it, to be compared with what was sent."""


@dataclass(frozen=True)
class SeenClaim(Seen):
    bound: bool = False
    allowed: bool = False
    """Carries the opt-in label."""


@dataclass(frozen=True)
class SeenPolicy(Seen):
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """One moment of the cluster, by the keys under which things are looked up."""

    rollouts: Mapping[str, SeenRollout]
    """By uid."""
    tasks: Mapping[tuple[str, str], SeenTask]
    """By (namespace, name)."""
    runs: Mapping[str, SeenRun]
    """By uid."""
    jobs: Mapping[str, tuple[SeenJob, ...]]
    """By uid of the owner, in order of attempt."""
    pods: Mapping[str, tuple[SeenPod, ...]]
    """By uid of the job."""
    claims: Mapping[tuple[str, str], SeenClaim]
    policies: Mapping[str, SeenPolicy]
    """By namespace: the sandboxes' NetworkPolicy."""
    terminating: frozenset[str] = frozenset()
    """Namespaces that are going away: nothing can be created there."""
