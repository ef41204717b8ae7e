"""Admission, whatever waits and whatever runs: never too much, never idle, never unfair."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from mlwright_operator.config import AdmissionLimits
from mlwright_operator.planning.admission import Candidate, Group, admitted

START = datetime(2026, 1, 31, tzinfo=UTC)
GROUPS = [Group("run", name) for name in "abcd"]
WEIGHTS = st.fixed_dictionaries({group: st.sampled_from([0.5, 1.0, 2.0, 7.0]) for group in GROUPS})
HOLDING = st.dictionaries(st.sampled_from(GROUPS), st.integers(0, 6))
LIMITS = st.builds(AdmissionLimits, sandboxes=st.integers(1, 20), sandboxes_per_run=st.integers(1, 8))
WAITING = st.lists(st.tuples(st.sampled_from(GROUPS), st.integers(0, 100)), max_size=30)


def candidates(waiting: list[tuple[Group, int]], weights: dict[Group, float]) -> list[Candidate]:
    return [
        Candidate(f"{number:03}", group, START - timedelta(seconds=age), weights[group])
        for number, (group, age) in enumerate(waiting)
    ]


@given(waiting=WAITING, weights=WEIGHTS, holding=HOLDING, limits=LIMITS)
def test_limits_hold_and_no_slot_is_left_that_somebody_could_have(
    waiting: list[tuple[Group, int]],
    weights: dict[Group, float],
    holding: dict[Group, int],
    limits: AdmissionLimits,
) -> None:
    everybody = candidates(waiting, weights)
    chosen = admitted(everybody, holding, limits)
    used = Counter(holding)
    used.update(each.group for each in everybody if each.uid in chosen)
    before = sum(holding.values())
    assert used.total() <= max(limits.sandboxes, before)
    for group in GROUPS:
        assert used[group] <= max(limits.sandboxes_per_run, holding.get(group, 0))
    left = [each for each in everybody if each.uid not in chosen]
    full = used.total() >= limits.sandboxes
    assert full or all(used[each.group] >= limits.sandboxes_per_run for each in left)


@given(waiting=WAITING, weights=WEIGHTS, holding=HOLDING, limits=LIMITS)
def test_within_a_group_nobody_overtakes_an_older_one(
    waiting: list[tuple[Group, int]],
    weights: dict[Group, float],
    holding: dict[Group, int],
    limits: AdmissionLimits,
) -> None:
    everybody = candidates(waiting, weights)
    chosen = admitted(everybody, holding, limits)
    for group in GROUPS:
        inside = [each.created_at for each in everybody if each.group == group and each.uid in chosen]
        outside = [each.created_at for each in everybody if each.group == group and each.uid not in chosen]
        assert not inside or not outside or max(inside) <= min(outside)


@given(waiting=WAITING, weights=WEIGHTS, holding=HOLDING, limits=LIMITS)
def test_no_group_is_ahead_by_more_than_one_of_one_that_could_have_had_its_slot(
    waiting: list[tuple[Group, int]],
    weights: dict[Group, float],
    holding: dict[Group, int],
    limits: AdmissionLimits,
) -> None:
    """Max-min fairness: whoever was given a slot had, before it, no larger share than anybody who is left waiting."""
    everybody = candidates(waiting, weights)
    chosen = admitted(everybody, holding, limits)
    used = Counter(holding)
    used.update(each.group for each in everybody if each.uid in chosen)
    winners = {each.group for each in everybody if each.uid in chosen}
    losers = {each.group for each in everybody if each.uid not in chosen}
    for winner in winners:
        for loser in losers:
            if used[loser] < limits.sandboxes_per_run and loser != winner:
                assert (used[winner] - 1) / weights[winner] <= used[loser] / weights[loser]


@given(waiting=WAITING, weights=WEIGHTS, holding=HOLDING, limits=LIMITS)
def test_the_order_in_which_things_are_seen_does_not_matter(
    waiting: list[tuple[Group, int]],
    weights: dict[Group, float],
    holding: dict[Group, int],
    limits: AdmissionLimits,
) -> None:
    everybody = candidates(waiting, weights)
    assert admitted(everybody, holding, limits) == admitted(everybody[::-1], holding, limits)
