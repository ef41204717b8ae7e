"""Actions in the order in which they must happen: what follows one that failed does not happen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskStatus
from mlwright_api.rollout import RolloutStatus

from mlwright_operator.actions import Action, Apply, Delete, Kind, Ref, WriteStatus
from mlwright_operator.failures import Failure, verb_of
from mlwright_operator.observed import SeenJob, SeenRollout, SeenTask
from mlwright_operator.planning.step import Step
from mlwright_operator.planning.telling import events

AnyStatus = RolloutStatus | MLTaskStatus


@dataclass(frozen=True)
class Chain:
    """On behalf of one object; each action only after the one before has succeeded."""

    about: Ref
    resource_version: str
    """Of the object as it was read."""
    actions: tuple[Action, ...]
    result: RolloutStatus | None = None
    """What a Rollout has come to, if the chain's status write is its last."""

    @property
    def makes_job(self) -> bool:
        return any(isinstance(each, Apply) and each.kind is Kind.JOB for each in self.actions)


def rollout_chain(rollout: SeenRollout, step: Step[RolloutStatus], *, job: dict[str, Any] | None) -> Chain:
    """Job first, then the number of its attempt; a result first, then its Job's end; Events last.

    `job`: the one that was wanted, if it may be made now.
    """
    making = job is not None and step.wanted is not None
    status = step.wanted.made if making and step.wanted is not None else step.status
    obsolete = step.obsolete if making or step.wanted is None else ()
    cause = step.wanted.cause if making and step.wanted is not None else ""
    actions = [
        *_made(rollout.ref, job),
        *_written(rollout, rollout.status, status),
        *_deleted(obsolete),
        *([Delete(rollout.ref)] if step.expired else []),
        *events(rollout.ref, rollout.status.conditions, status.conditions, cause=cause),
    ]
    return Chain(rollout.ref, rollout.resource_version, tuple(actions), status if step.ends else None)


def task_chain(task: SeenTask, step: Step[MLTaskStatus], *, job: dict[str, Any] | None) -> Chain:
    """As rollout_chain."""
    making = job is not None and step.wanted is not None
    status = step.wanted.made if making and step.wanted is not None else step.status
    obsolete = step.obsolete if making or step.wanted is None else ()
    actions = [
        *_made(task.ref, job),
        *_written(task, task.status, status),
        *_deleted(obsolete),
        *events(task.ref, task.status.conditions, status.conditions),
    ]
    return Chain(task.ref, task.resource_version, tuple(actions))


def held_back(chain: Chain, failure: Failure | None, *, now: datetime) -> Chain:
    """The chain up to what failed lately, if that is to be left alone for now."""
    if failure is None or not failure.holds(now=now, resource_version=chain.resource_version):
        return chain
    actions = tuple(takewhile(lambda each: verb_of(each) != failure.verb, chain.actions))
    return Chain(chain.about, chain.resource_version, actions, chain.result)


def _made(owner: Ref, job: dict[str, Any] | None) -> Iterator[Action]:
    if job is not None:
        yield Apply(Kind.JOB, job, owner)


def _written(seen: SeenRollout | SeenTask, before: AnyStatus, after: AnyStatus) -> Iterator[Action]:
    if after is not before and after != before:
        yield WriteStatus(seen.ref, _wired(after), seen.resource_version)


def _wired(status: AnyStatus) -> dict[str, Any]:
    """In wire form; the number of attempts also where there was none."""
    counted = {"attempt": status.attempt} if isinstance(status, RolloutStatus) else {}
    return wire(status, defaults=False) | counted


def _deleted(jobs: Iterable[SeenJob]) -> Iterator[Action]:
    return (Delete(job.ref) for job in jobs if not job.deleting)
