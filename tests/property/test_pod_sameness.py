"""A pod that is not the one that was sent is noticed, whichever of its values differs; one that is, is not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mlwright_operator.config import SandboxProfile, Toleration
from mlwright_operator.sandbox import weakened
from sandbox_pods import TASK, changed, check_pod, pod

Path = tuple[str | int, ...]

FULL = SandboxProfile(
    image="registry.example/sandbox:1",
    runtime_class="gvisor",
    priority_class="sandboxes",
    node_selector={"pool": "sandbox"},
    tolerations=[Toleration(key="sandbox", operator="Exists", effect="NoSchedule")],
    image_pull_secrets=["registry"],
)
PODS = {
    "sandbox": pod(),
    "sandbox with every placement": pod(task=changed(TASK, "limits.gpus", 1), profile=FULL),
    "sandbox with image volumes": pod(
        task=changed(TASK, "data", {"public": {"image": "a"}, "private": {"image": "b"}})
    ),
    "check": check_pod(),
    "check with config maps": check_pod(
        changed(TASK, "data", {"public": {"configMap": "a"}, "private": {"configMap": "b"}})
    ),
}
REFERENCE = PODS["sandbox with every placement"]


def places(tree: Any, path: Path = ()) -> Iterator[Path]:
    """Every path into a tree, to its leaves and to what holds them."""
    inner = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from places(value, (*path, key))


def at(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def leaf(tree: Any, path: Path) -> bool:
    return not isinstance(at(tree, path), dict | list)


def another(value: object) -> object:
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int) else f"{value}0"


def unnoticed(name: str, paths: Iterator[Path], edit: Callable[[Any, Any], None]) -> list[Path]:
    """The places of a pod where an edit (of what holds the place, and its key there) passes for the pod as sent."""
    passed = []
    for path in paths:
        returned = deepcopy(PODS[name])
        edit(at(returned, path[:-1]), path[-1])
        if not weakened(PODS[name], returned):
            passed.append(path)
    return passed


@pytest.mark.parametrize("name", PODS)
def test_there_is_much_to_compare(name: str) -> None:
    assert sum(leaf(PODS[name], path) for path in places(PODS[name])) > 60


@pytest.mark.parametrize("name", PODS)
def test_a_changed_value_is_noticed(name: str) -> None:
    def change(holder: Any, key: Any) -> None:
        holder[key] = another(holder[key])

    leaves = (path for path in places(PODS[name]) if leaf(PODS[name], path))
    assert unnoticed(name, leaves, change) == []


@pytest.mark.parametrize("name", PODS)
def test_whatever_is_taken_away_is_noticed(name: str) -> None:
    def take_away(holder: Any, key: Any) -> None:
        del holder[key]

    assert unnoticed(name, places(PODS[name]), take_away) == []


@pytest.mark.parametrize("name", PODS)
def test_whatever_is_there_twice_is_noticed(name: str) -> None:
    """But for a toleration, which means the same twice, beside a runtime class that may bring some."""

    def double(holder: Any, key: Any) -> None:
        holder.append(deepcopy(holder[key]))

    items = (path for path in places(PODS[name]) if isinstance(path[-1], int) and path[1] != "tolerations")
    assert unnoticed(name, items, double) == []


@pytest.mark.parametrize("name", PODS)
def test_the_same_pod_is_the_same_in_any_order_of_its_fields_and_items(name: str) -> None:
    def turned(tree: Any) -> Any:
        if isinstance(tree, dict):
            return {key: turned(tree[key]) for key in reversed(tree)}
        if isinstance(tree, list) and any(isinstance(each, dict) for each in tree):
            return [turned(each) for each in reversed(tree)]
        return tree

    assert weakened(PODS[name], turned(json.loads(json.dumps(PODS[name])))) == ()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=8), inner, max_size=2),
    max_leaves=4,
)
KEYS = st.text(min_size=1, max_size=12) | st.sampled_from(
    [
        "env",
        "envFrom",
        "name",
        "ports",
        "lifecycle",
        "hostNetwork",
        "hostPID",
        "initContainers",
        "add",
        "affinity",
    ]
)
DICTS = [path for path in places(REFERENCE) if path[0] == "spec" and isinstance(at(REFERENCE, path), dict)]
DICTS += [("spec",), ("metadata", "labels"), ("metadata", "annotations")]
LISTS = [path for path in places(REFERENCE) if isinstance(at(REFERENCE, path), list)]
EXPECTED: dict[Path, set[str] | None] = {
    ("spec",): {"nodeName", "priority", "preemptionPolicy", "schedulerName", "serviceAccount", "overhead"},
    # The platform asked for a runtime class, which may bring its own.
    ("spec", "nodeSelector"): None,
}


@given(st.sampled_from(DICTS), KEYS, VALUES)
def test_an_added_field_is_noticed_wherever_it_is(path: Path, key: str, value: object) -> None:
    expected = EXPECTED.get(path, set())
    returned = deepcopy(REFERENCE)
    holder = at(returned, path)
    assume(expected is not None and key not in expected and key not in holder)
    holder[key] = value
    assert weakened(REFERENCE, returned)


@given(st.sampled_from(LISTS), VALUES)
def test_an_added_item_is_noticed_wherever_it_is(path: Path, item: object) -> None:
    assume(path != ("spec", "tolerations"))
    returned = deepcopy(REFERENCE)
    at(returned, path).append(item)
    assert weakened(REFERENCE, returned)


@given(st.sampled_from(list(places(REFERENCE))), VALUES)
def test_another_value_is_noticed_wherever_it_is(path: Path, value: object) -> None:
    *holder, last = path
    returned = deepcopy(REFERENCE)
    assume(json.dumps(value) != json.dumps(at(REFERENCE, path)))
    at(returned, tuple(holder))[last] = value
    assume(path not in {("metadata",), ("spec", "tolerations")})
    assert weakened(REFERENCE, returned)


@given(VALUES, VALUES)
def test_no_pod_is_too_strange_to_be_compared(metadata: object, spec: object) -> None:
    assert weakened(REFERENCE, {"metadata": metadata, "spec": spec})
