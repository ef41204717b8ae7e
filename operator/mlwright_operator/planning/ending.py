"""How an attempt ended: from its Job and pod to a verdict, and to what the Rollout's status says of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from mlwright_api.classify import Classification, classify
from mlwright_api.conclusion import concluded
from mlwright_api.mltask import TaskLimits
from mlwright_api.podstatus import AGENT, GRADER, PodStatus
from mlwright_api.results import Receipt, RunnerResult, read_grader_result, read_runner_result
from mlwright_api.rollout import Outcome, RolloutSpec, RolloutStatus

from mlwright_operator.observed import SeenJob, SeenPod, SeenRollout
from mlwright_operator.planning.conditions import Said, seconds_between

LOST_SECONDS = 60
"""After its grace period, a pod that is being deleted and still does not end is on a node that does not answer."""
UNSEEN_SECONDS = 20
"""After the end of its Job, a pod that is not there is not merely unseen as yet."""
_RESOLUTION_SECONDS = 1.0
"""Of the kubelet's stamps."""
POD_CHANGED = "PodChanged"


@dataclass(frozen=True)
class End:
    """Of one attempt; `status` has no conditions."""

    verdict: Classification
    status: RolloutStatus
    isolation: Receipt | None = None


def pod_of(job: SeenJob, pods: Sequence[SeenPod]) -> SeenPod | None:
    """The pod that counts: one that has ended, if there are several."""
    own = [each for each in pods if each.job_uid == job.ref.uid]
    return next((each for each in own if each.over), own[0] if own else None)


def is_over(job: SeenJob, pod: SeenPod | None, *, now: datetime) -> bool:
    """Whether nothing of an attempt runs any more, or ever will be heard of."""
    end = over_at(job, pod)
    return (pod is not None and pod.over) or (end is not None and now >= end)


def over_at(job: SeenJob, pod: SeenPod | None) -> datetime | None:
    """When an attempt whose pod says nothing more is given up, if it is as far as that."""
    if pod is not None:
        return pod_end(pod)
    if not job.finished:
        return None
    return (job.finished_at or job.created_at) + timedelta(seconds=UNSEEN_SECONDS)


def pod_end(pod: SeenPod) -> datetime | None:
    """When a pod that is being deleted has ended for us, whatever its node says or does not say."""
    return pod.delete_by + timedelta(seconds=LOST_SECONDS) if pod.delete_by is not None else None


def ended(
    rollout: SeenRollout, spec: RolloutSpec, job: SeenJob, pod: SeenPod | None, *, limits: TaskLimits
) -> End:
    """The verdict on an attempt that is over, and the status that follows from it if it is the last."""
    if pod is None:
        reason = f"PodLost: {job.message or 'its pod was deleted'}"
        return _without_result(Classification(Outcome.INFRASTRUCTURE_FAILED, reason), job.attempt)
    runner = read_runner_result(_message(pod.status, AGENT))
    grader = read_grader_result(_message(pod.status, GRADER))
    verdict = classify(pod.status, runner, grader, limits, grade_partial=spec.grade_partial)
    if not pod.over:
        verdict = Classification(Outcome.INFRASTRUCTURE_FAILED, _lost_reason(verdict))
    queued = seconds_between(rollout.created_at, job.created_at)
    status = concluded(verdict, runner, grader, attempt=job.attempt, queued_seconds=queued)
    receipt = runner.isolation if isinstance(runner, RunnerResult) else None
    return End(verdict, _clocked(status, job, pod), receipt)


def _lost_reason(verdict: Classification) -> str:
    said = verdict.reason if verdict.outcome is Outcome.INFRASTRUCTURE_FAILED else ""
    return f"NodeLost: its pod was deleted and has not ended {LOST_SECONDS} s later ({said})".replace(
        " ()", ""
    )


def deleted_by_hand(attempt: int) -> End:
    """Of an attempt whose Job is gone."""
    reason = f"JobDeleted: the Job of attempt {attempt} was deleted before it had a result"
    return _without_result(Classification(Outcome.INFRASTRUCTURE_FAILED, reason), attempt)


def pod_changed(job: SeenJob, changes: Sequence[str]) -> End:
    """Of an attempt whose pod is not the one that was sent: nothing it says is believed."""
    reason = f"{POD_CHANGED}: {', '.join(changes)}"
    return _without_result(Classification(Outcome.INFRASTRUCTURE_FAILED, reason[:512]), job.attempt)


def _without_result(verdict: Classification, attempt: int) -> End:
    return End(verdict, concluded(verdict, None, None, attempt=attempt))


def _message(pod: PodStatus, container: str) -> str:
    state = pod.state(container).terminated
    return (state.message or "") if state is not None else ""


def _clocked(status: RolloutStatus, job: SeenJob, pod: SeenPod) -> RolloutStatus:
    """With the seconds that only the cluster knows, and execution no longer than the container lived."""
    agent = pod.status.state(AGENT).terminated
    if agent is None or agent.started_at is None:
        return status
    before = seconds_between(job.created_at, agent.started_at)
    lived = seconds_between(agent.started_at, agent.finished_at) + _RESOLUTION_SECONDS
    seconds = status.seconds.model_copy(
        update={
            "starting": round(before + status.seconds.starting, 3),
            "execution": min(status.seconds.execution, lived)
            if agent.finished_at
            else status.seconds.execution,
        }
    )
    return status.model_copy(update={"seconds": seconds})


def isolation_said(receipt: Receipt) -> Said:
    """The condition Isolated: whether every check of the receipt held in the locked child."""
    if receipt.isolated:
        return Said("Isolated", True, "ChecksHeld", f"{len(receipt.checks)} checks held")
    broken = [check.name for check in receipt.checks if not check.locked]
    return Said(
        "Isolated", False, "ChecksFailed", f"not prevented: {', '.join(broken) or 'nothing was checked'}"
    )
