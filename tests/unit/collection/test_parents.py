"""The pool that improvements are drawn from."""

from __future__ import annotations

import pytest
from mlwright_trainer.collection.parents import Parent, parent_pool


def a_parent(id: str, update: int, digest: str | None = None) -> Parent:
    return Parent(id, f"print({id!r})", 0.8, "", digest or f"digest of {id}", update)


@pytest.mark.parametrize(
    ("update", "ids"), [(6, {"u2", "u3", "u4", "u5"}), (3, {"u0", "u1", "u2"}), (0, set())]
)
def test_parents_come_from_the_last_updates_before_this_one(update: int, ids: set[str]) -> None:
    candidates = [a_parent(f"u{number}", number) for number in range(8)]
    pool = parent_pool(candidates, update=update, parent_updates=4)
    assert {parent.id for parent in pool} == ids


def test_of_scripts_with_the_same_tree_the_latest_stays() -> None:
    candidates = [a_parent("new", 3, "same"), a_parent("old", 1, "same"), a_parent("other", 2)]
    assert {p.id for p in parent_pool(candidates, update=4, parent_updates=4)} == {"new", "other"}


def test_the_databases_order_does_not_matter() -> None:
    candidates = [a_parent(str(number), number % 3, str(number % 5)) for number in range(30)]
    straight = parent_pool(candidates, update=3, parent_updates=4)
    assert parent_pool(candidates[::-1], update=3, parent_updates=4) == straight
    assert len(straight) == 5
