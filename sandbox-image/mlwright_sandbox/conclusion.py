"""From what the runner and the grader of one attempt said to its outcome: pure."""

from __future__ import annotations

from dataclasses import dataclass

from mlwright_api.classify import Classification, classify, local_pod_status
from mlwright_api.mltask import TaskLimits
from mlwright_api.results import MILESTONES, GraderResult, Limit, Receipt, RunnerResult

from mlwright_sandbox.wire import Report


@dataclass(frozen=True)
class Attempt:
    """Everything known of one attempt; `failure` is set where the sandbox broke."""

    failure: str = ""
    cancelled: bool = False
    result: RunnerResult | None = None
    grader: GraderResult | None = None


def runner_result(
    report: Report, receipt: Receipt, *, starting_seconds: float, out_of_memory: bool
) -> RunnerResult:
    """The runner's report under its public names; `out_of_memory`: the kernel ended a process of this rollout."""
    limit = Limit(report.limit) if report.limit is not None else None
    if out_of_memory and report.exit_code != 0:
        limit = Limit.MEMORY
    return RunnerResult(
        exit_code=report.exit_code,
        signal=report.signal,
        timed_out=report.timed_out,
        limit=limit,
        error=report.error,
        milestones=[MILESTONES[index] for index in report.milestones],
        output_tail=report.output_tail,
        execution_seconds=report.execution_seconds,
        cpu_seconds=report.cpu_seconds,
        starting_seconds=max(starting_seconds, 0.0),
        isolation=receipt,
    )


def gradable(result: RunnerResult, *, grade_partial: bool) -> bool:
    """Whether it can matter what lies in the work folder."""
    if result.exit_code == 0 and not result.timed_out:
        return True
    return grade_partial and result.limit is None


def classified(attempt: Attempt, limits: TaskLimits, *, grade_partial: bool) -> Classification:
    """The outcome of one attempt."""
    graded = attempt.grader is not None
    pod = local_pod_status(
        runner_exit=0 if attempt.result is not None else None,
        grader_exit=0 if graded else None,
        cancelled=attempt.cancelled,
        failure="" if attempt.cancelled else attempt.failure,
    )
    return classify(pod, attempt.result, attempt.grader, limits, grade_partial=grade_partial)
