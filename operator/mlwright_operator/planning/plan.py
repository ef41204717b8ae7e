"""The whole plan of one pass: every object's next step, slots given out fairly, and the actions in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mlwright_api.mltask import MLTaskStatus
from mlwright_api.rollout import RolloutStatus

from mlwright_operator import labels
from mlwright_operator.actions import Apply, Kind, Ref
from mlwright_operator.config import OperatorConfig
from mlwright_operator.failures import Failures
from mlwright_operator.observed import Observed, SeenPolicy, SeenRollout, SeenRun, SeenTask
from mlwright_operator.planning.admission import Candidate, admitted
from mlwright_operator.planning.building import check_job, script_job
from mlwright_operator.planning.chain import Chain, held_back, rollout_chain, task_chain
from mlwright_operator.planning.conditions import Said
from mlwright_operator.planning.rollout import Around, next_step, refused
from mlwright_operator.planning.slots import Slots, group_of, slots_in_use
from mlwright_operator.planning.starting import STARTED
from mlwright_operator.planning.step import Step, hindrance
from mlwright_operator.planning.task import TaskAround, next_task_step
from mlwright_operator.planning.task import refused as task_refused
from mlwright_operator.sandbox import network_policy

RolloutSteps = dict[str, tuple[SeenRollout, Step[RolloutStatus]]]
TaskSteps = dict[str, tuple[SeenTask, Step[MLTaskStatus]]]


@dataclass(frozen=True)
class Plan:
    """Everything to do now."""

    policies: tuple[Chain, ...]
    """Come first; in a namespace in which one fails, no Job is made."""
    chains: tuple[Chain, ...]
    """One an object that has something to do; in any order, or at once."""
    unprotected: frozenset[str]
    """Namespaces whose policy is not as it should be."""
    look_again: datetime | None
    """When time alone may make another plan of it."""


def plan(observed: Observed, config: OperatorConfig, *, now: datetime, failures: Failures) -> Plan:
    """Pure; the same plan from the same moment, and an empty one once nothing changes any more."""
    return _Pass(observed, config, now, failures).plan()


@dataclass(frozen=True)
class _Pass:
    observed: Observed
    config: OperatorConfig
    now: datetime
    failures: Failures

    def plan(self) -> Plan:
        slots = slots_in_use(self.observed)
        rollouts, tasks = self._rollout_steps(), self._task_steps()
        candidates = [*self._candidates(rollouts, slots), *self._candidates(tasks, slots)]
        chosen = admitted(candidates, slots.by_group, self.config.admission)
        chains = [*self._rollout_chains(rollouts, chosen), *self._task_chains(tasks, chosen)]
        held = [held_back(each, self.failures.get(each.about), now=self.now) for each in chains]
        unprotected = self._unprotected({each.about.namespace for each in held if each.makes_job})
        return Plan(
            policies=tuple(self._policy_chains(unprotected)),
            chains=tuple(each for each in held if each.actions),
            unprotected=unprotected,
            look_again=min(self._moments(rollouts, tasks), default=None),
        )

    # Steps.

    def _rollout_steps(self) -> RolloutSteps:
        return {
            uid: (rollout, step)
            for uid, rollout in self.observed.rollouts.items()
            if (step := next_step(rollout, self._around(rollout), now=self.now)) is not None
        }

    def _task_steps(self) -> TaskSteps:
        return {
            task.ref.uid: (task, step)
            for task in self.observed.tasks.values()
            if (step := next_task_step(task, self._task_around(task), now=self.now)) is not None
        }

    def _around(self, rollout: SeenRollout) -> Around:
        uid, spec, run = rollout.ref.uid, rollout.spec, self._run(rollout)
        return Around(
            task=self.observed.tasks.get((rollout.ref.namespace, spec.task_ref.name)) if spec else None,
            profiles=self.config.profiles,
            jobs=self.observed.jobs.get(uid, ()),
            pods=self.observed.pods.get(uid, ()),
            run_exists=run is not None,
            suspended=run is not None and run.suspend,
            hindrance=self._hindrance(rollout),
            ttl_seconds=self.config.ttl_seconds,
        )

    def _task_around(self, task: SeenTask) -> TaskAround:
        return TaskAround(
            claims=self.observed.claims,
            jobs=self.observed.jobs.get(task.ref.uid, ()),
            pods=self.observed.pods.get(task.ref.uid, ()),
            hindrance=self._hindrance(task),
        )

    def _run(self, rollout: SeenRollout) -> SeenRun | None:
        """The run that it belongs to, if that exists; another namespace's is none of its."""
        run = self.observed.runs.get(rollout.run_uid)
        return run if run is not None and run.ref.namespace == rollout.ref.namespace else None

    def _hindrance(self, seen: SeenRollout | SeenTask) -> Said | None:
        if seen.ref.namespace in self.observed.terminating:
            return Said(STARTED, False, "NamespaceTerminating", "the namespace is going away")
        if not self.failures:
            return None
        for ref in (seen.ref, _policy_ref(seen.ref.namespace)):
            failure = self.failures.get(ref)
            if failure is not None and failure.holds(now=self.now, resource_version=seen.resource_version):
                return hindrance(failure)
        return None

    # Slots.

    def _candidates(self, steps: RolloutSteps | TaskSteps, slots: Slots) -> Iterator[Candidate]:
        for uid, (seen, step) in steps.items():
            if step.wanted is not None:
                run = self._run(seen) if isinstance(seen, SeenRollout) else None
                weight = run.weight if run is not None else 1.0
                yield Candidate(uid, group_of(seen), seen.created_at, weight, uid in slots.holders)

    # Actions.

    def _rollout_chains(self, steps: RolloutSteps, chosen: frozenset[str]) -> Iterator[Chain]:
        for uid, (rollout, step) in steps.items():
            job = self._script_job(rollout, step) if uid in chosen else None
            if isinstance(job, str):
                yield rollout_chain(rollout, refused(rollout, job, now=self.now), job=None)
            else:
                yield rollout_chain(rollout, step, job=job)

    def _task_chains(self, steps: TaskSteps, chosen: frozenset[str]) -> Iterator[Chain]:
        for uid, (task, step) in steps.items():
            wanted = step.wanted if uid in chosen else None
            job = check_job(task, self.config, attempt=wanted.attempt) if wanted is not None else None
            if isinstance(job, str):
                yield task_chain(task, task_refused(task, job, now=self.now), job=None)
            else:
                yield task_chain(task, step, job=job)

    def _script_job(self, rollout: SeenRollout, step: Step[RolloutStatus]) -> dict[str, Any] | str:
        spec, wanted = rollout.spec, step.wanted
        assert spec is not None
        assert wanted is not None
        task = self.observed.tasks[rollout.ref.namespace, spec.task_ref.name]
        profile = self.config.profiles[spec.sandbox]
        return script_job(rollout, task, profile, attempt=wanted.attempt, host_users=wanted.host_users)

    # Policies.

    def _unprotected(self, making: set[str]) -> frozenset[str]:
        """Of the namespaces with Jobs, or with Jobs to be made now: those without the policy as planned."""
        having = {jobs[0].ref.namespace for jobs in self.observed.jobs.values() if jobs}
        needing = (having - self.observed.terminating) | making
        return frozenset(each for each in needing if not _as_planned(self.observed.policies.get(each), each))

    def _policy_chains(self, namespaces: Iterable[str]) -> Iterator[Chain]:
        for namespace in sorted(namespaces):
            ref = _policy_ref(namespace)
            chain = Chain(ref, "", (Apply(Kind.NETWORK_POLICY, network_policy(namespace), ref),))
            held = held_back(chain, self.failures.get(ref), now=self.now)
            if held.actions:
                yield held

    def _moments(self, rollouts: RolloutSteps, tasks: TaskSteps) -> Iterator[datetime]:
        yield from (step.look_again for _, step in rollouts.values() if step.look_again is not None)
        yield from (step.look_again for _, step in tasks.values() if step.look_again is not None)


def _policy_ref(namespace: str) -> Ref:
    """The policy that is to be: without a uid, since it may not exist."""
    return Ref(Kind.NETWORK_POLICY, namespace, labels.POLICY_NAME, "")


def _as_planned(policy: SeenPolicy | None, namespace: str) -> bool:
    if policy is None or policy.deleting:
        return False
    planned = network_policy(namespace)["spec"]
    there = {key: value for key, value in policy.spec.items() if value}
    return _sorted_types(there) == _sorted_types(planned)


def _sorted_types(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "policyTypes": sorted(map(str, spec.get("policyTypes") or ()))}
