"""The sandbox's errors, one hierarchy.

SandboxError
├── SourceError              a script that Python cannot compile (milestones)
├── SubmissionError          a submission that cannot be graded; the text is the reason
│   ├── MissingSubmission    nothing was written
│   └── InvalidSubmissionError  something was written, and it is wrong; a task's grade.py may raise it, too
├── AnswersError             a task that cannot grade anything: its answers or sample are wrong
├── GraderDied               the grading server could not be started, or died more than once
├── IsolationError           a sandbox, or its fork server, could not be made or broke
├── RequestError             what a pod's agent was asked to run cannot be run
├── HandoverError            the agent did not start or end in the time that a grader has
└── WireError                a message between backend, fork server and runner that is none
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base of everything that the sandbox raises on purpose; the text is one line fit for a person."""


class SourceError(SandboxError):
    """A script that Python cannot compile; `__cause__` is what Python said, `kind` the name of its type."""

    def __init__(self, message: str, *, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class SubmissionError(SandboxError):
    """A submission that cannot be graded; the text is the reason, for a person and the next prompt."""


class MissingSubmission(SubmissionError):
    """No file of the expected name was written."""


class InvalidSubmissionError(SubmissionError):
    """A file was written and cannot be scored; the name is the one that MLE-bench's graders use."""


class AnswersError(SandboxError):
    """A task whose answers or sample submission are wrong, so that no submission can be graded."""


class GraderDied(SandboxError):
    """The grading server could not be started, or died more than once: not a submission's fault."""


class IsolationError(SandboxError):
    """A sandbox, or the fork server that makes them, could not be started or broke: the machine's fault."""


class RequestError(SandboxError):
    """A request to a pod's agent that it does not understand: whoever made the pod is at fault."""


class HandoverError(SandboxError):
    """A pod's agent that did not start or did not end in time, so that its grader has nothing to read."""


class WireError(SandboxError):
    """A message between backend, fork server and runner that is none."""
