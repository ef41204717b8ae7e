"""From what Kubernetes (or a local process), runner and grader report to an outcome: one table, one function.

RULES is read from top to bottom and the first rule that applies decides. docs/reference/outcomes.md is
generated from it, so what is documented is what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlwright_api.mltask import TaskLimits
from mlwright_api.podstatus import (
    AGENT,
    GRADER,
    IMAGE_REASONS,
    ContainerState,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodStatus,
    local_pod_status,
)
from mlwright_api.results import (
    GraderResult,
    Limit,
    RunnerReport,
    RunnerResult,
    Unfinished,
    Unreadable,
    Verdict,
)
from mlwright_api.rollout import Outcome
from mlwright_api.soundness import contradiction

__all__ = [
    "AGENT",
    "GRADER",
    "GRADER_DIED",
    "RULES",
    "Classification",
    "ContainerState",
    "ContainerStateTerminated",
    "ContainerStatus",
    "Ending",
    "OutcomeRule",
    "PodCondition",
    "PodStatus",
    "classify",
    "local_pod_status",
]

GRADER_DIED = "GraderDied"
REASON_CHARACTERS = 512


@dataclass(frozen=True)
class Classification:
    """An outcome, and one line that says why (empty when there is nothing to say)."""

    outcome: Outcome
    reason: str

    @property
    def rerun(self) -> bool:
        """Whether the same script deserves another attempt, as long as there are any."""
        return self.outcome is Outcome.INFRASTRUCTURE_FAILED or self.reason.startswith(GRADER_DIED)


@dataclass(frozen=True)
class Ending:
    """Everything that is known of how one attempt ended."""

    pod: PodStatus
    runner: RunnerReport
    grader: GraderResult | None
    limits: TaskLimits
    grade_partial: bool = False

    @property
    def agent(self) -> ContainerStateTerminated | None:
        return self.pod.state(AGENT).terminated

    @property
    def result(self) -> RunnerResult | None:
        return self.runner if isinstance(self.runner, RunnerResult) else None

    @property
    def finished(self) -> bool:
        """The script ended by itself, in time, with exit code 0."""
        return self.result is not None and self.result.exit_code == 0 and not self.result.timed_out

    @property
    def gradable(self) -> bool:
        """What the script left behind counts: it finished, or a partial submission is graded."""
        if self.finished:
            return True
        partial = self.grade_partial and self.result is not None and self.result.limit is None
        return partial and self.verdict in (Verdict.VALID, Verdict.TRIVIAL)

    @property
    def verdict(self) -> Verdict | None:
        return self.grader.verdict if self.grader is not None else None


@dataclass(frozen=True)
class OutcomeRule:
    """One row of the table: `explain` returns the reason where the rule applies, None where it does not."""

    name: str
    outcome: Outcome
    when: str
    explain: Callable[[Ending], str | None]


def classify(
    pod: PodStatus,
    runner: RunnerReport,
    grader: GraderResult | None,
    limits: TaskLimits,
    *,
    grade_partial: bool = False,
) -> Classification:
    """The outcome of one attempt that is over; total, pure, and never raises."""
    ending = Ending(pod, runner, grader, limits, grade_partial)
    for rule in RULES:
        reason = rule.explain(ending)
        if reason is not None:
            return Classification(rule.outcome, " ".join(reason.split())[:REASON_CHARACTERS])
    return Classification(Outcome.INFRASTRUCTURE_FAILED, "NotFinished")


def _text(*parts: str | None) -> str:
    return ": ".join(part.strip() for part in parts if part)


# What was done to the pod, before anything that its containers say.


def _cancelled(ending: Ending) -> str | None:
    return _text("Cancelled", ending.pod.message) if ending.pod.reason == "Cancelled" else None


def _disrupted(ending: Ending) -> str | None:
    if ending.pod.phase == "Succeeded":
        return None
    for condition in ending.pod.conditions:
        if condition.type == "DisruptionTarget" and condition.status == "True":
            return _text("Disrupted", condition.reason, condition.message)
    return None


# The kubelet's texts for an eviction by the pod's own use; node pressure reads "The node was low on ...".
_OWN_USE = (
    "Usage of EmptyDir volume",
    "ephemeral local storage usage exceeds",
    "exceeded its local ephemeral storage limit",
)


def _evicted_for_own_use(ending: Ending) -> str | None:
    message = ending.pod.message or ""
    own = ending.pod.reason == "Evicted" and any(text in message for text in _OWN_USE)
    return _text("Disk", message) if own else None


def _pod_failed(ending: Ending) -> str | None:
    """Reasons that Kubernetes gives on the pod itself are never the script's doing."""
    if ending.pod.phase == "Failed" and ending.pod.reason:
        return _text(ending.pod.reason, ending.pod.message)
    return "Unknown: the node does not answer" if ending.pod.phase == "Unknown" else None


_CANNOT_START = IMAGE_REASONS | frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "PreCreateHookError",
        "PreStartHookError",
        "PostStartHookError",
        "RunContainerError",
        "CrashLoopBackOff",
    }
)
_NEVER_RAN = frozenset({"ContainerCannotRun", "StartError", "ContainerStatusUnknown", "DeadlineExceeded"})


def _container_failed(ending: Ending) -> str | None:
    for container in ending.pod.container_statuses:
        waiting, ended = container.state.waiting, container.state.terminated
        if waiting is not None and waiting.reason in _CANNOT_START:
            return _text(waiting.reason, container.name, waiting.message)
        if ended is not None and ended.reason in _NEVER_RAN:
            return _text(ended.reason, container.name, ended.message)
    return None


# How the agent's container ended.


def _agent_out_of_memory(ending: Ending) -> str | None:
    killed = ending.agent is not None and ending.agent.reason == "OOMKilled"
    return f"killed at {ending.limits.memory} of memory" if killed and not ending.finished else None


def _agent_running(ending: Ending) -> str | None:
    return "NotFinished: the agent has not ended" if ending.agent is None else None


def _runner_died(ending: Ending) -> str | None:
    assert ending.agent is not None
    unfinished = ending.runner if isinstance(ending.runner, Unfinished) else None
    said = unfinished.failure if unfinished is not None else ""
    if ending.agent.exit_code != 0:
        return _text(f"RunnerDied: exit code {ending.agent.exit_code}", said)
    if ending.runner is None or unfinished is not None:
        return _text("RunnerDied: no result", said)
    return None


# Whether the runner's account holds together.


def _unreadable(ending: Ending) -> str | None:
    return f"result: {ending.runner.problem}" if isinstance(ending.runner, Unreadable) else None


def _inconsistent(ending: Ending) -> str | None:
    if ending.result is None:
        return None
    container = ending.agent.seconds if ending.agent is not None else None
    return contradiction(ending.result, container_seconds=container, limits=ending.limits)


# What became of the script.


def _partial(ending: Ending) -> str:
    assert ending.result is not None
    if ending.finished:
        return ""
    return "partial: " + (_timed_out(ending) or _failed(ending) or "")


def _scored(ending: Ending) -> str | None:
    graded = ending.gradable and ending.verdict is Verdict.VALID
    return _partial(ending) if graded else None


def _trivial(ending: Ending) -> str | None:
    graded = ending.gradable and ending.verdict is Verdict.TRIVIAL
    if not graded or ending.grader is None:
        return None
    return _text(_partial(ending), ending.grader.reason)


def _timed_out(ending: Ending) -> str | None:
    late = ending.result is not None and ending.result.timed_out
    return f"ran into the limit of {ending.limits.timeout_seconds:g} s" if late else None


def _memory_error(ending: Ending) -> str | None:
    return _limit(ending, over=lambda limit: limit is Limit.MEMORY)


def _over_limit(ending: Ending) -> str | None:
    return _limit(ending, over=lambda limit: limit is not Limit.MEMORY)


def _limit(ending: Ending, *, over: Callable[[Limit], bool]) -> str | None:
    result = ending.result
    if result is None or result.limit is None or ending.finished or not over(result.limit):
        return None
    return _text(result.limit.value, result.error)


def _failed(ending: Ending) -> str | None:
    result = ending.result
    if result is None or ending.finished:
        return None
    if result.error:
        return result.error
    return f"signal {result.signal}" if result.signal is not None else f"exit code {result.exit_code}"


def _grader_died(ending: Ending) -> str | None:
    if ending.grader is None:
        return f"{GRADER_DIED}: the submission could not be graded"
    unscored = ending.verdict in (Verdict.VALID, Verdict.TRIVIAL) and not ending.grader.scores
    return f"{GRADER_DIED}: a verdict without a score" if unscored else None


def _missing(ending: Ending) -> str | None:
    if ending.grader is None or ending.verdict is not Verdict.MISSING:
        return None
    return ending.grader.reason or "no submission file was written"


def _invalid(ending: Ending) -> str | None:
    if ending.grader is None or ending.verdict is not Verdict.INVALID:
        return None
    return ending.grader.reason or "the submission is invalid"


RULES: tuple[OutcomeRule, ...] = (
    OutcomeRule("cancelled", Outcome.CANCELLED, "we ended it: window closed, deadline, stop", _cancelled),
    OutcomeRule(
        "disrupted",
        Outcome.INFRASTRUCTURE_FAILED,
        "condition DisruptionTarget is True, unless the pod had succeeded: drain, preemption, node pressure",
        _disrupted,
    ),
    OutcomeRule(
        "evicted for own use",
        Outcome.OVER_LIMIT,
        "the pod was evicted because it used more storage than it may",
        _evicted_for_own_use,
    ),
    OutcomeRule(
        "pod failed",
        Outcome.INFRASTRUCTURE_FAILED,
        "the pod itself has a reason for its failure (DeadlineExceeded, NodeLost, Evicted, ...; locally "
        "SandboxFailed), or its phase is Unknown",
        _pod_failed,
    ),
    OutcomeRule(
        "container failed",
        Outcome.INFRASTRUCTURE_FAILED,
        "a container could not be started (ImagePullBackOff, CreateContainerError, StartError, ...)",
        _container_failed,
    ),
    OutcomeRule(
        "agent out of memory",
        Outcome.OUT_OF_MEMORY,
        "the agent's container was OOMKilled, and the script had not ended well",
        _agent_out_of_memory,
    ),
    OutcomeRule(
        "agent has not ended", Outcome.INFRASTRUCTURE_FAILED, "the agent has not terminated", _agent_running
    ),
    OutcomeRule(
        "runner died",
        Outcome.INFRASTRUCTURE_FAILED,
        "the runner ended with anything but exit code 0, or left no result, or none that is finished",
        _runner_died,
    ),
    OutcomeRule("unreadable", Outcome.TAMPERED, "the runner's result does not parse", _unreadable),
    OutcomeRule(
        "inconsistent",
        Outcome.TAMPERED,
        "the runner's result contradicts itself or the container: no receipt, no end, milestones out of "
        "order, execution longer than the container lived, a timeout before the limit",
        _inconsistent,
    ),
    OutcomeRule(
        "grader died",
        Outcome.INVALID_SUBMISSION,
        "the script exited with 0 and the grader left no result, on every attempt (reason GraderDied)",
        lambda ending: _grader_died(ending) if ending.finished else None,
    ),
    OutcomeRule(
        "scored",
        Outcome.SCORED,
        "exit code 0 in time (with gradePartial also an Error or a Timeout) and a valid submission",
        _scored,
    ),
    OutcomeRule(
        "trivial",
        Outcome.TRIVIAL,
        "as Scored, but the predictions are constant or equal to the sample submission's",
        _trivial,
    ),
    OutcomeRule("timed out", Outcome.TIMEOUT, "the script ran into the task's execution limit", _timed_out),
    OutcomeRule(
        "memory error",
        Outcome.OUT_OF_MEMORY,
        "the script failed at its memory limit, also by an uncaught MemoryError",
        _memory_error,
    ),
    OutcomeRule(
        "over limit",
        Outcome.OVER_LIMIT,
        "the script failed at its disk, file, process or output limit, also by an uncaught ENOSPC, EDQUOT, "
        "EFBIG or EAGAIN",
        _over_limit,
    ),
    OutcomeRule("failed", Outcome.ERROR, "a signal or any other exit code than 0", _failed),
    OutcomeRule("missing", Outcome.NO_SUBMISSION, "exit code 0 and no submission", _missing),
    OutcomeRule("invalid", Outcome.INVALID_SUBMISSION, "exit code 0 and an invalid submission", _invalid),
)
"""In order: the first rule that applies decides."""
