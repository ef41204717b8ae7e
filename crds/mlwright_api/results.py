"""What the runner and the grader report, and the receipt of what a sandbox could not do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias, get_args

from pydantic import Field, ValidationError

from mlwright_api.base import ApiModel
from mlwright_api.mltask import Split

Milestone = Literal[
    "imports",
    "data_loaded",
    "model_built",
    "model_trained",
    "predictions_made",
    "validated",
    "submission_written",
]
MILESTONES: tuple[Milestone, ...] = get_args(Milestone)
"""In the order in which a script reaches them."""
OUTPUT_TAIL_BYTES = 2048
RUNNER_MESSAGE_BYTES = 4000
"""Of the runner's termination message, escapes included: a kubelet silently cuts at 4,096."""
GRADER_MESSAGE_BYTES = 3 * 1024
"""Of the grader's."""


class ReceiptCheck(ApiModel):
    """One thing that a sandboxed script must not be able to do."""

    name: Annotated[str, Field(max_length=63)]
    """What was tried."""
    unlocked: bool | None = None
    """Whether it was already impossible before the lock (the platform's isolation); None: not tried."""
    locked: bool
    """Whether it is impossible in a locked child: what SandboxesIsolated needs."""
    detail: Annotated[str, Field(max_length=256)] = ""
    """What came of it."""


class Receipt(ApiModel):
    """Evidence, written by the runner before the script starts."""

    backend: Literal["Namespaces", "Lock", "Plain", "Pod"]
    """What isolated the script."""
    user_namespace: bool
    """Whether the script ran in a user namespace of its own."""
    seccomp: bool
    """Whether the lock's filter was loaded."""
    landlock_abi: Annotated[int, Field(ge=0)]
    """0 where the kernel has no Landlock."""
    checks: Annotated[list[ReceiptCheck], Field(max_length=32)] = []

    @property
    def isolated(self) -> bool:
        """Whether every check held in the locked child."""
        return bool(self.checks) and all(check.locked for check in self.checks)


class Limit(StrEnum):
    """A limit of its own that a script ran into."""

    MEMORY = "Memory"
    DISK = "Disk"
    FILES = "Files"
    PROCESSES = "Processes"
    OUTPUT = "Output"


class RunnerResult(ApiModel):
    """How one script ended, as the runner saw it."""

    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    """None when a signal ended the script or the runner ended it."""
    signal: Annotated[int, Field(ge=1, le=64)] | None = None
    """That ended the script."""
    timed_out: bool = False
    """The runner ended the script at the task's time limit."""
    limit: Limit | None = None
    """The first limit hit, also when seen as an uncaught MemoryError, ENOSPC, EDQUOT, EFBIG or EAGAIN."""
    error: Annotated[str, Field(max_length=512)] = ""
    """Last line of the traceback, if any."""
    milestones: Annotated[list[Milestone], Field(max_length=len(MILESTONES))] = []
    output_tail: str = ""
    """At most OUTPUT_TAIL_BYTES of UTF-8."""
    execution_seconds: Annotated[float, Field(ge=0)]
    """Monotonic, script start to script end."""
    cpu_seconds: Annotated[float, Field(ge=0)] = 0
    """User and system time of the script and its children."""
    starting_seconds: Annotated[float, Field(ge=0)] = 0
    """From the runner's start to the script's."""
    isolation: Receipt


class Unfinished(ApiModel):
    """What stands in the place of a runner's result until there is one, and for ever if the runner dies."""

    unfinished: Literal[True]
    """By this it cannot be taken for a result."""
    failure: Annotated[str, Field(max_length=512)] = ""
    """Why there will be no result, where the runner itself could say so."""
    milestones: Annotated[list[Milestone], Field(max_length=len(MILESTONES))] = []
    """Reached so far."""
    output_tail: str = ""
    """Printed so far, at most OUTPUT_TAIL_BYTES of UTF-8."""


class Verdict(StrEnum):
    """What a submission is; Trivial: valid, but constant, or equal to the sample (also in rank)."""

    VALID = "Valid"
    TRIVIAL = "Trivial"
    INVALID = "Invalid"
    MISSING = "Missing"


class GraderResult(ApiModel):
    """What the grader says of one submission."""

    verdict: Verdict
    reason: Annotated[str, Field(max_length=512)] = ""
    """One line for a person and the next prompt; empty when valid."""
    scores: dict[Split, float] = {}
    intervals: dict[Split, tuple[float, float]] = {}
    """95 % percentile intervals by bootstrap over a split's rows, where they were asked for."""
    digest: Annotated[str, Field(max_length=128)] = ""
    """sha256 of the submission's bytes; empty when missing."""
    grading_seconds: Annotated[float, Field(ge=0)] = 0


class GraderFailure(ApiModel):
    """What a grader leaves that could grade nothing: for whoever looks after the task, never for a model."""

    failure: Annotated[str, Field(min_length=1, max_length=512)]
    """One line."""


@dataclass(frozen=True)
class Unreadable:
    """A result that was written but does not parse."""

    problem: str


RunnerReport: TypeAlias = RunnerResult | Unfinished | Unreadable | None
"""What can be read from a runner's termination message."""


def read_runner_result(message: str) -> RunnerReport:
    """The runner's termination message; None where it wrote nothing, Unfinished where it did not get to its result."""
    if not message.strip():
        return None
    try:
        return RunnerResult.model_validate_json(message, strict=True)
    except ValidationError as error:
        return _unfinished(message) or Unreadable(_first_problem(error))


def _unfinished(message: str) -> Unfinished | None:
    try:
        return Unfinished.model_validate_json(message, strict=True)
    except ValidationError:
        return None


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))} {first['msg']}".strip()


def read_grader_result(message: str) -> GraderResult | None:
    """The grader's termination message; None where it wrote nothing that parses: it died."""
    try:
        return GraderResult.model_validate_json(message, strict=True)
    except ValidationError:
        return None


def read_grader_failure(message: str) -> str:
    """Why a grader could grade nothing, in its own words; empty where it said nothing of the kind."""
    try:
        return GraderFailure.model_validate_json(message, strict=True).failure
    except ValidationError:
        return ""
