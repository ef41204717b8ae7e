"""Sharing: equal values, fewer of them."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mlwright_operator.edge import sharing
from mlwright_operator.edge.sharing import Sharing

SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.text(max_size=3)
JSON = st.recursive(
    SCALARS,
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=2), part, max_size=3),
    max_leaves=12,
)


def text(value: Any) -> str:
    """Tells 1 from 1.0 and from true, which == does not."""
    return json.dumps(value)


@given(values=st.lists(JSON, max_size=6))
def test_what_comes_out_is_what_went_in(values: list[Any]) -> None:
    shared = Sharing()
    before = copy.deepcopy(values)
    assert [text(shared(value)) for value in values] == [text(value) for value in before]
    assert text(values) == text(before)


@given(value=JSON)
def test_twice_the_same_is_one(value: Any) -> None:
    shared = Sharing()
    first, second = shared(copy.deepcopy(value)), shared(copy.deepcopy(value))
    if isinstance(value, dict | list | str):
        assert first is second


def test_what_differs_shares_the_rest() -> None:
    shared = Sharing()
    first = shared({"name": "a", "spec": {"containers": [{"image": "x"}]}})
    second = shared({"name": "b", "spec": {"containers": [{"image": "x"}]}})
    assert first["spec"] is second["spec"]
    assert (first["name"], second["name"]) == ("a", "b")


def test_the_order_of_fields_is_kept() -> None:
    shared = Sharing()
    shared({"a": 1, "b": 2})
    assert list(shared({"b": 2, "a": 1})) == ["b", "a"]


def test_what_the_pool_forgot_stays_right(monkeypatch: Any) -> None:
    monkeypatch.setattr(sharing, "MAX_PARTS", 10)
    shared = Sharing()
    values = [{"name": f"n{number}", "rest": [{"x": number % 2}]} for number in range(50)]
    kept = [shared(copy.deepcopy(value)) for value in values]
    assert kept == values
    assert len(shared._parts) < 30
