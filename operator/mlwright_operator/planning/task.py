"""The next step of one MLTask: its volumes are there, then its own sample submission is graded by a real grader pod."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mlwright_api.base import Condition
from mlwright_api.mltask import ClaimSource, MLTaskSpec, MLTaskStatus
from mlwright_api.podstatus import GRADER, PodStatus
from mlwright_api.results import Verdict, read_grader_failure, read_grader_result

from mlwright_operator.observed import SeenClaim, SeenJob, SeenPod, SeenTask
from mlwright_operator.planning.acceptance import READY, is_ready
from mlwright_operator.planning.conditions import Said, find, merged, seconds_between
from mlwright_operator.planning.ending import is_over, over_at, pod_of
from mlwright_operator.planning.starting import begun, progress
from mlwright_operator.planning.step import Step, Wanted
from mlwright_operator.sandbox import job_name

TaskStep = Step[MLTaskStatus]

_FIRST_SECONDS = 15.0
_LONGEST_SECONDS = 600.0
"""Between the checks of a task whose sample does not grade: its data may be mended at any time."""


@dataclass(frozen=True)
class TaskAround:
    """What the next step of a task depends on, besides itself."""

    claims: Mapping[tuple[str, str], SeenClaim]
    jobs: tuple[SeenJob, ...] = ()
    pods: tuple[SeenPod, ...] = ()
    hindrance: Said | None = None


@dataclass(frozen=True)
class _Scene:
    task: SeenTask
    around: TaskAround
    now: datetime

    def said(self, ready: Said) -> MLTaskStatus:
        """The status with this for the condition Ready."""
        said = Said(READY, ready.holds, ready.reason, ready.message)
        conditions = merged(
            self.task.status.conditions, [said], generation=self.task.generation, now=self.now
        )
        return MLTaskStatus(
            digest=self.task.digest or None,
            sample_scores=self.task.status.sample_scores,
            conditions=conditions,
        )


def next_task_step(task: SeenTask, around: TaskAround, *, now: datetime) -> TaskStep | None:
    """What comes next; None for one that is going away."""
    if task.deleting:
        return None
    scene = _Scene(task, around, now)
    objection = _objection(task, around.claims)
    if objection is not None:
        return Step(scene.said(objection), obsolete=around.jobs)
    if is_ready(task):
        return Step(scene.said(_unchanged(task.status.conditions)), obsolete=around.jobs)
    return _check(scene, around.jobs[-1]) if around.jobs else _wants_check(scene, attempt=1)


def refused(task: SeenTask, problem: str, *, now: datetime) -> TaskStep:
    """Of a task that no pod can carry."""
    return Step(_Scene(task, TaskAround({}), now).said(Said(READY, False, "InvalidSpec", problem)))


def _unchanged(conditions: Iterable[Condition]) -> Said:
    ready = find(conditions, READY)
    assert ready is not None
    return Said(READY, True, ready.reason, ready.message)


def _objection(task: SeenTask, claims: Mapping[tuple[str, str], SeenClaim]) -> Said | None:
    """Why its volumes cannot be mounted, as far as the API can tell."""
    if task.spec is None:
        return Said(READY, False, "InvalidSpec", task.problem)
    if task.spec.data is None:
        return Said(READY, False, "NoData", "spec.data is required in a cluster: public and private volumes")
    for field, source in _claims(task.spec):
        claim = claims.get((task.ref.namespace, source.name))
        if (said := _claim_objection(f"spec.data.{field}.claim", source.name, claim)) is not None:
            return said
    return None


def _claims(spec: MLTaskSpec) -> Iterator[tuple[str, ClaimSource]]:
    assert spec.data is not None
    volumes = {"public": spec.data.public, "private": spec.data.private, "sealed": spec.data.sealed}
    for field, volume in volumes.items():
        if volume is not None and volume.claim is not None:
            yield field, volume.claim


def _claim_objection(field: str, name: str, claim: SeenClaim | None) -> Said | None:
    if claim is None or claim.deleting:
        return Said(READY, False, "ClaimNotFound", f"{field}: there is no PersistentVolumeClaim {name!r}")
    if not claim.allowed:
        message = (
            f"{field}: {name!r} lacks the label mlwright.dev/task-data=true, by which its owner allows it"
        )
        return Said(READY, False, "ClaimNotAllowed", message)
    if not claim.bound:
        return Said(READY, False, "ClaimNotBound", f"{field}: {name!r} is not bound to a volume")
    return None


def _wants_check(scene: _Scene, *, attempt: int, meanwhile: Said | None = None) -> TaskStep:
    name = job_name(scene.task.ref, attempt)
    checking = Said(READY, False, "Checking", f"Job {name} grades the sample submission")
    queued = Said(READY, False, "Checking", "waits for a free slot to grade the sample submission")
    if scene.around.hindrance is not None:
        return Step(scene.said(scene.around.hindrance))
    return Step(
        scene.said(meanwhile or queued),
        wanted=Wanted(attempt, scene.said(meanwhile or checking)),
        obsolete=scene.around.jobs,
    )


def _check(scene: _Scene, job: SeenJob) -> TaskStep:
    pod = pod_of(job, scene.around.pods)
    if not is_over(job, pod, now=scene.now):
        return _under_way(scene, job, pod)
    status = pod.status if pod is not None else PodStatus()
    result = read_grader_result(_message(status))
    if result is not None and result.verdict in (Verdict.VALID, Verdict.TRIVIAL) and result.scores:
        ready = scene.said(Said(READY, True, "Checked", "the sample submission grades"))
        return Step(ready.model_copy(update={"sample_scores": result.scores}), obsolete=scene.around.jobs)
    return _again_later(scene, job, _failure(status, job))


def _under_way(scene: _Scene, job: SeenJob, pod: SeenPod | None) -> TaskStep:
    before = find(scene.task.status.conditions, READY)
    said = progress(job, pod, before, container=GRADER)
    checking = said.holds or said.reason == begun(job.ref.name).reason
    if checking:
        # A check that failed before keeps its reason until this one has ended.
        failed = before is not None and before.reason not in _PASSING and job.attempt > 1
        message = f"Job {job.ref.name} grades the sample submission"
        kept = Said(READY, False, before.reason, before.message) if failed and before is not None else None
        said = kept or Said(READY, False, "Checking", message)
    return Step(scene.said(said), obsolete=scene.around.jobs[:-1], look_again=over_at(job, pod))


_PASSING = frozenset({"Checking", "ImagePullFailed", "Unschedulable", "ContainerFailed", "Checked"})
"""Reasons that are about a check, and not about what it found."""


def _again_later(scene: _Scene, job: SeenJob, failure: Said) -> TaskStep:
    """The failed check stays for as long as nothing else is tried, then makes room for the next."""
    wait = min(_FIRST_SECONDS * 2.0 ** min(job.attempt - 1, 10), _LONGEST_SECONDS)
    end = job.finished_at or job.created_at
    if job.finished and (seconds_between(end, scene.now) >= wait or end > scene.now):
        return _wants_check(scene, attempt=job.attempt + 1, meanwhile=failure)
    due = end + timedelta(seconds=wait)
    return Step(scene.said(failure), obsolete=scene.around.jobs[:-1], look_again=due)


def _failure(pod: PodStatus, job: SeenJob) -> Said:
    """What the check found, or why it could not find anything."""
    message = _message(pod)
    result = read_grader_result(message)
    if result is not None:
        reason = result.reason or f"the verdict is {result.verdict}, without a score"
        return Said(READY, False, "SampleDoesNotGrade", f"sample_submission.csv: {reason}")
    if wrong := read_grader_failure(message):
        return Said(READY, False, "AnswersWrong", wrong)
    return Said(READY, False, "CheckFailed", f"Job {job.ref.name}: {_how_it_ended(pod, job)}")


def _how_it_ended(pod: PodStatus, job: SeenJob) -> str:
    disrupted = [each.reason or "" for each in pod.conditions if each.type == "DisruptionTarget"]
    ended = pod.state(GRADER).terminated
    grader = (
        f"the grader ended with exit code {ended.exit_code} ({ended.reason})" if ended is not None else ""
    )
    return next(
        filter(None, (*disrupted, pod.message, pod.reason, grader, job.message)), "its pod was deleted"
    )


def _message(pod: PodStatus) -> str:
    state = pod.state(GRADER).terminated
    return (state.message or "") if state is not None else ""
