"""What people are told in Events: only what is a problem or its end, and only when it changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mlwright_api.base import Condition, ConditionStatus

from mlwright_operator.actions import Emit, Ref
from mlwright_operator.planning.conditions import find

_ORDINARY = frozenset({"Queued", "Suspended", "Creating", "Checking"})
"""Reasons of what is not so as yet, and need not worry anybody."""
_BAD_ENDS = frozenset({"InfrastructureFailed", "Tampered"})


def events(
    about: Ref, before: Sequence[Condition], after: Iterable[Condition], *, cause: str = ""
) -> Iterator[Emit]:
    """One for each condition that has become a problem (or a task's Ready), and one for a further attempt."""
    if cause:
        yield Emit(about, "Warning", "Retried", f"the same script is run again: {cause}"[:1024])
    if after is before:
        return
    for condition in after:
        known = find(before, condition.type)
        if known is None or (known.status, known.reason) != (condition.status, condition.reason):
            yield from _told(about, condition)


def _told(about: Ref, condition: Condition) -> Iterator[Emit]:
    message = f"{condition.type}: {condition.message}"[:1024]
    if _is_problem(condition):
        yield Emit(about, "Warning", condition.reason, message)
    elif condition.type == "Ready" and condition.status is ConditionStatus.TRUE:
        yield Emit(about, "Normal", condition.reason, message)


def _is_problem(condition: Condition) -> bool:
    if condition.status is ConditionStatus.FALSE:
        return condition.reason not in _ORDINARY
    return condition.type == "Finished" and condition.reason in _BAD_ENDS
