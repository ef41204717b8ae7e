"""What a sandbox may use, in the units of a pod: limits asked for, memory to reserve, deadlines in order."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from mlwright_api.mltask import MLTaskSpec, TaskLimits
from mlwright_api.quantities import Quantity
from mlwright_api.rollout import RolloutSpec

from mlwright_operator.config import ProfileLimits, SandboxProfile

RUNNER_MARGIN_SECONDS = 120
"""For imports, the receipt and the start of the script, and for ending it, on a busy node."""
EPHEMERAL_STORAGE = "64Mi"
"""Of each container: its log. Everything that can be written is memory-backed."""
CONTROL_SIZE = "1Mi"
GRADER_TEMPORARY_SIZE = "64Mi"
_LONGEST_SECONDS = 2**31 - 1

Amounts = dict[str, str]
"""Amounts of resources, as in a container's requests and limits."""


def limits_of(rollout: RolloutSpec, task: MLTaskSpec) -> TaskLimits:
    """What the script may use: the rollout's own limits, or else the task's."""
    return rollout.limits or task.limits


def over(asked: TaskLimits, task: TaskLimits, profile: ProfileLimits) -> str | None:
    """Which limits are asked for above the task's or the profile's, and by how much; None where all hold."""
    excesses = [*_excesses(asked, task, "the task's"), *_excesses(asked, profile, "the sandbox profile's")]
    return "; ".join(excesses) or None


def _excesses(asked: TaskLimits, most: TaskLimits | ProfileLimits, whose: str) -> Iterator[str]:
    if asked.timeout_seconds > most.timeout_seconds:
        yield f"timeoutSeconds {asked.timeout_seconds:g} is above {whose} {most.timeout_seconds:g}"
    for name, wanted, allowed in (
        ("cpu", asked.cpu, most.cpu),
        ("memory", asked.memory, most.memory),
        ("workSize", asked.work_size, most.work_size),
    ):
        if wanted.exact > allowed.exact:
            yield f"{name} {wanted} is above {whose} {allowed}"
    if asked.gpus > most.gpus:
        yield f"gpus {asked.gpus} is above {whose} {most.gpus}"


def grader_wait_seconds(limits: TaskLimits) -> int:
    """How long the grader waits for the agent's end: longer than the runner ever takes."""
    return ceil(limits.timeout_seconds) + RUNNER_MARGIN_SECONDS


def pod_deadline_seconds(limits: TaskLimits, profile: SandboxProfile) -> int:
    """The backstop, from the kubelet's first look at the pod: start, script and grading have all been too late."""
    whole = profile.starting_seconds + grader_wait_seconds(limits) + profile.grading_seconds
    return min(whole, _LONGEST_SECONDS)


def check_deadline_seconds(profile: SandboxProfile) -> int:
    """As pod_deadline_seconds, where no script runs."""
    return min(profile.starting_seconds + profile.grading_seconds, _LONGEST_SECONDS)


def agent_amounts(limits: TaskLimits, profile: SandboxProfile) -> Amounts:
    """Memory: the script's, a full work folder and ours. Files in /tmp and /dev/shm are the script's memory."""
    memory = limits.memory.bytes + limits.work_size.bytes + profile.overhead_memory.bytes
    amounts = _amounts(limits.cpu, memory)
    return amounts | ({"nvidia.com/gpu": str(limits.gpus)} if limits.gpus else {})


def grader_amounts(profile: SandboxProfile) -> Amounts:
    """Reserved for the pod's whole life, as Guaranteed pods need."""
    return _amounts(profile.grader_cpu, profile.grader_memory.bytes)


def _amounts(cpu: Quantity, memory: int) -> Amounts:
    return {"cpu": f"{cpu.milli}m", "memory": str(memory), "ephemeral-storage": EPHEMERAL_STORAGE}


def guaranteed(amounts: Amounts) -> dict[str, Amounts]:
    """Requests equal to limits, so that seconds do not depend on the neighbours."""
    return {"requests": dict(amounts), "limits": dict(amounts)}
