"""Whether a Rollout can be run as it stands: the condition Accepted, with what is wrong and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from mlwright_api.mltask import TaskLimits
from mlwright_api.rollout import RolloutSpec

from mlwright_operator.config import ProfileLimits, SandboxProfile
from mlwright_operator.observed import SeenTask
from mlwright_operator.planning.conditions import Said, find, is_true
from mlwright_operator.sandbox import limits_of, over

ACCEPTED = "Accepted"
READY = "Ready"


def accepted(spec: RolloutSpec, task: SeenTask | None, profiles: Mapping[str, SandboxProfile]) -> Said:
    """The first objection, or none."""
    profile = profiles.get(spec.sandbox)
    if profile is None:
        known = ", ".join(sorted(profiles))
        return _not("UnknownSandbox", f"spec.sandbox: there is no profile {spec.sandbox!r}, but {known}")
    if task is None or task.deleting:
        return _not("TaskNotFound", f"there is no MLTask {spec.task_ref.name!r} in this namespace")
    return _task_objection(spec, task, profile) or Said(ACCEPTED, True, "Accepted")


def _task_objection(spec: RolloutSpec, task: SeenTask, profile: SandboxProfile) -> Said | None:
    if task.spec is None:
        return _not("TaskNotReady", f"MLTask {task.ref.name} is invalid: {task.problem}")
    if task.digest != spec.task_ref.digest:
        asked, found = spec.task_ref.digest, task.digest
        return _not(
            "TaskChanged", f"MLTask {task.ref.name} is {found}, and not {asked} as spec.taskRef has it"
        )
    excess = _excess(limits_of(spec, task.spec), task.spec.limits, profile.limits)
    if excess is not None:
        return _not("LimitsAboveTask", f"spec.limits: {excess}")
    return None if is_ready(task) else _not("TaskNotReady", _why_not_ready(task))


@lru_cache(maxsize=4096)
def _excess(asked: TaskLimits, most: TaskLimits, profile: ProfileLimits) -> str | None:
    """As `over`: few combinations, asked for at every pass by everybody who waits."""
    return over(asked, most, profile)


def is_ready(task: SeenTask) -> bool:
    """Whether its sample submission has been graded, with the spec that it has."""
    return is_true(task.status.conditions, READY) and task.status.digest == task.digest


def _why_not_ready(task: SeenTask) -> str:
    ready = find(task.status.conditions, READY)
    said = (
        f"{ready.reason}: {ready.message}".removesuffix(": ") if ready is not None else "not checked as yet"
    )
    return f"MLTask {task.ref.name}: {said}"


def invalid(problem: str) -> Said:
    """Of a spec that does not hold what the schema cannot say."""
    return _not("InvalidSpec", problem)


def _not(reason: str, message: str) -> Said:
    return Said(ACCEPTED, False, reason, message)
