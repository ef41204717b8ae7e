"""What a live Rollout says: whether it has ended, how, when its script started, what it waits for. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_sandbox.backend import Finished
from pydantic import ValidationError

from mlwright_trainer.cluster.errors import ClusterUnavailable
from mlwright_trainer.cluster.port import Object

HOPELESS = frozenset({"TaskNotFound", "TaskChanged", "LimitsAboveTask", "UnknownSandbox", "InvalidSpec"})
"""Reasons of Accepted=False that stay until somebody changes something."""
DELETED = "Deleted: the Rollout was deleted by somebody else before it had ended"
_REASON_CHARACTERS = 1024


def name_of(live: Object) -> str:
    name: str = live["metadata"]["name"]
    return name


def uid_of(live: Object) -> str:
    uid: str = live["metadata"]["uid"]
    return uid


def version_of(live: Object) -> str:
    """Its resourceVersion."""
    version: str = live["metadata"]["resourceVersion"]
    return version


def going(live: Object) -> bool:
    """It is being deleted."""
    return live["metadata"].get("deletionTimestamp") is not None


def ended(live: Object) -> bool:
    """It has an outcome, which is final."""
    return bool(_status(live).get("outcome"))


def condition(live: Object, type: str) -> Mapping[str, Any] | None:
    """One of its conditions."""
    conditions = _status(live).get("conditions") or []
    return next((each for each in conditions if each.get("type") == type), None)


def refusal(live: Object) -> str | None:
    """Why the operator will not run it as it is, where it said so."""
    accepted = condition(live, "Accepted")
    if accepted is None or accepted.get("status") != "False" or accepted.get("reason") not in HOPELESS:
        return None
    return said(accepted)


def waits_for(live: Object) -> str:
    """How far it is, in one line: `Queued`, `ImagePullFailed: ...`, `Running`; empty where nobody has said yet."""
    accepted, started = condition(live, "Accepted"), condition(live, "Started")
    telling = accepted if accepted is not None and accepted.get("status") == "False" else started
    if telling is None:
        return ""
    attempt = _status(live).get("attempt") or 0
    return said(telling) + (f" (attempt {attempt})" if attempt > 1 else "")


def finished(rollout: str, live: Object) -> Finished:
    """The result of a rollout that has ended. Errors: ClusterUnavailable if its status cannot be understood."""
    try:
        # What a later operator adds is none of ours.
        status = RolloutStatus.model_validate(_status(live), extra="ignore")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ClusterUnavailable(
            f"Rollout {name_of(live)}: status.{where}: {first['msg']}; operator and trainer are of versions that "
            "do not fit together"
        ) from error
    return Finished(rollout, status, started_at=started_at(live, status))


def started_at(live: Object, status: RolloutStatus) -> float:
    """Unix time of the script's start (of the attempt that counts), good to a second.

    As the accounted seconds have it; else when Started became True, which may have been at an earlier attempt.
    """
    created = unix_time(live["metadata"]["creationTimestamp"])
    since = running_since(live)
    if status.seconds.starting or since is None:
        return created + status.seconds.queued + status.seconds.starting
    return since


def running_since(live: Object) -> float | None:
    """Unix time at which its condition Started became True, to the second; None if it is not."""
    started = condition(live, "Started") or {}
    if started.get("status") != "True" or not started.get("lastTransitionTime"):
        return None
    return unix_time(started["lastTransitionTime"])


def unix_time(text: str) -> float:
    """Of a time as the API writes it."""
    return datetime.fromisoformat(text).timestamp()


def gone(rollout: str, *, now: float) -> Finished:
    """The result of a rollout whose object somebody else deleted before it had one."""
    status = RolloutStatus(outcome=Outcome.INFRASTRUCTURE_FAILED, reason=DELETED)
    return Finished(rollout, status, started_at=now)


def cancelled(rollout: str, *, now: float) -> Finished:
    """The result of a rollout that we ended; `now` is the script's start, where there was one."""
    return Finished(rollout, RolloutStatus(outcome=Outcome.CANCELLED, reason="Cancelled"), started_at=now)


def _status(live: Object) -> Mapping[str, Any]:
    return live.get("status") or {}


def said(condition: Mapping[str, Any]) -> str:
    """A condition's reason and message, in one line."""
    parts = [str(condition.get("reason") or ""), " ".join(str(condition.get("message") or "").split())]
    return ": ".join(part for part in parts if part)[:_REASON_CHARACTERS]
