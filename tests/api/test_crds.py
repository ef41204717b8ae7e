"""The generated CRDs in a real API server: what it takes, refuses, fills in and shows."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from api_mutations import HARMLESS, LOSS, MUTATIONS, ROLLOUT, RUN, SCRATCH, TASK, changed
from api_server import API, Answer, ApiServer, with_crds
from mlwright_api.digests import spec_digest
from mlwright_api.errors import ManifestError
from mlwright_api.manifests import Manifest, load_manifests, parse_manifests, wire
from mlwright_api.mltask import MLTask
from mlwright_api.presets import resolve
from mlwright_api.trainingrun import MUTABLE, TrainingRun
from mlwright_cluster.cluster import Cluster
from mlwright_crds.definitions import RESOURCES, definition

pytestmark = pytest.mark.control_plane

ROOT = Path(__file__).parents[2]
NAMESPACE = "crds"
PLURALS = {resource.kind.__name__: resource.plural for resource in RESOURCES}
EXAMPLES = [each for path in sorted((ROOT / "examples").rglob("*.yaml")) for each in load_manifests(path)]
IDS = [f"{good['kind']}-{path}-{str(value)[:24]}" for good, path, value, _ in MUTATIONS]


@pytest.fixture(scope="module")
def server(control_plane: Cluster) -> ApiServer:
    server = with_crds(control_plane)
    server.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    return server


def path_of(kind: str, name: str = "", *, subresource: str = "") -> str:
    return "/".join(filter(None, (f"{API}/namespaces/{NAMESPACE}/{PLURALS[kind]}", name, subresource)))


def create(server: ApiServer, document: dict[str, Any], **query: str) -> Answer:
    return server.send("POST", path_of(document["kind"]), document, fieldValidation="Strict", **query)


def attempt(server: ApiServer, document: dict[str, Any]) -> Answer:
    """What the server says of a document: of its status by a write of the status of an object that exists."""
    if "status" not in document:
        return create(server, document, dryRun="All")
    current = existing(server, {key: value for key, value in document.items() if key != "status"}, "written")
    return server.send(
        "PUT",
        path_of(document["kind"], "written", subresource="status"),
        {**current, "status": document["status"]},
        fieldValidation="Strict",
        dryRun="All",
    )


def of_the_models(document: dict[str, Any]) -> tuple[str, str]:
    """Field and message of the models' refusal."""
    with pytest.raises(ManifestError) as caught:
        parse_manifests(json.dumps(document), source="file")
    (problem,) = caught.value.problems
    return problem.field, problem.message


def allowed(message: str) -> str:
    """The part of a message that says what is allowed, without what was found instead."""
    return re.split(r", (?:not|and none) | \(it is |: did you mean|: allowed are", message)[0]


def rules(schema: Any) -> Iterator[dict[str, Any]]:
    """Every entry of x-kubernetes-validations in a schema."""
    if isinstance(schema, dict):
        yield from schema.get("x-kubernetes-validations", ())
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from rules(inner)


def as_pattern(rule: dict[str, Any]) -> re.Pattern[str]:
    """What a rule's message says is allowed, whatever it fills in."""
    if "message" in rule:
        return re.compile(re.escape(allowed(rule["message"])))
    text, _ = json.JSONDecoder().raw_decode(rule["messageExpression"])
    return re.compile(re.escape(allowed(text)).replace("%s", ".*").replace("%%", "%"))


SERVERS_OWN = " in body "
"""In what a server says of types and bounds: `spec.seed in body should be less than or equal to 2147483647`."""
RULES = {
    kind: [as_pattern(rule) for rule in rules(definition(each))]
    for each in RESOURCES
    for kind in [each.kind.__name__]
}


def told_by_a_rule(kind: str, message: str) -> bool:
    return any(pattern.fullmatch(allowed(message)) for pattern in RULES[kind])


def related(field: str, other: str) -> bool:
    """Whether one is the other or lies around it: a server names the entry of a list, or the list."""
    one, two = field.replace("[", ".["), other.replace("[", ".[")
    return f"{one}.".startswith(f"{two}.") or f"{two}.".startswith(f"{one}.")


@pytest.mark.parametrize(
    "good", [RUN, SCRATCH, TASK, LOSS, ROLLOUT], ids=["run", "scratch", "task", "loss", "rollout"]
)
def test_the_unchanged_objects_are_taken(server: ApiServer, good: dict[str, Any]) -> None:
    assert create(server, good, dryRun="All").code == 201


@pytest.mark.parametrize(("good", "path", "value", "_"), MUTATIONS, ids=IDS)
def test_what_the_models_refuse_the_server_refuses_at_the_same_field_and_for_the_same_reason(
    server: ApiServer, good: dict[str, Any], path: str, value: object, _: str
) -> None:
    document = changed(good, path, value)
    field, message = of_the_models(document)
    answer = attempt(server, document)
    assert answer.code in (400, 422), answer
    if answer.code == 400:  # Not even decoded: an unknown field, or a mapping that is none.
        assert field.rsplit(".", 1)[-1] in answer.body["message"]
        return
    there = [said for where, said in answer.causes if related(where, field)]
    assert there, answer.causes
    if told_by_a_rule(document["kind"], message):
        assert any(allowed(message) in said or SERVERS_OWN in said for said in there), (message, there)


@pytest.mark.parametrize(
    ("good", "path", "value"),
    HARMLESS,
    ids=[f"{good['kind']}-{path}-{str(value)[:24]}" for good, path, value in HARMLESS],
)
def test_what_the_models_take_the_server_takes(
    server: ApiServer, good: dict[str, Any], path: str, value: object
) -> None:
    answer = attempt(server, changed(good, path, value))
    assert answer.code in (200, 201), answer.causes


def test_every_rule_is_broken_by_some_mutation() -> None:
    """But for those on changes, which the tests below break."""
    refused = [
        (document["kind"], allowed(of_the_models(document)[1]))
        for good, path, value, _ in MUTATIONS
        for document in [changed(good, path, value)]
    ]
    broken = {
        (kind, pattern.pattern)
        for kind, message in refused
        for pattern in RULES[kind]
        if pattern.fullmatch(message)
    }
    on_changes = ("immutable", "cannot change", "may change")
    missing = [
        (kind, pattern.pattern)
        for kind, patterns in RULES.items()
        for pattern in patterns
        if (kind, pattern.pattern) not in broken
        and not any(words.replace(" ", r"\ ") in pattern.pattern for words in on_changes)
    ]
    assert missing == []


@pytest.mark.parametrize("example", EXAMPLES, ids=[each.metadata.name for each in EXAMPLES])
def test_every_example_is_taken_as_it_stands(server: ApiServer, example: Manifest) -> None:
    answer = create(server, wire(example, defaults=False), dryRun="All")
    assert answer.code == 201, answer.causes


def read_back(server: ApiServer, document: dict[str, Any]) -> Manifest:
    (manifest,) = parse_manifests(json.dumps(create(server, document, dryRun="All").body), source="server")
    return manifest


@pytest.mark.parametrize(
    "task", [each for each in EXAMPLES if isinstance(each, MLTask)], ids=lambda task: task.metadata.name
)
def test_a_task_keeps_its_digest_whatever_the_server_fills_in(server: ApiServer, task: MLTask) -> None:
    seen = read_back(server, wire(task, defaults=False))
    assert spec_digest(seen.spec) == spec_digest(task.spec)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"preset": "RLforMLE"},
        {"preset": "RLforMLE", "collection": {"mode": "Window", "windowSeconds": 60}, "algorithm": {}},
        {"reward": {"milestone": 0.01}},
    ],
    ids=str,
)
def test_a_run_resolves_to_the_same_in_a_cluster(server: ApiServer, change: dict[str, Any]) -> None:
    """Presets speak after the server: it fills in no field that one covers."""
    document = {**RUN, "spec": {**RUN["spec"], **change}}
    (written,) = parse_manifests(json.dumps(document), source="file")
    seen = read_back(server, document)
    assert isinstance(written, TrainingRun)
    assert isinstance(seen, TrainingRun)
    assert resolve(seen.spec) == resolve(written.spec)


def test_defaults_are_shown(server: ApiServer) -> None:
    spec = create(server, TASK, dryRun="All").body["spec"]
    assert spec["limits"] == {
        "timeoutSeconds": 300,
        "cpu": "1",
        "memory": "2Gi",
        "workSize": "512Mi",
        "gpus": 0,
    }
    assert spec["submission"]["fileName"] == "submission.csv"
    assert spec["splits"] == {"strategy": "Stratified"}


def existing(server: ApiServer, good: dict[str, Any], name: str) -> dict[str, Any]:
    """An object that exists, for real."""
    document = copy.deepcopy(good)
    document["metadata"]["name"] = name
    create(server, document)
    return dict(server.send("GET", path_of(document["kind"], name)).body)


def put(server: ApiServer, document: dict[str, Any]) -> Answer:
    return server.send("PUT", path_of(document["kind"], document["metadata"]["name"]), document, dryRun="All")


@pytest.mark.parametrize(
    ("good", "path", "value", "refusal"),
    [
        (TASK, "spec/title", "Another", "is immutable: a changed task is a new task"),
        (TASK, "spec/limits/timeoutSeconds", 301, "is immutable: a changed task is a new task"),
        (TASK, "spec/data/sealed", {"configMap": "x"}, "is immutable: a changed task is a new task"),
        (ROLLOUT, "spec/files/0/content", "print(2)", "is immutable: a rollout is one script, run once"),
        (ROLLOUT, "spec/sandbox", "other", "is immutable: a rollout is one script, run once"),
        (ROLLOUT, "spec/runRef/uid", "other", "is immutable: a rollout is one script, run once"),
    ],
)
def test_the_spec_of_a_task_and_of_a_rollout_never_changes(
    server: ApiServer, good: dict[str, Any], path: str, value: object, refusal: str
) -> None:
    current = existing(server, good, "constant")
    assert put(server, current).code == 200
    ((field, message),) = put(server, changed(current, path, value)).causes
    assert (field, refusal in message) == ("spec", True)


CHANGES: dict[str, object] = {
    "suspend": True,
    "drainSeconds": 5,
    "ttlSecondsAfterFinished": 60,
    "activeDeadlineSeconds": 3600,
    "weight": 2,
    "algorithm.updates": 200,
    "collection.maxInFlight": 32,
    "collection.infrastructureRetries": 1,
    "checkpoint": {"keep": 5},
    "storage.whenDeleted": "Delete",
    "collector": {"image": "collector:2"},
    "inference.replicas": 3,
    **{
        f"{part}.{field}": value
        for part in ("learner", "inference")
        for field, value in {
            "image": "other:2",
            "resources": {"limits": {"cpu": 1}},
            "nodeSelector": {"a": "b"},
            "tolerations": [{"operator": "Exists"}],
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "low",
        }.items()
    },
}


def test_the_changes_below_are_all_that_a_run_may_see() -> None:
    assert set(CHANGES) == MUTABLE


@pytest.mark.parametrize("path", CHANGES)
def test_how_a_run_is_run_may_change(server: ApiServer, path: str) -> None:
    current = existing(server, RUN, "changing")
    answer = put(server, changed(current, f"spec/{path.replace('.', '/')}", CHANGES[path]))
    assert answer.code == 200, answer.causes
    assert answer.body["metadata"]["generation"] == current["metadata"]["generation"] + 1


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed", 7),
        ("preset", "RLforMLE"),
        ("tasks/0/weight", 3),
        ("model/source", {"hub": "a/b"}),
        ("model/tokenizer", "other"),
        ("algorithm/batchSize", 32),
        ("algorithm/learningRate", 2e-4),
        ("algorithm/kl/coefficient", 0.02),
        ("algorithm/clipRangeHigh", 0.3),
        ("prompts/improveFraction", 0.1),
        ("sampling/maxTokens", 256),
        ("collection/mode", "Continuous"),
        ("collection/targetStaleness", 2),
        ("environment/instrumentation", "None"),
        ("reward/gradePartial", True),
        ("fineTuning", {"examples": {"generator": "sklearn-tabular"}}),
        ("learner/replicas", 2),
        ("inference/kind", "VLLM"),
        ("sandbox", "other"),
        ("storage/weights", {"size": "1Gi"}),
        ("evaluation/samples", 9),
    ],
)
def test_what_a_runs_numbers_depend_on_may_not_change(server: ApiServer, path: str, value: object) -> None:
    current = existing(server, RUN, "changing")
    answer = put(server, changed(current, f"spec/{path}", value))
    ((field, message),) = answer.causes
    assert field == f"spec.{path.split('/')[0]}"
    assert "change in a run that exists: create another one" in message


def test_a_schedule_that_falls_towards_the_last_update_keeps_its_last_update(server: ApiServer) -> None:
    current = existing(server, changed(RUN, "spec/algorithm/scheduler", {"kind": "Linear"}), "falling")
    ((field, message),) = put(server, changed(current, "spec/algorithm/updates", 200)).causes
    assert field == "spec.algorithm.updates"
    assert "cannot change in a run that exists with scheduler.kind Linear: learning rates" in message


def test_a_status_is_written_apart_from_its_spec(server: ApiServer) -> None:
    current = existing(server, ROLLOUT, "apart")
    spoiled = changed(current, "spec/sandbox", "other") | {"status": {"attempt": 2}}
    answer = server.send("PUT", path_of("Rollout", "apart", subresource="status"), spoiled)
    assert answer.code == 200
    assert answer.body["spec"] == current["spec"]
    assert answer.body["status"] == {"attempt": 2}
    assert answer.body["metadata"]["generation"] == 1


def test_a_status_gets_no_defaults(server: ApiServer) -> None:
    """What is not known yet is absent, and an operator that writes nothing new changes nothing."""
    existing(server, ROLLOUT, "bare")
    body = server.send("GET", path_of("Rollout", "bare")).body
    assert "status" not in body
    answer = server.send("PUT", path_of("Rollout", "bare", subresource="status"), {**body, "status": {}})
    assert answer.body["status"] == {}


def condition(kind: str, **fields: str) -> dict[str, str]:
    return {"type": kind, "status": "True", "reason": "Because", **fields}


def apply_status(server: ApiServer, manager: str, status: dict[str, Any]) -> Answer:
    body = {
        "apiVersion": RUN["apiVersion"],
        "kind": "TrainingRun",
        "metadata": {"name": "shared"},
        "status": status,
    }
    return server.send(
        "PATCH",
        path_of("TrainingRun", "shared", subresource="status"),
        body,
        content="application/apply-patch+yaml",
        fieldManager=manager,
    )


def test_two_writers_of_a_status_do_not_disturb_each_other(server: ApiServer) -> None:
    existing(server, RUN, "shared")
    assert apply_status(server, "one", {"conditions": [condition("Accepted")]}).code == 200
    progress = {"update": 1, "updates": 9, "policyVersion": 1}
    assert apply_status(server, "two", {"conditions": [condition("Ready")], "progress": progress}).code == 200
    status = server.send("GET", path_of("TrainingRun", "shared")).body["status"]
    assert [each["type"] for each in status["conditions"]] == ["Accepted", "Ready"]
    assert status["progress"] == progress


def test_a_condition_comes_once_by_type(server: ApiServer) -> None:
    existing(server, RUN, "shared")
    answer = apply_status(server, "one", {"conditions": [condition("Ready"), condition("Ready")]})
    assert answer.code in (400, 422, 500)
    assert "duplicate" in answer.body["message"].lower()


def printed(cluster: Cluster, *arguments: str) -> list[list[str]]:
    text = cluster.kubectl("get", *arguments, "--namespace", NAMESPACE)
    return [re.split(r" {2,}", line.strip()) for line in text.strip().splitlines()]


def test_columns_tell_a_rollouts_story(server: ApiServer, control_plane: Cluster) -> None:
    body = existing(server, ROLLOUT, "story")
    status = {
        "attempt": 2,
        "outcome": "Scored",
        "scores": {"Reward": 0.875, "Selection": 0.75},
        "seconds": {"queued": 1.5, "execution": 12.25},
        "conditions": [condition("Started", reason="Running"), condition("Accepted", reason="Accepted")],
    }
    server.send("PUT", path_of("Rollout", "story", subresource="status"), {**body, "status": status})
    head, row = printed(control_plane, "ro", "story")
    assert head == ["NAME", "TASK", "RUN", "ATTEMPT", "OUTCOME", "SCORE", "SECONDS", "AGE"]
    assert row[:-1] == ["story", "churn", "run", "2", "Scored", "0.875", "12.25"]
    wide_head, wide = printed(control_plane, "ro", "story", "-o", "wide")
    assert wide_head[7:-1] == ["SELECTION", "QUEUED", "STARTED", "ACCEPTED", "REASON"]
    assert wide[7:11] == ["0.75", "1.5", "Running", "Accepted"]


def test_columns_tell_a_runs_and_a_tasks_story(server: ApiServer, control_plane: Cluster) -> None:
    run, task = existing(server, RUN, "story"), existing(server, TASK, "story")
    status = {
        "progress": {"update": 3, "updates": 100, "policyVersion": 3},
        "reward": {"mean": 0.25, "validFraction": 0.5},
        "best": {"score": 0.75, "path": "best/script.py", "digest": "sha256:0"},
        "conditions": [condition("Ready")],
    }
    server.send("PUT", path_of("TrainingRun", "story", subresource="status"), {**run, "status": status})
    not_ready = {"conditions": [condition("Ready", status="False", reason="NoData")]}
    server.send("PUT", path_of("MLTask", "story", subresource="status"), {**task, "status": not_ready})
    head, row = printed(control_plane, "tr", "story")
    assert head == ["NAME", "MODE", "UPDATE", "OF", "REWARD", "BEST", "READY", "AGE"]
    assert row[:-1] == ["story", "Synchronous", "3", "100", "0.25", "0.75", "True"]
    head, row = printed(control_plane, "mlt", "story")
    assert head == ["NAME", "METRIC", "READY", "REASON", "AGE"]
    assert row[:-1] == ["story", "roc_auc", "False", "NoData"]


def test_all_kinds_are_in_one_category(server: ApiServer, control_plane: Cluster) -> None:
    existing(server, TASK, "story")
    existing(server, RUN, "story")
    listed = control_plane.kubectl("get", "mlwright", "--namespace", NAMESPACE, "-o", "name")
    assert {"trainingrun.mlwright.dev/story", "mltask.mlwright.dev/story"} <= set(listed.split())


def test_rollouts_are_selected_by_run_task_and_outcome(server: ApiServer) -> None:
    body = existing(server, changed(ROLLOUT, "spec/runRef", {"name": "chosen", "uid": "u-1"}), "chosen")
    status = {"attempt": 1, "outcome": "Timeout"}
    server.send("PUT", path_of("Rollout", "chosen", subresource="status"), {**body, "status": status})
    for selector in ("spec.runRef.name=chosen", "spec.runRef.uid=u-1", "status.outcome=Timeout"):
        found = server.send(
            "GET", path_of("Rollout"), fieldSelector=f"{selector},spec.taskRef.name=churn"
        ).body
        assert [each["metadata"]["name"] for each in found["items"]] == ["chosen"], selector


def test_fields_are_explained(server: ApiServer, control_plane: Cluster) -> None:
    text = control_plane.kubectl("explain", "tr.spec.algorithm.clipRange")
    assert "Of the probability ratio to the policy at the start of the batch." in " ".join(text.split())
    assert "(left out: 0.2.)" in " ".join(text.split())
