"""Whether a runner's account of a script holds together; where it does not, somebody has tampered with it."""

from __future__ import annotations

from mlwright_api.mltask import TaskLimits
from mlwright_api.results import MILESTONES, OUTPUT_TAIL_BYTES, RunnerResult

CONTAINER_RESOLUTION_SECONDS = 1.0
"""The kubelet's stamps are whole seconds, so start and end may each be off by one."""
EARLY_TIMEOUT_SECONDS = 1.0
"""How much earlier than the limit a runner may say that it was reached."""


def contradiction(result: RunnerResult, *, container_seconds: float | None, limits: TaskLimits) -> str | None:
    """The first contradiction in a result, or between it and the container's life; None if it is sound."""
    return (
        _no_receipt(result)
        or _no_end(result)
        or _milestones_out_of_order(result)
        or _longer_than(container_seconds, result)
        or _early_timeout(result, limits)
        or _long_tail(result)
    )


def _no_receipt(result: RunnerResult) -> str | None:
    receipt = result.isolation
    return "receipt: no checks" if receipt.backend != "Plain" and not receipt.checks else None


def _no_end(result: RunnerResult) -> str | None:
    if result.exit_code is not None and result.signal is not None:
        return "result: an exit code and a signal"
    if result.exit_code is None and result.signal is None and not result.timed_out and result.limit is None:
        return "result: no exit code, signal, timeout or limit"
    return "result: exit 0 after the time limit" if result.timed_out and result.exit_code == 0 else None


def _milestones_out_of_order(result: RunnerResult) -> str | None:
    places = [MILESTONES.index(each) for each in result.milestones]
    return None if places == sorted(set(places)) else "result: milestones out of order"


def _longer_than(container_seconds: float | None, result: RunnerResult) -> str | None:
    if container_seconds is None:
        return None
    if result.execution_seconds <= container_seconds + 2 * CONTAINER_RESOLUTION_SECONDS:
        return None
    return (
        f"result: {result.execution_seconds:.1f} s of execution in {container_seconds:.1f} s of the container"
    )


def _early_timeout(result: RunnerResult, limits: TaskLimits) -> str | None:
    early = result.execution_seconds < limits.timeout_seconds - EARLY_TIMEOUT_SECONDS
    return "result: a timeout before the limit" if result.timed_out and early else None


def _long_tail(result: RunnerResult) -> str | None:
    long = len(result.output_tail.encode(errors="replace")) > OUTPUT_TAIL_BYTES
    return f"result: an output tail over {OUTPUT_TAIL_BYTES} bytes" if long else None
