"""One step of an object's life: what its status should say, which Job it wants next, what is to go."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from mlwright_operator.failures import Failure
from mlwright_operator.observed import SeenJob
from mlwright_operator.planning.conditions import Said
from mlwright_operator.planning.starting import STARTED

Status = TypeVar("Status")


@dataclass(frozen=True)
class Wanted(Generic[Status]):
    """A Job that does not exist as yet, and is made if admission gives it a slot."""

    attempt: int
    made: Status
    """The object's status as soon as the Job is known to exist."""
    host_users: bool = False
    cause: str = ""
    """Why there is a further attempt."""


@dataclass(frozen=True)
class Step(Generic[Status]):
    """What comes next; the same step again, as long as nothing else is seen."""

    status: Status
    """As it should be if no Job is made."""
    wanted: Wanted[Status] | None = None
    obsolete: tuple[SeenJob, ...] = ()
    """Deleted once the status is written."""
    ends: bool = False
    """This status is the result."""
    expired: bool = False
    """The object itself is deleted."""
    look_again: datetime | None = None
    """When time alone may make another step of it."""


def hindrance(failure: Failure) -> Said | None:
    """What to tell of a Job that could not be made; None where it is our own business (a conflict, a bad moment)."""
    if failure.verb != "apply" or not failure.refused:
        return None
    return Said(STARTED, False, _refusal_reason(failure), failure.message)


def _refusal_reason(failure: Failure) -> str:
    if failure.status == 404 or "because it is being terminated" in failure.message:
        return "NamespaceTerminating"
    if failure.status == 403:
        return "QuotaExceeded" if "exceeded quota" in failure.message else "Forbidden"
    return "JobRefused"
