"""From the verdict on an attempt, and what its runner and grader said, to the status of the rollout: pure."""

from __future__ import annotations

from mlwright_api.classify import Classification
from mlwright_api.results import GraderResult, RunnerReport, RunnerResult, Unfinished
from mlwright_api.rollout import RolloutSeconds, RolloutStatus


def concluded(
    verdict: Classification,
    runner: RunnerReport,
    grader: GraderResult | None,
    *,
    attempt: int,
    queued_seconds: float = 0,
) -> RolloutStatus:
    """The status of a rollout whose attempt `attempt` counts; scores only of a valid submission."""
    bare = RolloutStatus(
        attempt=attempt,
        outcome=verdict.outcome,
        reason=verdict.reason,
        scores=dict(grader.scores) if grader is not None and verdict.outcome.valid else {},
        seconds=_seconds(runner, grader, queued=queued_seconds),
    )
    return bare.model_copy(update=_account(runner))


def _seconds(runner: RunnerReport, grader: GraderResult | None, *, queued: float) -> RolloutSeconds:
    if not isinstance(runner, RunnerResult):
        return RolloutSeconds(queued=queued)
    return RolloutSeconds(
        queued=queued,
        starting=runner.starting_seconds,
        execution=runner.execution_seconds,
        cpu=runner.cpu_seconds,
        grading=grader.grading_seconds if grader is not None else 0.0,
    )


def _account(runner: RunnerReport) -> dict[str, object]:
    """What the runner says that is kept as it is; also of one that died on the way."""
    if isinstance(runner, Unfinished):
        return {"milestones": runner.milestones, "output_tail": runner.output_tail}
    if not isinstance(runner, RunnerResult):
        return {}
    return {
        "milestones": runner.milestones,
        "exit_code": runner.exit_code,
        "output_tail": runner.output_tail,
        "isolation": runner.isolation,
    }
