"""Rollout: one script of a policy, run once to a result."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from mlwright_api.base import ApiModel, ApiVersion, Condition, DnsName, ObjectMeta
from mlwright_api.mltask import Split, TaskLimits
from mlwright_api.results import Milestone, Receipt

FILES_BYTES = 128 * 1024


class Outcome(StrEnum):
    """How a rollout ended; see the outcome table in docs/reference/outcomes.md."""

    SCORED = "Scored"
    TRIVIAL = "Trivial"
    UNCHANGED = "Unchanged"
    INVALID_SUBMISSION = "InvalidSubmission"
    NO_SUBMISSION = "NoSubmission"
    ERROR = "Error"
    OUT_OF_MEMORY = "OutOfMemory"
    OVER_LIMIT = "OverLimit"
    TIMEOUT = "Timeout"
    UNPARSED = "Unparsed"
    REFUSED = "Refused"
    TRUNCATED = "Truncated"
    TAMPERED = "Tampered"
    CANCELLED = "Cancelled"
    INFRASTRUCTURE_FAILED = "InfrastructureFailed"

    @property
    def valid(self) -> bool:
        """Whether a valid submission was graded."""
        return self in (Outcome.SCORED, Outcome.TRIVIAL, Outcome.UNCHANGED)

    @property
    def trained(self) -> bool:
        """Whether such a row may carry a gradient."""
        return self not in (Outcome.CANCELLED, Outcome.INFRASTRUCTURE_FAILED)

    @property
    def executed(self) -> bool:
        """Whether a script ran in a sandbox to an end of its own (or of its limit)."""
        return self.trained and self not in (
            Outcome.UNCHANGED,
            Outcome.UNPARSED,
            Outcome.REFUSED,
            Outcome.TRUNCATED,
        )


class RunReference(ApiModel):
    name: DnsName
    uid: Annotated[str, Field(max_length=64)]


class TaskReferenceTo(ApiModel):
    name: DnsName
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]


class ScriptFile(ApiModel):
    path: Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=128)]
    content: str


class RolloutSpec(ApiModel):
    """Immutable."""

    run_ref: RunReference | None = None
    """Absent: weight 1 and three retries of infrastructure failures."""
    task_ref: TaskReferenceTo
    sandbox: DnsName = "default"
    policy_version: Annotated[int, Field(ge=0)] = 0
    files: Annotated[list[ScriptFile], Field(min_length=1, max_length=16)]
    entrypoint: str = "script.py"
    limits: TaskLimits | None = None
    splits: Annotated[list[Split], Field(min_length=1, max_length=2)] = [Split.REWARD, Split.SELECTION]

    @model_validator(mode="after")
    def _files_fit(self) -> Self:
        if sum(len(file.content.encode()) for file in self.files) > FILES_BYTES:
            raise ValueError(f"files are larger than {FILES_BYTES} bytes together")
        if self.entrypoint not in [file.path for file in self.files]:
            raise ValueError(f"entrypoint {self.entrypoint!r} is not among files")
        if Split.FINAL in self.splits:
            raise ValueError("Final is graded once, after the run has ended")
        return self


class RolloutSeconds(ApiModel):
    """Where the time of one rollout went, in seconds; `execution` is what duration weights use."""

    queued: float = 0
    starting: float = 0
    execution: float = 0
    cpu: float = 0
    grading: float = 0


class RolloutStatus(ApiModel):
    """Written by the operator (in a cluster) or by a local backend."""

    attempt: Annotated[int, Field(ge=1)] = 1
    outcome: Outcome | None = None
    reason: Annotated[str, Field(max_length=1024)] = ""
    scores: dict[Split, float] = {}
    milestones: list[Milestone] = []
    exit_code: int | None = None
    seconds: RolloutSeconds = RolloutSeconds()
    output_tail: str = ""
    isolation: Receipt | None = None
    conditions: list[Condition] = []


class Rollout(ApiModel):
    """One script of a policy, run once to a result."""

    api_version: ApiVersion
    kind: Literal["Rollout"]
    metadata: ObjectMeta
    spec: RolloutSpec
    status: RolloutStatus | None = None
