"""The security table of sandbox pods: whatever a user of the API writes, the pod is hardened as before.

Every field that a user can set has a row; a field without one fails a test. Objects go the whole way, from what an API
server holds to the Job. What a row may change is written down (`touches`), all else has to stay as it is.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.base import ApiModel
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.quantities import Quantity
from mlwright_api.rollout import RolloutSpec
from mlwright_operator.actions import Kind
from mlwright_operator.observed import Seen, SeenRun
from mlwright_operator.sandbox import (
    NotBuildable,
    limits_of,
    network_policy,
    over,
    sandbox_job,
    template,
    too_large,
)
from pod_mutations import (
    BREAKOUT,
    BUILT,
    GOOD,
    ORDERS,
    REFUSED,
    RESERVED,
    ROWS,
    TOLD,
    TOUCHES,
    Row,
    jobs,
    raw,
    seen,
)
from pod_standards import selects, violations
from sandbox_pods import NAMESPACE, PROFILE, changed, container

Json = dict[str, Any]


def refusal(rollout: Json, task: Json) -> str | None:
    """Why the planner would not run it: beyond the schema, limits and size."""
    one, other = seen(rollout, task)
    assert one.spec is not None
    assert other.spec is not None
    above = over(limits_of(one.spec, other.spec), other.spec.limits, PROFILE.limits)
    return above or next(
        (
            said
            for job in jobs(rollout, task)
            if (said := too_large(template(job)["metadata"]["annotations"]))
        ),
        None,
    )


# What has to hold of every Job that is built.

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
USERS_VOLUMES = {"public", "private"}


def broken(job: Json) -> Iterator[str]:
    """What a Job that somebody could weaken would show."""
    pod = template(job)
    yield from violations(pod)
    if not selects(network_policy(NAMESPACE)["spec"]["podSelector"], pod["metadata"]["labels"]):
        yield "no policy selects it"
    if not DNS_LABEL.fullmatch(job["metadata"]["name"]):
        yield f"name: {job['metadata']['name']}"
    for key, value in pod["metadata"]["labels"].items():
        if len(value) > 63 or not LABEL_VALUE.fullmatch(value):
            yield f"label {key}: {value}"
    yield from _wrong_hands(pod)
    json.dumps(job, allow_nan=False).encode()


def _wrong_hands(pod: Json) -> Iterator[str]:
    named = {each["name"] for each in pod["spec"]["volumes"]}
    if "sealed" in named or "SEALED" in json.dumps(pod["spec"]):
        yield "sealed answers"
    for each in pod["spec"]["containers"]:
        mounted = {mount["name"] for mount in each["volumeMounts"]}
        if each["name"] == "agent" and "private" in mounted:
            yield "answers in the agent"
        if any("subPathExpr" in mount for mount in each["volumeMounts"]):
            yield "a path that is computed from the environment"


def within(job: Json) -> Iterator[str]:
    """Amounts that are above the profile's, overhead included."""
    limits, overhead = PROFILE.limits, PROFILE.overhead_memory.bytes
    amounts = container(template(job), "agent")["resources"]["limits"]
    if Quantity(amounts["cpu"]).exact > limits.cpu.exact:
        yield "cpu"
    if int(amounts["memory"]) > limits.memory.bytes + limits.work_size.bytes + overhead:
        yield "memory"
    if int(amounts.get("nvidia.com/gpu", 0)) > limits.gpus:
        yield "gpus"
    seconds = PROFILE.starting_seconds + limits.timeout_seconds + 120 + PROFILE.grading_seconds
    if template(job)["spec"]["activeDeadlineSeconds"] > seconds:
        yield "deadline"


def flat(tree: Any, path: str = "") -> dict[str, Any]:
    """Leaves by path, items by their place."""
    if isinstance(tree, Mapping) and tree:
        inner: Any = tree.items()
    elif isinstance(tree, list) and tree:
        inner = enumerate(tree)
    else:
        return {path: tree}
    return {at: leaf for key, value in inner for at, leaf in flat(value, f"{path}/{key}").items()}


def moved(before: Json, after: Json) -> set[str]:
    """Paths at which two Jobs differ."""
    one, other = flat(before), flat(after)
    return {
        path
        for path in one.keys() | other.keys()
        if (path in one, one.get(path)) != (path in other, other.get(path))
    }


@pytest.mark.parametrize("row", BUILT, ids=str)
def test_a_field_changes_what_it_is_for_and_nothing_else(row: Row) -> None:
    for before, after in zip(jobs(), jobs(*row.objects()), strict=True):
        stray = {path for path in moved(before, after) if not re.fullmatch(TOUCHES[row.touches], path)}
        assert stray == set()


@pytest.mark.parametrize("row", [row for row in BUILT if row.touches != "nothing"], ids=str)
def test_a_row_is_no_row_if_its_value_reaches_nothing(row: Row) -> None:
    assert any(moved(before, after) for before, after in zip(jobs(), jobs(*row.objects()), strict=True))


@pytest.mark.parametrize("row", BUILT, ids=str)
def test_a_pod_stays_hardened_whatever_the_field_says(row: Row) -> None:
    for job in jobs(*row.objects()):
        assert list(broken(job)) == []


@pytest.mark.parametrize("row", BUILT, ids=str)
def test_no_pod_is_larger_than_the_platform_allows(row: Row) -> None:
    assert refusal(*row.objects()) is None
    assert list(within(jobs(*row.objects())[0])) == []


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_what_the_schema_refuses_has_no_pod_and_says_why(row: Row) -> None:
    rollout, task = seen(*row.objects())
    with pytest.raises(NotBuildable):
        sandbox_job(rollout=rollout, task=task, profile=PROFILE, attempt=1)
    assert row.field == "spec.data" or rollout.problem or task.problem


@pytest.mark.parametrize("row", TOLD, ids=str)
def test_what_is_too_large_is_told_before_there_is_a_job(row: Row) -> None:
    assert row.touches.removeprefix("told ") in (refusal(*row.objects()) or "")


def test_the_good_pod_is_good() -> None:
    for job in jobs():
        assert list(broken(job)) == []
    assert refusal(GOOD[Kind.ROLLOUT], GOOD[Kind.TASK]) is None


def agents_mount(name: str) -> Json:
    return {"name": name, "mountPath": f"/{name}", "readOnly": True}


BROKEN: dict[str, Callable[[Json], None]] = {
    "answers in the agent": lambda pod: pod["spec"]["containers"][0]["volumeMounts"].append(
        agents_mount("private")
    ),
    "sealed answers": lambda pod: pod["spec"]["volumes"].append(
        {"name": "sealed", "image": {"reference": "x"}}
    ),
    "no policy selects it": lambda pod: pod["metadata"]["labels"].update({"mlwright.dev/part": "collector"}),
    "label app: a b": lambda pod: pod["metadata"]["labels"].update({"app": "a b"}),
    "no environment: agent": lambda pod: pod["spec"]["containers"][0].update(
        env=[{"name": "A", "value": "b"}]
    ),
    "a path that is computed from the environment": lambda pod: pod["spec"]["containers"][1]["volumeMounts"][
        0
    ].update(subPathExpr="$(A)"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_weakened_pod_would_be_seen(name: str) -> None:
    job = jobs()[0]
    BROKEN[name](template(job))
    assert list(broken(job)) == [name]


def test_a_pod_above_the_profile_would_be_seen() -> None:
    huge = changed(
        GOOD[Kind.TASK], "spec.limits", {"cpu": "65", "memory": "1Ti", "gpus": 16, "workSize": "1Ti"}
    )
    job = jobs(task=huge)[0]
    assert list(within(job)) == ["cpu", "memory"]


# Nothing is forgotten.


def fields(model: type[ApiModel], prefix: str = "spec") -> Iterator[str]:
    """Every field of a model that holds a value and no other model, by its path without the places in lists."""
    for name, info in model.model_fields.items():
        path = f"{prefix}.{info.alias or name}"
        inner = list(_models(info.annotation))
        yield from (leaf for each in inner for leaf in fields(each, path)) if inner else [path]


def _models(annotation: Any) -> Iterator[type[ApiModel]]:
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


@pytest.mark.parametrize(("kind", "model"), [(Kind.ROLLOUT, RolloutSpec), (Kind.TASK, MLTaskSpec)])
def test_every_field_has_a_row(kind: Kind, model: type[ApiModel]) -> None:
    rows = {re.sub(r"\.\d+", "", row.field) for row in ROWS if row.kind is kind}
    # A row that sets a whole block sets its fields.
    whole = {
        f"{row.field}{path.replace('/', '.')}" for row in ROWS if row.kind is kind for path in flat(row.value)
    }
    assert {field for field in fields(model) if field not in rows | whole} == set()


def test_a_run_can_say_how_many_sandboxes_it_gets_and_nothing_about_them() -> None:
    own = {field.name for field in dataclasses.fields(SeenRun)}
    assert own - {field.name for field in dataclasses.fields(Seen)} == {"weight", "suspend"}


# And all at once, with text that nobody thought of.

NASTY = st.text(min_size=1, max_size=40) | st.sampled_from(
    [BREAKOUT, "$(HOME)", "../..", "\0", "\n---\n", "{{ .Values }}", "sealed", "/private", "'; --", "\u202e"]
)
NAMES = st.from_regex(r"\A[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?\Z")
PATHS = st.lists(st.text(st.characters(exclude_characters="/"), min_size=1, max_size=9), max_size=4).map(
    "/".join
)
SOURCES = st.one_of(
    NASTY.map(lambda image: {"image": image}),
    NAMES.map(lambda name: {"configMap": name}),
    st.builds(lambda name, path: {"claim": {"name": name, "path": path}}, NAMES, PATHS),
)
ROLLOUTS = st.fixed_dictionaries(
    {
        "taskRef": st.fixed_dictionaries({"name": NAMES, "digest": st.just("sha256:" + "0" * 64)}),
        "files": st.builds(lambda text: [{"path": "script.py", "content": text}], NASTY),
        "sandbox": st.sampled_from(["default", "privileged"]),
        "seed": st.integers(0, 2**53),
        "splits": st.sampled_from([["Reward"], ["Selection"], ["Selection", "Reward"]]),
    },
    optional={"runRef": st.fixed_dictionaries({"name": NAMES, "uid": NASTY})},
)
AMOUNTS = st.from_regex(r"\A[1-9][0-9]{0,3}(m|k|M|Mi|Gi|e2)?\Z")
TASKS = st.fixed_dictionaries(
    {
        "title": NASTY,
        "description": NASTY,
        "metric": st.just({"name": "accuracy"}),
        "submission": st.fixed_dictionaries(
            {
                "idColumn": NASTY,
                "targetColumns": st.lists(NASTY, min_size=1, max_size=3, unique=True),
                "kind": st.just("Labels"),
            }
        ),
        "data": st.fixed_dictionaries({"public": SOURCES, "private": SOURCES}, optional={"sealed": SOURCES}),
        "limits": st.fixed_dictionaries(
            {
                "timeoutSeconds": st.floats(0.001, 86_400),
                "cpu": AMOUNTS,
                "memory": AMOUNTS,
                "workSize": AMOUNTS,
                "gpus": st.integers(0, 16),
            }
        ),
        "reference": st.just({"baseline": 0.5}),
    }
)
METADATA = st.fixed_dictionaries(
    {"name": NAMES},
    optional={
        "labels": st.dictionaries(st.sampled_from(sorted(RESERVED)) | NASTY, NASTY, max_size=3),
        "annotations": st.dictionaries(st.sampled_from(sorted(ORDERS)) | NASTY, NASTY, max_size=3),
    },
)
MAY_DIFFER = "|".join(TOUCHES.values())


@given(ROLLOUTS, TASKS, METADATA, METADATA)
def test_no_text_anywhere_weakens_a_pod(rollout: Json, task: Json, of_rollout: Json, of_task: Json) -> None:
    objects = raw(Kind.ROLLOUT, rollout, of_rollout), raw(Kind.TASK, task, of_task)
    one, other = seen(*objects)
    if one.spec is None or other.spec is None:
        with pytest.raises(NotBuildable):
            sandbox_job(rollout=one, task=other, profile=PROFILE, attempt=1)
        return
    for before, after in zip(jobs(), jobs(*objects), strict=True):
        assert list(broken(after)) == []
        assert {path for path in moved(before, after) if not re.fullmatch(MAY_DIFFER, path)} == set()
    if refusal(*objects) is None:
        assert list(within(jobs(*objects)[0])) == []
