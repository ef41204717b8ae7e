"""The hostile table and a sample of bad submissions in real pods: the same outcomes as on one machine.

A third of the table by default; `MLWRIGHT_ALL_ROWS=1` runs all of it, as every night.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from local_pod import SUBMIT
from mlwright_api.mltask import Split, TaskLimits
from mlwright_api.quantities import Quantity
from mlwright_api.rollout import Outcome, RolloutStatus, ScriptFile
from mlwright_cluster.errors import CommandFailed
from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.grading import grade_bytes
from node_lab import Lab, rollout, with_config_maps
from operator_process import ROOT, create
from pydantic import ValidationError

pytestmark = [pytest.mark.node, pytest.mark.timeout(1800)]

SECURITY = ROOT / "tests/security"
ROWS: list[dict[str, Any]] = tomllib.loads((SECURITY / "hostile_scripts.toml").read_text())["rows"]
ALL = os.environ.get("MLWRIGHT_ALL_ROWS", "") not in ("", "0")
CARRIED = [row for row in ROWS if "generate" not in row or row["generate"] == "nested"]
CHOSEN = CARRIED if ALL else CARRIED[::3]
LIMITS = TaskLimits(
    timeout_seconds=10, cpu=Quantity("300m"), memory=Quantity("512Mi"), work_size=Quantity("64Mi")
)
SPLITS = (Split.REWARD, Split.SELECTION)
HOSTILE, BAD = "hostile", "bad"
FACTS = {
    "private": "/private",
    "checkout": str(ROOT),
    "secret_name": "KUBERNETES_SERVICE_HOST",
    "socket": "/run/containerd/containerd.sock",
    "abstract": "mlwright-test",
}
"""What the rows look for, where it would be in a pod; the service's address is in every container's environment."""
DENIED = {
    "AnswersAbsent",
    "ApiServerUnreachable",
    "MetadataUnreachable",
    "ControlUnreachable",
    "NoTracing",
    "NoMounts",
}
"""Checks of every pod's receipt."""
BENIGN = f"{SUBMIT}\nimport os, random\nprint(sorted(os.listdir('.')), os.listdir('/tmp'), random.random())\n"
BEFORE, AFTER = "benign before", "benign after"


@cache
def table(module: str) -> ModuleType:
    """A module of tests/security, for its tables."""
    spec = util.spec_from_file_location(module, SECURITY / f"{module}.py")
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[module] = util.module_from_spec(spec)  # Dataclasses look themselves up.
    spec.loader.exec_module(made)
    return made


def object_name(name: str) -> str:
    letters = "".join(letter if letter.isalnum() else " " for letter in name.lower())
    return "-".join(letters.split())[:60].strip("-")


def script_of(row: dict[str, Any]) -> str:
    if "generate" in row:
        return "(" * 60_000 + ")" * 60_000
    script: str = row["script"]
    for key, value in FACTS.items():
        script = script.replace("{" + key + "}", value)
    return script


@pytest.fixture(scope="module")
def hostile_lab(lab: Lab, small: TaskMounts, tmp_path_factory: pytest.TempPathFactory) -> Lab:
    """The lab with a task of little time, and one of six rows."""
    spec = small.spec.model_copy(update={"limits": LIMITS})
    of_six_rows = six_rows(tmp_path_factory.mktemp("six"))
    lab.apply(
        *with_config_maps(lab.namespace, HOSTILE, TaskMounts(HOSTILE, spec, small.public, small.private))
    )
    lab.apply(*with_config_maps(lab.namespace, BAD, of_six_rows))
    lab.ready(HOSTILE)
    lab.ready(BAD)
    return lab


def six_rows(folder: Path) -> TaskMounts:
    """The data of `CHURN` in test_bad_submissions.py."""
    (folder / "public").mkdir()
    (folder / "private").mkdir()
    targets = [0, 0, 1, 1, 0, 1]
    numbered = list(enumerate(targets, start=1))
    answers = [f"{i},{target},{('Reward', 'Selection')[i % 2]}" for i, target in numbered]
    (folder / "private/answers.csv").write_text("\n".join(["id,churn,split", *answers]) + "\n")
    sample = [f"{i},0.5" for i, _ in numbered]
    (folder / "public/sample_submission.csv").write_text("\n".join(["id,churn", *sample]) + "\n")
    spec = table("test_bad_submissions").CHURN.spec.model_copy(update={"limits": LIMITS})
    return TaskMounts(BAD, spec, folder / "public", folder / "private")


@pytest.fixture(scope="module")
def ends(hostile_lab: Lab) -> Iterator[dict[str, RolloutStatus]]:
    """What became of every chosen row, all run beside each other, with a well-behaved script before and after."""
    start(hostile_lab, HOSTILE, {BEFORE: BENIGN})
    found = {BEFORE: hostile_lab.ended(object_name(BEFORE))}
    start(hostile_lab, HOSTILE, {row["name"]: script_of(row) for row in CHOSEN})
    for row in CHOSEN:
        found[row["name"]] = hostile_lab.ended(object_name(row["name"]), seconds=1200)
    start(hostile_lab, HOSTILE, {AFTER: BENIGN})
    found[AFTER] = hostile_lab.ended(object_name(AFTER))
    yield found
    hostile_lab.cluster.kubectl("delete", "rollouts", "--all", "-n", hostile_lab.namespace)


def start(lab: Lab, task: str, scripts: dict[str, str]) -> None:
    digest = lab.digest(task)
    create(
        lab.cluster,
        *(
            rollout(lab.namespace, object_name(name), task=task, digest=digest, script=script)
            for name, script in scripts.items()
        ),
    )


@pytest.mark.parametrize("row", CHOSEN, ids=lambda row: object_name(row["name"]))
def test_a_hostile_script_ends_in_a_pod_as_on_one_machine(
    ends: dict[str, RolloutStatus], row: dict[str, Any]
) -> None:
    status = ends[row["name"]]
    expected = row.get("pod", row["outcomes"])
    assert status.outcome in expected, (status.outcome, status.reason, status.output_tail)
    assert not [line for line in status.output_tail.splitlines() if line.startswith("LEAKED")]
    assert len(status.milestones) <= row.get("milestones", 7)
    assert status.isolation is None or status.isolation.isolated
    assert status.attempt == 1


def test_a_script_after_all_of_them_finds_the_world_as_one_before(ends: dict[str, RolloutStatus]) -> None:
    before, after = ends[BEFORE], ends[AFTER]
    assert after.outcome is Outcome.SCORED, after
    assert (after.scores, after.output_tail) == (before.scores, before.output_tail)


def test_a_script_that_no_pod_could_carry_is_refused_by_the_api(lab: Lab) -> None:
    """The row of a megabyte of nonsense."""
    digest, script = lab.digest("small"), "# " + "x" * 960_000
    with pytest.raises(CommandFailed, match="files"):
        create(lab.cluster, rollout(lab.namespace, "refused", task="small", digest=digest, script=script))


def test_a_script_that_is_no_unicode_never_becomes_a_rollout() -> None:
    with pytest.raises(ValidationError, match="unicode"):
        ScriptFile(path="script.py", content="x = '\ud800'\n")


SUBMISSIONS = [
    bad
    for bad in table("test_bad_submissions").CONTENTS
    if bad.task.spec.submission.target_columns == ["churn"]
]
CARRIED_SUBMISSIONS = [bad for bad in SUBMISSIONS if len(bad.content) < 30_000]
SAMPLE = CARRIED_SUBMISSIONS if ALL else CARRIED_SUBMISSIONS[::6]


@pytest.fixture(scope="module")
def graded(hostile_lab: Lab, ends: dict[str, RolloutStatus]) -> dict[str, RolloutStatus]:
    """What a pod's grader said of a sample of the table; the floods do not fit into a script, and stay at home."""
    scripts = {
        bad.name: f"open('submission.csv', 'wb').write(bytes.fromhex('{bad.content.hex()}'))\n"
        for bad in SAMPLE
    }
    start(hostile_lab, BAD, scripts)
    return {name: hostile_lab.ended(object_name(name), seconds=600) for name in scripts}


@pytest.mark.parametrize("bad", SAMPLE, ids=lambda bad: object_name(bad.name))
def test_a_bad_submission_is_refused_in_a_pod_with_the_same_words(
    graded: dict[str, RolloutStatus], bad: Any
) -> None:
    status = graded[bad.name]
    assert status.outcome is Outcome.INVALID_SUBMISSION, status
    assert status.reason == grade_bytes(bad.task, bad.content, SPLITS).reason == bad.reason


def test_the_probe_gets_nothing_in_a_pod_and_its_receipt_says_why(hostile_lab: Lab) -> None:
    """Addresses that answer: the API server behind its service and by itself, and the node's kubelet twice."""
    lab = hostile_lab
    node = json.loads(lab.cluster.kubectl("get", "nodes", "--output=json"))["items"][0]
    (address,) = (each["address"] for each in node["status"]["addresses"] if each["type"] == "InternalIP")
    addresses = {
        "apiServer": ["10.96.0.1", 443],
        "service": [address, 6443],
        "otherPod": ["10.244.0.1", 10250],
        "node": [address, 10250],
    }
    files = [
        {"path": "script.py", "content": (ROOT / "sandbox-image/probe/probe.py").read_text()},
        {"path": "probe.json", "content": json.dumps({"addresses": addresses})},
    ]
    made = rollout(lab.namespace, "probe", task=HOSTILE, digest=lab.digest(HOSTILE), script="")
    limits = {"timeoutSeconds": 10, "cpu": "300m", "memory": "512Mi", "workSize": "64Mi"}
    create(lab.cluster, {**made, "spec": {**made["spec"], "files": files, "limits": limits}})
    status = lab.ended("probe")
    lines: dict[str, Any] = {}
    for line in status.output_tail.splitlines():
        lines |= json.loads(line) if line.startswith("{") else {}
    assert lines["got"] == [], [lines[name] for name in lines["got"]]
    assert lines["tried"] > 50
    assert status.outcome in (Outcome.INVALID_SUBMISSION, Outcome.OVER_LIMIT, Outcome.OUT_OF_MEMORY), status
    assert status.isolation is not None
    assert {check.name for check in status.isolation.checks if check.locked} >= DENIED
    assert all(check.detail for check in status.isolation.checks), status.isolation
    said = lab.condition("rollout", "probe", "Isolated")
    assert (said["status"], said["reason"]) == ("True", "ChecksHeld")
