"""What the API server did not do for us, as values: until when we leave it alone, and what to tell of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from mlwright_operator.actions import Action, Apply, Delete, Emit, Ref, WriteStatus
from mlwright_operator.errors import ApiFailure

Verb = Literal["apply", "status", "delete", "emit"]

_FIRST_SECONDS = 1.0
_LONGEST_SECONDS = 30.0


@dataclass(frozen=True)
class Failure:
    """The last thing that failed on behalf of one object, and how often it has in a row."""

    verb: Verb
    status: int
    reason: str
    message: str
    tries: int
    at: datetime
    resource_version: str
    """Of the object when it failed: a newer one deserves another try at once, if all that was wrong was our reading."""
    asked_seconds: float = 0
    """That the API server asked us to wait."""

    @property
    def refused(self) -> bool:
        """It will be refused again until somebody changes something."""
        return self.status in (400, 403, 422) or (self.status == 404 and self.verb == "apply")

    @property
    def due_at(self) -> datetime:
        """When it is tried again."""
        backoff = min(_FIRST_SECONDS * 2.0 ** min(self.tries - 1, 10), _LONGEST_SECONDS)
        return self.at + timedelta(seconds=max(backoff, min(self.asked_seconds, _LONGEST_SECONDS)))

    def holds(self, *, now: datetime, resource_version: str) -> bool:
        """Whether to leave it for now. A clock that was set back holds nothing."""
        if self.status == 409 and resource_version != self.resource_version:
            return False
        return self.at <= now < self.due_at


Failures = Mapping[Ref, Failure]
"""By the object on whose behalf something failed."""


def verb_of(action: Action) -> Verb:
    """Which of the four things it is."""
    match action:
        case Apply():
            return "apply"
        case WriteStatus():
            return "status"
        case Delete():
            return "delete"
        case Emit():
            return "emit"


def failed(
    action: Action, error: ApiFailure, *, before: Failure | None, resource_version: str, now: datetime
) -> Failure:
    """The failure that follows `before` (of the same object)."""
    verb = verb_of(action)
    again = before is not None and (before.verb, before.status) == (verb, error.status)
    return Failure(
        verb=verb,
        status=error.status,
        reason=error.reason,
        message=str(error),
        tries=before.tries + 1 if again and before is not None else 1,
        at=now,
        resource_version=resource_version,
        asked_seconds=error.retry_after or 0,
    )
