"""The next free slot goes to the group with the fewest sandboxes per weight, within it to the oldest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from mlwright_operator.config import AdmissionLimits
from mlwright_operator.planning.admission import Candidate, Group, admitted

START = datetime(2026, 1, 31, tzinfo=UTC)


def group(name: str) -> Group:
    return Group("run", name)


def candidate(
    uid: str, run: str = "a", *, age: int = 0, weight: float = 1.0, holds: bool = False
) -> Candidate:
    return Candidate(uid, group(run), START - timedelta(seconds=age), weight, holds)


def admit(*candidates: Candidate, total: int = 100, each: int = 100, **holding: int) -> set[str]:
    limits = AdmissionLimits(sandboxes=total, sandboxes_per_run=each)
    return set(admitted(candidates, {group(name): count for name, count in holding.items()}, limits))


def test_with_room_for_all_everybody_gets_in() -> None:
    assert admit(candidate("1"), candidate("2", "b")) == {"1", "2"}


def test_within_a_run_the_oldest_comes_first() -> None:
    assert admit(candidate("young", age=1), candidate("old", age=9), candidate("mid", age=5), total=2) == {
        "old",
        "mid",
    }


def test_the_run_with_fewer_sandboxes_comes_first_however_young() -> None:
    assert admit(candidate("1", "a", age=99), candidate("2", "b"), total=4, a=2, b=1) == {"2"}


def test_slots_are_dealt_out_in_turn() -> None:
    waiting = [candidate(f"{run}{n}", run, age=n) for run in "ab" for n in range(10)]
    got = admit(*waiting, total=6)
    assert sum(uid.startswith("a") for uid in got) == 3


def test_a_run_of_twice_the_weight_gets_twice_the_slots() -> None:
    waiting = [candidate(f"{run}{n}", run, weight=2 if run == "a" else 1) for run in "ab" for n in range(10)]
    got = admit(*waiting, total=9)
    assert sum(uid.startswith("a") for uid in got) == 6


def test_no_run_gets_more_than_the_limit_of_one_run() -> None:
    waiting = [candidate(f"a{n}", "a") for n in range(5)]
    assert len(admit(*waiting, candidate("b", "b"), each=2)) == 3
    assert admit(*waiting, each=2, a=2) == set()


def test_what_a_run_may_not_have_goes_to_the_next() -> None:
    waiting = [candidate(f"{run}{n}", run) for run in "ab" for n in range(5)]
    assert len(admit(*waiting, total=6, each=5, a=5)) == 1


def test_beyond_the_limit_nobody_gets_in() -> None:
    assert admit(candidate("1"), total=3, b=3) == set()
    assert admit(candidate("1"), total=3, b=5) == set()


def test_a_further_attempt_has_its_slot_already() -> None:
    assert admit(candidate("again", holds=True), candidate("new"), total=1, a=1) == {"again"}


def test_equals_are_told_apart_by_age_and_then_by_name() -> None:
    assert admit(candidate("2", "b"), candidate("1", "a"), total=1) == {"1"}
    assert admit(candidate("2", "b", age=1), candidate("1", "a"), total=1) == {"2"}
