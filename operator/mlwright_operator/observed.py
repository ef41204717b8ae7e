"""What the operator has seen of the cluster: values made from API objects, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from mlwright_api.mltask import MLTaskSpec, MLTaskStatus, TaskLimits
from mlwright_api.podstatus import PodStatus
from mlwright_api.rollout import RolloutSpec, RolloutStatus

from mlwright_operator.actions import Ref

Part = Literal["sandbox", "task-check"]


@dataclass(frozen=True)
class Seen:
    """What every object has."""

    ref: Ref
    resource_version: str
    generation: int
    created_at: datetime
    deleting: bool = False
    delete_by: datetime | None = None
    """When it should be gone: the end of its grace period."""


@dataclass(frozen=True)
class SeenRollout(Seen):
    spec: RolloutSpec | None = None
    """None where it does not hold what the schema cannot say; `problem` says what."""
    problem: str = ""
    status: RolloutStatus = field(default_factory=RolloutStatus)
    """What of it can be read."""
    ended: bool = False
    """It has an outcome, be it one that only a later version knows: nothing may run any more."""

    @property
    def run_uid(self) -> str:
        """Of its run; empty without one."""
        run = self.spec.run_ref if self.spec is not None else None
        return run.uid if run is not None else ""


@dataclass(frozen=True)
class SeenTask(Seen):
    spec: MLTaskSpec | None = None
    problem: str = ""
    digest: str = ""
    """Of the spec as it is now, as `taskRef.digest` has it."""
    status: MLTaskStatus = field(default_factory=MLTaskStatus)
    """What of it can be read."""


@dataclass(frozen=True)
class SeenRun(Seen):
    weight: float = 1.0
    suspend: bool = False


@dataclass(frozen=True)
class SeenJob(Seen):
    owner_uid: str = ""
    """Of the Rollout or MLTask that it belongs to (from the label, checked against the owner reference)."""
    part: Part = "sandbox"
    run_uid: str = ""
    """From the label."""
    attempt: int = 0
    finished: bool = False
    """Condition Complete or Failed is True."""
    finished_at: datetime | None = None
    message: str = ""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Of its pod, as the API server returned it."""
    sent: str = ""
    """Digest of the template that was sent, from the annotation."""
    limits: TaskLimits | None = None
    """That its script runs under, from the annotation."""


@dataclass(frozen=True)
class SeenPod(Seen):
    owner_uid: str = ""
    """Of the Rollout or MLTask, from the label."""
    part: Part = "sandbox"
    run_uid: str = ""
    attempt: int = 0
    job_uid: str = ""
    """Of its controller."""
    status: PodStatus = field(default_factory=PodStatus)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Labels and annotations."""
    spec: Mapping[str, Any] = field(default_factory=dict)
    """As the API server returned it, to be compared with what was sent."""

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.status.phase in ("Succeeded", "Failed")


@dataclass(frozen=True)
class SeenClaim(Seen):
    bound: bool = False
    allowed: bool = False
    """Carries the opt-in label."""


@dataclass(frozen=True)
class SeenPolicy(Seen):
    spec: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SeenNamespace(Seen):
    terminating: bool = False


AnySeen = SeenRollout | SeenTask | SeenRun | SeenJob | SeenPod | SeenClaim | SeenPolicy | SeenNamespace


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
    """By uid of the owner (a Rollout or MLTask), in order of attempt."""
    claims: Mapping[tuple[str, str], SeenClaim]
    """By (namespace, name)."""
    policies: Mapping[str, SeenPolicy]
    """By namespace: the sandboxes' NetworkPolicy."""
    terminating: frozenset[str] = frozenset()
    """Namespaces that are going away: nothing can be created there."""
