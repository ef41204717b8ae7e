"""Conditions: times that change only with the status, and nothing else that moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mlwright_api.base import Condition, ConditionStatus
from mlwright_operator.planning.conditions import Said, find, is_true, merged, seconds_between

NOW = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)


def one(*said: Said, before: list[Condition] | None = None, now: datetime = NOW) -> list[Condition]:
    return merged(before or [], said, generation=1, now=now)


def test_a_new_condition_is_stamped_to_the_second() -> None:
    (made,) = one(Said("Ready", True, "Checked"))
    assert made.last_transition_time == NOW.replace(microsecond=0)
    assert made.observed_generation == 1


def test_the_same_again_is_the_same_object() -> None:
    before = one(Said("Ready", True, "Checked"))
    assert one(Said("Ready", True, "Checked"), before=before, now=LATER)[0] is before[0]


def test_another_reason_is_no_transition() -> None:
    before = one(Said("Ready", False, "NoData"))
    (after,) = one(Said("Ready", False, "Checking", "words"), before=before, now=LATER)
    assert (after.reason, after.message) == ("Checking", "words")
    assert after.last_transition_time == before[0].last_transition_time


def test_another_status_is_a_transition() -> None:
    before = one(Said("Ready", False, "NoData"))
    (after,) = one(Said("Ready", True, "Checked"), before=before, now=LATER)
    assert after.last_transition_time == LATER.replace(microsecond=0)


def test_what_nothing_is_said_of_stays_in_its_place() -> None:
    before = one(Said("A", True, "Yes"), Said("B", True, "Yes"))
    after = one(Said("C", True, "Yes"), Said("A", False, "No"), before=before)
    assert [(each.type, each.status.value) for each in after] == [
        ("A", "False"),
        ("B", "True"),
        ("C", "True"),
    ]


def test_messages_are_bounded() -> None:
    (made,) = one(Said("Ready", False, "Bad", "x" * 5000))
    assert len(made.message) == 1024
    assert one(Said("Ready", False, "Bad", "x" * 5000), before=[made])[0] is made


def test_a_condition_is_found_by_its_type() -> None:
    said = one(Said("A", True, "Yes"), Said("B", False, "No"))
    assert find(said, "B") is said[1]
    assert find(said, "C") is None
    assert (is_true(said, "A"), is_true(said, "B"), is_true(said, "C")) == (True, False, False)


def test_an_unknown_condition_is_not_true() -> None:
    assert not is_true([Condition(type="A", status=ConditionStatus.UNKNOWN, reason="Who")], "A")


def test_seconds_are_never_negative_and_know_no_time_zone_trouble() -> None:
    assert seconds_between(NOW, LATER) == 60
    assert seconds_between(LATER, NOW) == 0
    assert seconds_between(NOW.replace(tzinfo=None), LATER) == 60
    assert seconds_between(None, NOW) == 0
    assert seconds_between(NOW, None) == 0
