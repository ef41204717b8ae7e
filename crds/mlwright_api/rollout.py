"""Rollout: one script of a policy, run once to a result."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from mlwright_api.base import (
    DISTINCT,
    ApiModel,
    ApiVersion,
    Conditions,
    DnsLabel,
    DnsName,
    ObjectMeta,
    keyed_by,
)
from mlwright_api.bounds import NotNegative
from mlwright_api.mltask import Split, TaskLimits
from mlwright_api.patterns import DIGEST, FILE_NAME
from mlwright_api.results import MILESTONES, OUTPUT_TAIL_BYTES, Milestone, Receipt
from mlwright_api.violations import Cel, Rule, Violation, first_duplicate, rule

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
    """The TrainingRun that a rollout belongs to."""

    name: DnsName
    """Of the run, in the same namespace."""
    uid: Annotated[str, Field(max_length=64)]
    """Of the run, so that a later one of that name is another."""


class TaskReferenceTo(ApiModel):
    """The MLTask that a rollout is judged by, and exactly which."""

    name: DnsName
    """Of the task, in the same namespace."""
    digest: Annotated[str, Field(pattern=DIGEST, max_length=71)]
    """Over the canonical JSON of the MLTask's spec."""


class ScriptFile(ApiModel):
    """A file of the work folder."""

    path: Annotated[str, Field(pattern=FILE_NAME, max_length=128)]
    """A name, without folders."""
    content: Annotated[str, Field(max_length=FILES_BYTES)]
    """UTF-8."""


class RolloutSpec(ApiModel):
    """Immutable."""

    run_ref: RunReference | None = None
    """Absent: weight 1 and three retries of infrastructure failures."""
    task_ref: TaskReferenceTo
    sandbox: DnsLabel = "default"
    """A sandbox profile, owned by the platform."""
    policy_version: Annotated[int, Field(ge=0)] = 0
    """Of the policy that wrote the script."""
    files: Annotated[list[ScriptFile], Field(min_length=1, max_length=16, json_schema_extra=keyed_by("path"))]
    """Of the work folder, at most 128 KiB of UTF-8 together."""
    entrypoint: Annotated[str, Field(max_length=128)] = "script.py"
    """The file that is run."""
    limits: TaskLimits | None = None
    """At most the task's; default: the task's."""
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0
    """Of the script's `random` and `numpy.random`."""
    instrumentation: Literal["Static", "None"] = "Static"
    """Whether milestones are marked."""
    grade_partial: bool = False
    """Whether a valid submission left by an Error or a Timeout counts."""
    infrastructure_retries: Annotated[int, Field(ge=0, le=100)] = 3
    """Further attempts of the same script after failures that are not its own."""
    splits: Annotated[list[Split], Field(min_length=1, max_length=2, json_schema_extra=DISTINCT)] = [
        Split.REWARD,
        Split.SELECTION,
    ]
    """What is graded: Reward, Selection or both."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return _files_fit, _splits_are_open


# That no path comes twice is said by the list's type; so it is of splits.
@rule(
    Cel(
        f"self.files.map(file, size(bytes(file.content))).sum() <= {FILES_BYTES}",
        field="files",
        message=f"must be at most {FILES_BYTES} bytes together, not "
        "{self.files.map(file, size(bytes(file.content))).sum()}",
    ),
    Cel(
        "self.files.exists(file, file.path == self.entrypoint)",
        field="entrypoint",
        message="must be the path of one of files, not '{self.entrypoint}'",
    ),
)
def _files_fit(spec: RolloutSpec) -> Iterator[Violation]:
    paths = [file.path for file in spec.files]
    size = sum(len(file.content.encode(errors="surrogatepass")) for file in spec.files)
    if size > FILES_BYTES:
        yield Violation("files", f"must be at most {FILES_BYTES} bytes together, not {size}")
    if twice := first_duplicate(paths):
        yield Violation("files", f"paths must be distinct, but {twice!r} comes twice")
    if spec.entrypoint not in paths:
        there = ", ".join(paths)
        message = f"must be the path of one of files, not {spec.entrypoint!r} (there is {there})"
        yield Violation("entrypoint", message)


@rule(
    Cel(
        "!('Final' in self.splits)",
        field="splits",
        message="must be of Reward, Selection: Final is graded once, after the run has ended",
    )
)
def _splits_are_open(spec: RolloutSpec) -> Iterator[Violation]:
    if Split.FINAL in spec.splits:
        yield Violation(
            "splits", "must be of Reward, Selection: Final is graded once, after the run has ended"
        )
    if twice := first_duplicate(spec.splits):
        yield Violation("splits", f"must be distinct, but {twice} comes twice")


class RolloutSeconds(ApiModel):
    """Where the time of one rollout went, in seconds; `execution` is what duration weights use."""

    queued: NotNegative = 0
    """From creation to admission."""
    starting: NotNegative = 0
    """From admission to the script's start."""
    execution: NotNegative = 0
    """From the script's start to its end."""
    cpu: NotNegative = 0
    """User and system time of the script and its children."""
    grading: NotNegative = 0
    """Of the grader."""


class RolloutStatus(ApiModel):
    """Written by the operator (in a cluster) or by a local backend."""

    attempt: Annotated[int, Field(ge=0)] = 0
    """The last that was begun, from 1; 0: none. Further ones follow failures of the infrastructure."""
    outcome: Outcome | None = None
    """How it ended; absent until then."""
    reason: Annotated[str, Field(max_length=1024)] = ""
    """One line; empty where there is nothing to say."""
    scores: dict[Split, float] = {}
    """On the asked splits, where a valid submission was graded."""
    milestones: Annotated[list[Milestone], Field(max_length=len(MILESTONES))] = []
    """In the order in which the script reached them."""
    exit_code: int | None = None
    """Of the script; absent when a signal or the runner ended it."""
    seconds: RolloutSeconds = RolloutSeconds()
    """Where its time went."""
    output_tail: Annotated[str, Field(max_length=2 * OUTPUT_TAIL_BYTES)] = ""
    """The end of what the script printed, at most 2 KiB (a forged result may have more: a kubelet's 4 KiB)."""
    isolation: Receipt | None = None
    """What the sandbox could not do."""
    conditions: Conditions = []
    """Accepted, Started and Finished."""


class Rollout(ApiModel):
    """One script of a policy, run once to a result."""

    api_version: ApiVersion
    kind: Literal["Rollout"]
    metadata: ObjectMeta
    spec: RolloutSpec
    status: RolloutStatus | None = None
