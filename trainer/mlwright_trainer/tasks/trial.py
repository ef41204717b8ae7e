"""Runs scripts of a task in the sandbox and grades submissions, one at a time, for the task commands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult
from mlwright_sandbox.backend import Finished, SandboxRequest
from mlwright_sandbox.errors import AnswersError, SandboxError
from mlwright_sandbox.grading_server import LocalGrader
from mlwright_sandbox.local import BackendKind, open_backend

from mlwright_trainer.errors import InternalError
from mlwright_trainer.tasks.folder import TaskError, TaskFolder


class Trial(Protocol):
    """What the checks need of the sandbox package."""

    def grade(self, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False) -> GraderResult:
        """Score a submission."""
        ...

    def run(self, script: str) -> Finished:
        """Run a script to its end and keep its submission."""
        ...


class SandboxTrial:
    """The real one: the local backend of `kind`, and a grader of its own."""

    def __init__(self, task: TaskFolder, *, kind: BackendKind = "auto") -> None:
        self._task = task
        self._kind = kind

    def grade(self, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False) -> GraderResult:
        """Score a submission, as `grade_submission`."""
        return grade_submission(self._task, submission, splits, intervals=intervals)

    def run(self, script: str) -> Finished:
        """Run a script, graded on Reward and Selection, and keep its submission."""
        return run_script(self._task, script, kind=self._kind)


def grade_submission(
    task: TaskFolder, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False
) -> GraderResult:
    """Score the bytes of one submission. Raises TaskError where the answers are at fault, else InternalError."""
    with sandbox_errors(task), LocalGrader() as grader:
        return grader.grade(task.mounts(), submission, splits, intervals=intervals)


def run_script(
    task: TaskFolder,
    script: str,
    *,
    kind: BackendKind = "auto",
    seed: int = 0,
    splits: tuple[Split, ...] = (Split.REWARD, Split.SELECTION),
) -> Finished:
    """One script in the local sandbox, to its result."""
    request = SandboxRequest(
        rollout="task-run",
        task=task.mounts(),
        script=script,
        seed=seed,
        splits=splits,
        keep_submission=True,
    )
    with sandbox_errors(task), open_backend(kind, slots=1) as backend:
        backend.submit(request)
        while not (finished := backend.collect()):
            pass
        return finished[0]


@contextmanager
def sandbox_errors(task: TaskFolder) -> Iterator[None]:
    """The sandbox package's errors as the trainer's."""
    try:
        yield
    except AnswersError as error:
        raise TaskError(f"{task.root}: {error}") from error
    except SandboxError as error:
        raise InternalError(f"the sandbox failed: {error}") from error
