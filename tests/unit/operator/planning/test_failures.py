"""Backoff: from a second to half a minute, less patience for what was merely our own stale reading."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from mlwright_operator.actions import Apply, Kind, Ref, WriteStatus
from mlwright_operator.errors import ApiFailure
from mlwright_operator.failures import Failure, failed, verb_of

NOW = datetime(2026, 1, 31, tzinfo=UTC)
REF = Ref(Kind.ROLLOUT, "team", "r", "uid")
STATUS = WriteStatus(REF, {}, "1")
JOB = Apply(Kind.JOB, {}, REF)


def one(status: int = 500, *, before: Failure | None = None, action: Apply | WriteStatus = STATUS) -> Failure:
    error = ApiFailure("no", status=status, reason="Because")
    return failed(action, error, before=before, resource_version="1", now=NOW)


def wait(failure: Failure) -> float:
    return (failure.due_at - NOW).total_seconds()


def test_it_waits_twice_as_long_each_time_up_to_half_a_minute() -> None:
    waits, failure = [], None
    for _ in range(8):
        failure = one(before=failure)
        waits.append(wait(failure))
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_another_failure_begins_anew() -> None:
    assert one(403, before=one(before=one())).tries == 1
    assert one(before=one(action=JOB)).tries == 1


def test_what_the_api_server_asks_for_is_granted_within_reason() -> None:
    for asked, granted in ((5, 5), (3600, 30), (0.1, 1)):
        error = ApiFailure("slow down", status=429, retry_after=asked)
        assert wait(failed(STATUS, error, before=None, resource_version="1", now=NOW)) == granted


def test_it_holds_until_it_is_due() -> None:
    failure = one()
    assert failure.holds(now=NOW, resource_version="1")
    assert failure.holds(now=NOW, resource_version="2")
    assert not failure.holds(now=NOW + timedelta(seconds=1), resource_version="1")


def test_a_clock_that_was_set_back_holds_nothing_for_ever() -> None:
    assert not one().holds(now=NOW - timedelta(seconds=1), resource_version="1")


def test_a_conflict_is_over_as_soon_as_the_object_is_another() -> None:
    assert one(409).holds(now=NOW, resource_version="1")
    assert not one(409).holds(now=NOW, resource_version="2")


@pytest.mark.parametrize(
    ("status", "refused"), [(403, True), (422, True), (400, True), (409, False), (500, False)]
)
def test_a_refusal_is_told_from_a_bad_moment(status: int, refused: bool) -> None:
    assert one(status).refused is refused


def test_a_namespace_that_is_not_there_refuses_what_is_to_be_made_in_it() -> None:
    assert one(404, action=JOB).refused
    assert not one(404).refused


def test_every_action_has_its_verb() -> None:
    assert (verb_of(JOB), verb_of(STATUS)) == ("apply", "status")
