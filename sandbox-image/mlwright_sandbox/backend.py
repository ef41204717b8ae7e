"""The port through which everybody else runs scripts: submit, collect, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_api.results import GraderResult
from mlwright_api.rollout import RolloutStatus

SAMPLE_FILE = "sample_submission.csv"
"""In the public folder."""
ANSWERS_FILE = "answers.csv"
"""In the private and in the sealed folder."""
SPLIT_COLUMN = "split"
"""Of an answers file."""


@dataclass(frozen=True)
class TaskMounts:
    """A task as a backend needs it: the manifest and where its folders are.

    `private` holds answers.csv for Reward and Selection, `sealed` for Final; neither is ever visible to a script.
    `grader` is the task's own grade.py, if it has one.
    """

    name: str
    spec: MLTaskSpec
    public: Path
    private: Path
    sealed: Path | None = None
    grader: Path | None = None


@dataclass(frozen=True)
class SandboxRequest:
    """One script to run to a result."""

    rollout: str
    """Unique among what this backend has in flight."""
    task: TaskMounts
    script: str
    seed: int
    splits: tuple[Split, ...] = (Split.REWARD, Split.SELECTION)
    instrument: bool = True
    """Whether milestones are marked (environment.instrumentation Static)."""
    grade_partial: bool = False
    keep_submission: bool = False
    retries: int = 3
    """Further attempts of the same script after failures of the infrastructure."""


@dataclass(frozen=True)
class Finished:
    """The result of one request; `status.outcome` is always set."""

    rollout: str
    status: RolloutStatus
    started_at: float
    """Unix time of the script's start (of the attempt that counts)."""
    submission: bytes | None = None
    """The submission's bytes, where asked for and readable."""


class SandboxBackend(Protocol):
    """Runs scripts, a fixed number at a time, each on a core of its own."""

    @property
    def slots(self) -> int:
        """How many scripts run at the same time."""
        ...

    def submit(self, request: SandboxRequest) -> None:
        """Queue a script; starts at once if a slot is free. Returns immediately."""
        ...

    def collect(self, timeout: float | None = None) -> Sequence[Finished]:
        """What has finished since the last call; waits up to `timeout` seconds (None: for ever) for the first."""
        ...

    def cancel(self, rollout: str) -> None:
        """End a rollout; it is still collected, as Cancelled (or as what it was, if it had just ended)."""
        ...

    def release(self, rollout: str) -> None:
        """A collected result is safe with the caller: let go of what the backend still keeps of it."""
        ...

    def close(self) -> None:
        """End everything that runs and release what the backend holds; idempotent."""
        ...


class Grader(Protocol):
    """Grades submissions outside of a rollout: the sealed grading, `mlwright task grade`."""

    def grade(
        self, task: TaskMounts, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False
    ) -> GraderResult:
        """Score one submission on the asked splits; `intervals` adds bootstrap intervals over each split's rows."""
        ...
