"""Conditions: what is said of an object, merged into what was said before."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from mlwright_api.base import Condition, ConditionStatus

MESSAGE_CHARACTERS = 1024


@dataclass(frozen=True)
class Said:
    """One condition, without its times."""

    type: str
    holds: bool
    reason: str
    message: str = ""

    @property
    def status(self) -> ConditionStatus:
        return ConditionStatus.TRUE if self.holds else ConditionStatus.FALSE


def merged(
    before: Iterable[Condition], said: Iterable[Said], *, generation: int, now: datetime
) -> list[Condition]:
    """`before` with what is said now; the transition time of each changes only with its status.

    Types that nothing is said of stay as they are; new ones come last.
    """
    known = {each.type: each for each in before}
    for each in said:
        there = known.get(each.type)
        if there is None or not _says(there, each, generation):
            known[each.type] = _updated(there, each, generation=generation, now=now)
    return list(known.values())


def _says(condition: Condition, said: Said, generation: int) -> bool:
    return (
        condition.status is said.status
        and condition.reason == said.reason
        and condition.message == said.message[:MESSAGE_CHARACTERS]
        and condition.observed_generation == generation
        and condition.last_transition_time is not None
    )


def _updated(before: Condition | None, said: Said, *, generation: int, now: datetime) -> Condition:
    changed = before is None or before.status != said.status or before.last_transition_time is None
    return Condition(
        type=said.type,
        status=said.status,
        reason=said.reason,
        message=said.message[:MESSAGE_CHARACTERS],
        observed_generation=generation,
        last_transition_time=whole_second(now) if changed or before is None else before.last_transition_time,
    )


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of a type."""
    return next((each for each in conditions if each.type == type), None)


def is_true(conditions: Iterable[Condition], type: str) -> bool:
    """Whether it is there and True."""
    found = find(conditions, type)
    return found is not None and found.status is ConditionStatus.TRUE


def whole_second(moment: datetime) -> datetime:
    """As Kubernetes writes times."""
    return moment.astimezone(UTC).replace(microsecond=0)


def seconds_between(start: datetime | None, end: datetime | None) -> float:
    """Never negative; 0 where either is unknown. Times without a zone are UTC."""
    if start is None or end is None:
        return 0.0
    return max((_aware(end) - _aware(start)).total_seconds(), 0.0)


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
