"""What travels between LocalGrader and its process: requests in sealed memory, one line of JSON back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from mlwright_api.base import ApiModel
from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_api.results import GraderResult

from mlwright_sandbox.backend import TaskMounts

CONTROL_MESSAGE = b"grade"
PASSED_FDS = 3
"""With every control message: the socket for the reply, the request, and the submission or the work folder."""
_UNREAD = "The grader reads no description."


class GradingRequest(ApiModel):
    """One grading; `payload` says what the third descriptor is."""

    name: str
    spec: MLTaskSpec
    public: Path
    private: Path
    sealed: Path | None
    grader: Path | None
    splits: tuple[Split, ...]
    intervals: bool
    payload: Literal["Submission", "Folder"]
    deadline_seconds: float

    @property
    def task(self) -> TaskMounts:
        return TaskMounts(self.name, self.spec, self.public, self.private, self.sealed, self.grader)


class GradingReply(ApiModel):
    """Exactly one of these: a result; why the task cannot grade; how the forked grader ended without a result."""

    result: GraderResult | None = None
    answers_error: str | None = None
    died: str | None = None


def make_request(
    task: TaskMounts,
    splits: tuple[Split, ...],
    *,
    payload: Literal["Submission", "Folder"],
    intervals: bool,
    deadline_seconds: float,
) -> GradingRequest:
    """A request with absolute paths: the process has a working directory of its own."""
    return GradingRequest(
        name=task.name,
        spec=task.spec.model_copy(update={"description": _UNREAD}),
        public=task.public.absolute(),
        private=task.private.absolute(),
        sealed=task.sealed and task.sealed.absolute(),
        grader=task.grader and task.grader.absolute(),
        splits=splits,
        intervals=intervals,
        payload=payload,
        deadline_seconds=deadline_seconds,
    )


def in_memory(content: bytes) -> int:
    """A descriptor of an anonymous file with this content; the caller closes it."""
    descriptor = os.memfd_create("mlwright")
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    return descriptor


def read_memory(descriptor: int) -> bytes:
    """The whole content of such a file."""
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read()
