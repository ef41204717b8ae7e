"""The next step of one Rollout, from what is seen of it: see the package's docstring for its whole life."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from mlwright_api.mltask import TaskLimits
from mlwright_api.podstatus import AGENT
from mlwright_api.rollout import RolloutSpec, RolloutStatus

from mlwright_operator.config import SandboxProfile
from mlwright_operator.observed import SeenJob, SeenPod, SeenRollout, SeenTask
from mlwright_operator.planning.acceptance import accepted, invalid
from mlwright_operator.planning.conditions import Said, find, is_true, merged
from mlwright_operator.planning.ending import (
    End,
    deleted_by_hand,
    ended,
    is_over,
    isolation_said,
    over_at,
    pod_changed,
    pod_end,
    pod_of,
)
from mlwright_operator.planning.sameness import differences
from mlwright_operator.planning.starting import STARTED, begun, lacks_user_namespaces, progress
from mlwright_operator.planning.step import Step, Wanted
from mlwright_operator.sandbox import job_name, limits_of

FINISHED = "Finished"
USER_NAMESPACES = "UserNamespaces"
RolloutStep = Step[RolloutStatus]


@dataclass(frozen=True)
class Around:
    """What the next step of a Rollout depends on, besides itself."""

    task: SeenTask | None
    profiles: Mapping[str, SandboxProfile]
    jobs: tuple[SeenJob, ...] = ()
    """Its own, in order of attempt."""
    pods: tuple[SeenPod, ...] = ()
    run_exists: bool = False
    """The object that its runRef names."""
    suspended: bool = False
    hindrance: Said | None = None
    """Why no Job can be made for it now."""
    ttl_seconds: float = 3600


@dataclass(frozen=True)
class _Scene:
    """A Rollout in its surroundings, at a moment."""

    rollout: SeenRollout
    spec: RolloutSpec
    around: Around
    now: datetime

    @property
    def status(self) -> RolloutStatus:
        return self.rollout.status

    @property
    def job(self) -> SeenJob | None:
        """Of the last attempt; what a stale plan made again of an earlier one does not count."""
        return next((job for job in reversed(self.around.jobs) if job.attempt >= self.status.attempt), None)

    @property
    def profile(self) -> SandboxProfile | None:
        return self.around.profiles.get(self.spec.sandbox)

    @property
    def user_namespaces_optional(self) -> bool:
        return self.profile is not None and self.profile.user_namespaces == "WhenSupported"

    def said(self, *said: Said, **changes: object) -> RolloutStatus:
        """The status with these conditions and fields."""
        known = self.status.conditions
        conditions = merged(known, said, generation=self.rollout.generation, now=self.now)
        if conditions == known and all(getattr(self.status, name) == new for name, new in changes.items()):
            return self.status
        return self.status.model_copy(update={"conditions": conditions, **changes})


def next_step(rollout: SeenRollout, around: Around, *, now: datetime) -> RolloutStep | None:
    """What comes next; None where there is nothing to do for it, and nothing to wait for."""
    if rollout.deleting:
        return None
    if rollout.ended:
        return _after_the_end(rollout, around, now)
    if rollout.spec is None:
        return refused(rollout, rollout.problem, now=now)
    scene = _Scene(rollout, rollout.spec, around, now)
    if scene.job is not None:
        return _with_job(scene, scene.job)
    if rollout.status.attempt == 0:
        return _wants(scene, attempt=1)
    return _without_its_job(scene)


def _without_its_job(scene: _Scene) -> RolloutStep:
    """Somebody deleted it; what is left of its pod comes to its end first."""
    ends = [pod_end(pod) for pod in scene.around.pods if not pod.over]
    pending = [end for end in ends if end is None or end > scene.now]
    if pending:
        moments = [end for end in pending if end is not None]
        return Step(scene.status, obsolete=scene.around.jobs, look_again=min(moments, default=None))
    return _after_attempt(scene, deleted_by_hand(scene.status.attempt))


def _after_the_end(rollout: SeenRollout, around: Around, now: datetime) -> RolloutStep:
    """Its Jobs go; and it goes too, where nobody is left to read it."""
    finished = find(rollout.status.conditions, FINISHED)
    if around.run_exists or finished is None or finished.last_transition_time is None or around.jobs:
        return Step(rollout.status, obsolete=around.jobs)
    expiry = finished.last_transition_time + timedelta(seconds=around.ttl_seconds)
    return Step(rollout.status, expired=now >= expiry, look_again=expiry)


def _with_job(scene: _Scene, job: SeenJob) -> RolloutStep:
    pod = pod_of(job, scene.around.pods)
    if is_over(job, pod, now=scene.now):
        return _judged(scene, job, pod)
    before = find(scene.status.conditions, STARTED)
    said = progress(job, pod, before, container=AGENT)
    moved = before is None or (before.status, before.reason) != (said.status, said.reason)
    if pod is not None and moved and (step := _not_as_sent(scene, job, pod)) is not None:
        return step
    others = tuple(each for each in scene.around.jobs if each is not job)
    # A pod that has just gone leaves what was said of it, until its Job says how it ended.
    gone = pod is None and job.attempt == scene.status.attempt and is_true(scene.status.conditions, STARTED)
    status = scene.status if gone else scene.said(said, *_sharing(scene, job), attempt=job.attempt)
    return Step(status, obsolete=others, look_again=over_at(job, pod))


def _sharing(scene: _Scene, job: SeenJob) -> list[Said]:
    """The fallback as the Job shows it, in case that its status write was lost."""
    known = find(scene.status.conditions, USER_NAMESPACES) is not None
    shares = scene.user_namespaces_optional and job.template.get("spec", {}).get("hostUsers") is True
    return [] if known or not shares else [_no_user_namespace("the attempt before could not have one")]


def _judged(scene: _Scene, job: SeenJob, pod: SeenPod | None) -> RolloutStep:
    """An attempt that is over."""
    if pod is not None and (step := _not_as_sent(scene, job, pod)) is not None:
        return step
    return _after_attempt(scene, ended(scene.rollout, scene.spec, job, pod, limits=_limits(scene, job)))


def _limits(scene: _Scene, job: SeenJob) -> TaskLimits:
    """Those that the attempt ran under, whatever has become of the task since."""
    task = scene.around.task
    if job.limits is not None:
        return job.limits
    return limits_of(scene.spec, task.spec) if task is not None and task.spec is not None else TaskLimits()


def _not_as_sent(scene: _Scene, job: SeenJob, pod: SeenPod) -> RolloutStep | None:
    """What follows if the pod is not the one that was asked for; None where it is."""
    optional = scene.user_namespaces_optional
    changes = differences(scene.rollout, scene.around.task, scene.profile, job, pod)
    lacking = lacks_user_namespaces(pod)
    if optional and changes.lacks_user_namespace:
        return _without_user_namespaces(scene, job, "the API server left hostUsers out")
    if changes.found:
        return _last(scene, pod_changed(job, changes.found))
    return _without_user_namespaces(scene, job, lacking) if optional and lacking is not None else None


def _without_user_namespaces(scene: _Scene, job: SeenJob, why: str) -> RolloutStep:
    """The fallback of profiles with WhenSupported: one more attempt, and said so."""
    cause, said = f"NoUserNamespaces: {why}", _no_user_namespace(why)
    return _wants(scene, attempt=job.attempt + 1, host_users=True, cause=cause, also=said)


def _no_user_namespace(why: str) -> Said:
    return Said(USER_NAMESPACES, False, "NotSupported", f"run without a user namespace of its own: {why}")


def _after_attempt(scene: _Scene, end: End) -> RolloutStep:
    """Another attempt of the same script, or the result."""
    attempt = end.status.attempt
    fallback = 0 if find(scene.status.conditions, USER_NAMESPACES) is None else 1
    if end.verdict.rerun and attempt < 1 + scene.spec.infrastructure_retries + fallback:
        return _wants(scene, attempt=attempt + 1, cause=end.verdict.reason)
    return _last(scene, end)


def _last(scene: _Scene, end: End) -> RolloutStep:
    outcome = end.verdict.outcome
    said = [Said(FINISHED, True, outcome.value, end.verdict.reason)]
    if end.isolation is not None:
        said.append(isolation_said(end.isolation))
    result = {name: getattr(end.status, name) for name in end.status.model_fields_set}
    return Step(scene.said(*said, **result), obsolete=scene.around.jobs, ends=True)


def _wants(
    scene: _Scene, *, attempt: int, host_users: bool | None = None, cause: str = "", also: Said | None = None
) -> RolloutStep:
    """A Job, if it can have one now."""
    verdict = accepted(scene.spec, scene.around.task, scene.around.profiles)
    if not verdict.holds:
        return Step(scene.said(verdict))
    if scene.around.hindrance is not None:
        return Step(scene.said(verdict, scene.around.hindrance))
    if scene.around.suspended:
        return Step(scene.said(verdict, Said(STARTED, False, "Suspended", "the run is suspended")))
    queued = Said(STARTED, False, "Queued", "waits for a free slot")
    started = begun(job_name(scene.rollout.ref, attempt))
    more = [] if also is None else [also]
    shared = host_users if host_users is not None else _fell_back(scene.status)
    return Step(
        scene.said(verdict, queued),
        wanted=Wanted(attempt, scene.said(verdict, started, *more, attempt=attempt), shared, cause),
        obsolete=scene.around.jobs,
    )


def _fell_back(status: RolloutStatus) -> bool:
    known = find(status.conditions, USER_NAMESPACES)
    return known is not None and not is_true([known], USER_NAMESPACES)


def refused(rollout: SeenRollout, problem: str, *, now: datetime) -> RolloutStep:
    """Of a Rollout that is none, or whose files no pod can carry."""
    said = merged(rollout.status.conditions, [invalid(problem)], generation=rollout.generation, now=now)
    return Step(rollout.status.model_copy(update={"conditions": said}))
