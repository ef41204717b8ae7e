"""The store: what is known only moves forward, whatever order news comes in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mlwright_operator.actions import Kind
from mlwright_operator.edge.store import Store, version_of

POD = Kind.POD


def pod(uid: str, version: object, namespace: str = "lab") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "name": uid, "namespace": namespace, "resourceVersion": str(version)}}


def store() -> Store[Mapping[str, Any]]:
    return Store(lambda kind, raw: raw)


def versions(known: Store[Mapping[str, Any]]) -> dict[str, str]:
    return {raw["metadata"]["uid"]: raw["metadata"]["resourceVersion"] for raw in known.values()}


def test_what_is_newer_replaces_what_is_known() -> None:
    known = store()
    assert known.put(POD, pod("a", 9))
    assert known.put(POD, pod("a", 10))
    assert versions(known) == {"a": "10"}


def test_what_is_older_or_known_already_is_no_news() -> None:
    known = store()
    known.put(POD, pod("a", 10))
    assert not known.put(POD, pod("a", 9))
    assert not known.put(POD, pod("a", 10))
    assert versions(known) == {"a": "10"}


def test_nothing_older_brings_back_what_is_gone() -> None:
    known = store()
    known.put(POD, pod("a", 10))
    assert known.gone(POD, "a")
    assert not known.put(POD, pod("a", 11))
    assert not known.gone(POD, "a")
    assert versions(known) == {}


def test_a_deletion_that_is_seen_before_its_object_holds() -> None:
    known = store()
    known.take(POD, "DELETED", pod("a", 12))
    assert not known.take(POD, "ADDED", pod("a", 10))
    assert versions(known) == {}


def test_what_lost_its_label_and_got_it_back_is_known_again() -> None:
    """To a watch with a selector the first of it is a deletion."""
    known = store()
    known.take(POD, "ADDED", pod("a", 10))
    known.take(POD, "DELETED", pod("a", 12))
    assert known.take(POD, "ADDED", pod("a", 14))
    assert versions(known) == {"a": "14"}


def test_a_late_deletion_of_an_earlier_version_does_not_count() -> None:
    known = store()
    known.put(POD, pod("a", 14))
    assert not known.take(POD, "DELETED", pod("a", 12))
    assert versions(known) == {"a": "14"}


def test_a_list_takes_away_what_it_lacks() -> None:
    known = store()
    known.put(POD, pod("a", 10))
    known.put(POD, pod("b", 11))
    assert known.keep_only(POD, {"b"}, version="20")
    assert versions(known) == {"b": "11"}


def test_a_list_does_not_take_away_what_was_made_after_it() -> None:
    known = store()
    known.put(POD, pod("a", 21))
    assert not known.keep_only(POD, set(), version="20")
    assert versions(known) == {"a": "21"}


def test_a_list_of_one_namespace_says_nothing_of_others() -> None:
    known = store()
    known.put(POD, pod("a", 10, "lab"))
    known.put(POD, pod("b", 10, "other"))
    known.keep_only(POD, set(), version="20", namespace="lab")
    assert versions(known) == {"b": "10"}


def test_a_list_of_all_that_is_known_takes_nothing_away() -> None:
    known = store()
    known.put(POD, pod("a", 10))
    assert not known.keep_only(POD, {"a"}, version="20")


def test_kinds_are_counted_apart() -> None:
    known = store()
    known.put(POD, pod("a", 1))
    known.put(Kind.JOB, pod("j", 2))
    known.put(Kind.JOB, pod("k", 3))
    counts = known.counts()
    assert (counts[POD], counts[Kind.JOB], counts[Kind.ROLLOUT]) == (1, 2, 0)


def test_each_version_is_looked_at_once() -> None:
    looked: list[str] = []
    known: Store[None] = Store(lambda kind, raw: looked.append(raw["metadata"]["resourceVersion"]))
    for version in (1, 1, 2, 1, 2):
        known.put(POD, pod("a", version))
    assert looked == ["1", "2"]


def test_versions_are_compared_as_numbers() -> None:
    assert version_of("9") < version_of("10")
    assert version_of("opaque") == float("inf")


EVENTS = st.lists(st.integers(1, 6), min_size=1, max_size=6, unique=True).map(sorted)


@given(history=EVENTS, deleted=st.booleans(), data=st.data())
def test_any_order_with_repetitions_ends_in_the_last_state(
    history: list[int], deleted: bool, data: st.DataObject
) -> None:
    """If everything arrives at least once, in whatever order, the end is as if it had arrived in order."""
    events: list[tuple[str, int]] = [("MODIFIED", version) for version in history]
    if deleted:
        events.append(("DELETED", history[-1] + 1))
    extra = data.draw(st.lists(st.sampled_from(events), max_size=4))
    known = store()
    for event, version in data.draw(st.permutations(events + extra)):
        known.take(POD, event, pod("a", version))
    assert versions(known) == ({} if deleted else {"a": str(history[-1])})
