"""Properties of the loader: what is dumped loads as the same object; nothing unknown is accepted; no input hangs it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mlwright_api.digests import spec_digest
from mlwright_api.errors import ManifestError
from mlwright_api.manifests import Manifest, dump_manifest, parse_manifests, wire
from mlwright_api.mltask import MLTask
from mlwright_api.presets import PresetError, resolve
from mlwright_api.trainingrun import TrainingRun

API = "mlwright.dev/v1alpha1"
NAMES = st.from_regex(r"\A[a-z][a-z0-9-]{0,8}[a-z0-9]\Z")
# Whatever a person may write into a description, a template or a script.
TEXTS = st.text(
    alphabet=st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\n\t #:-'\"|>&*!%@`{}[],?\\\r\x85\u2028\ufeff"),
    ),
    min_size=1,
    max_size=60,
)
WORDS = st.sampled_from(
    ["yes", "no", "on", "off", "null", "~", "true", "1", "1e3", "0x1", ".5", "=", "<<", "2026-01-31"]
)
SCORES = st.floats(min_value=-1e300, max_value=1e300, allow_nan=False)


def positive(most: float) -> st.SearchStrategy[float]:
    return st.floats(min_value=0, max_value=most, exclude_min=True)


@st.composite
def tasks(draw: st.DrawFn) -> dict[str, Any]:
    columns = draw(st.lists(TEXTS | WORDS, min_size=1, max_size=3, unique=True))
    spec = {
        "title": draw(TEXTS | WORDS),
        "description": draw(TEXTS | WORDS),
        "metric": {"name": "own_metric", "direction": draw(st.sampled_from(["Maximize", "Minimize"]))},
        "submission": {
            "idColumn": "the id",
            "targetColumns": columns,
            "kind": draw(st.sampled_from(["Labels", "Probabilities", "Values"])),
        },
        "limits": {
            "timeoutSeconds": draw(positive(86_400)),
            "cpu": draw(st.sampled_from(["500m", "2", "1.5"])),
            "memory": draw(st.sampled_from(["2Gi", "1e9", "512M"])),
        },
        "reference": {"baseline": draw(SCORES)},
    }
    return {"apiVersion": API, "kind": "MLTask", "metadata": _metadata(draw), "spec": spec}


@st.composite
def runs(draw: st.DrawFn) -> dict[str, Any]:
    batch = draw(st.integers(1, 256))
    spec: dict[str, Any] = {
        "tasks": [
            {"name": name, "weight": draw(positive(1000))}
            for name in draw(st.sets(NAMES, min_size=1, max_size=3))
        ],
        "model": {"source": draw(st.sampled_from([{"path": "m"}, {"hub": "a/b"}, {"claim": {"name": "c"}}]))},
        "algorithm": {
            "learningRate": draw(positive(1)),
            "lambda": draw(st.floats(0, 1)),
            "kl": {"coefficient": draw(st.floats(0, 1000))},
            "durationWeighting": {"maxWeight": draw(st.floats(1, 1000))},
        },
        "prompts": {"templates": {"draft": draw(TEXTS | WORDS), "system": draw(st.just("") | TEXTS)}},
        "seed": draw(st.integers(0, 2**31 - 1)),
    }
    preset = draw(st.sampled_from([None, "RLforMLE"]))
    if preset:
        spec["preset"] = preset
    mode = draw(st.sampled_from(["Continuous", "Synchronous", "Window"]))
    spec["collection"] = {"mode": mode}
    if mode == "Window":
        spec["collection"]["windowSeconds"] = draw(positive(604_800))
    else:
        spec["algorithm"]["batchSize"] = batch
        spec["algorithm"]["minibatchSize"] = draw(st.integers(1, batch))
    return {"apiVersion": API, "kind": "TrainingRun", "metadata": _metadata(draw), "spec": spec}


@st.composite
def rollouts(draw: st.DrawFn) -> dict[str, Any]:
    spec = {
        "taskRef": {"name": draw(NAMES), "digest": "sha256:" + draw(st.sampled_from(["0", "f"])) * 64},
        "files": [{"path": "script.py", "content": draw(st.just("") | TEXTS | WORDS)}],
        "policyVersion": draw(st.integers(0, 10**6)),
    }
    status = {"outcome": "Scored", "scores": {"Reward": draw(SCORES)}, "outputTail": draw(TEXTS)}
    document = {"apiVersion": API, "kind": "Rollout", "metadata": _metadata(draw), "spec": spec}
    return document | ({"status": status} if draw(st.booleans()) else {})


def _metadata(draw: st.DrawFn) -> dict[str, Any]:
    return {"name": draw(NAMES), "annotations": draw(st.dictionaries(NAMES, TEXTS | WORDS, max_size=2))}


DOCUMENTS = tasks() | runs() | rollouts()


def load(text: str) -> Manifest:
    (manifest,) = parse_manifests(text, source="file")
    return manifest


@given(DOCUMENTS)
def test_what_is_dumped_loads_as_the_same_object(document: dict[str, Any]) -> None:
    manifest = load(json.dumps(document))
    assert load(dump_manifest(manifest)) == manifest


@given(DOCUMENTS)
def test_the_json_form_loads_as_the_same_object(document: dict[str, Any]) -> None:
    manifest = load(json.dumps(document))
    assert load(json.dumps(wire(manifest))) == manifest


@given(DOCUMENTS)
def test_a_dump_is_canonical(document: dict[str, Any]) -> None:
    dumped = dump_manifest(load(json.dumps(document)))
    assert dump_manifest(load(dumped)) == dumped


@given(st.lists(DOCUMENTS, min_size=2, max_size=3))
def test_several_dumps_are_one_file(documents: list[dict[str, Any]]) -> None:
    manifests = [load(json.dumps(document)) for document in documents]
    assert parse_manifests("---\n".join(map(dump_manifest, manifests)), source="file") == manifests


@given(tasks())
def test_a_digest_survives_the_round_trip(document: dict[str, Any]) -> None:
    task = load(json.dumps(document))
    again = load(dump_manifest(task))
    assert isinstance(task, MLTask)
    assert isinstance(again, MLTask)
    assert spec_digest(again.spec) == spec_digest(task.spec)


@given(runs())
def test_a_resolved_run_loads_as_itself_and_stays_resolved(document: dict[str, Any]) -> None:
    run = load(json.dumps(document))
    assert isinstance(run, TrainingRun)
    try:
        resolved = run.model_copy(update={"spec": resolve(run.spec)})
    except PresetError:
        assume(False)
    again = load(dump_manifest(resolved))
    assert isinstance(again, TrainingRun)
    assert again == resolved
    assert resolve(again.spec) == again.spec


def mappings(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every mapping in a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else []
    inner = [found for key, item in items for found in mappings(item, (*path, key))]
    return [path, *inner] if isinstance(value, dict) else inner


FREE = ("annotations", "labels", "scores")
"""Mappings whose keys are the user's (or, of scores, an enum's)."""


@given(DOCUMENTS, st.data())
def test_an_unknown_field_is_refused_wherever_it_stands(
    document: dict[str, Any], data: st.DataObject
) -> None:
    places = [path for path in mappings(document) if not path or path[-1] not in FREE]
    path = data.draw(st.sampled_from(places))
    target: Any = document
    for part in path:
        target = target[part]
    target["unheardOf"] = 1
    with pytest.raises(ManifestError) as caught:
        load(json.dumps(document))
    fields = [problem.field for problem in caught.value.problems]
    assert any(field.endswith("unheardOf") for field in fields)


@given(st.binary(max_size=200) | TEXTS.map(str.encode))
def test_no_input_does_anything_but_load_or_say_what_is_wrong(raw: bytes) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(raw, source="file")
    assert all(line.startswith("file") for line in str(caught.value).splitlines())


@given(DOCUMENTS, st.data())
def test_a_damaged_file_loads_or_says_what_is_wrong(document: dict[str, Any], data: st.DataObject) -> None:
    text = dump_manifest(load(json.dumps(document)))
    start = data.draw(st.integers(0, len(text)))
    damage = data.draw(TEXTS | st.just(""))
    damaged = text[:start] + damage + text[start + data.draw(st.integers(0, 5)) :]
    said = outcome_of(damaged)
    assert said == "loaded" or all(line.startswith("file") for line in said.splitlines())


def outcome_of(text: str) -> str:
    try:
        parse_manifests(text, source="file")
    except ManifestError as error:
        return "\n".join(str(problem).splitlines()[0] for problem in error.problems)
    return "loaded"
