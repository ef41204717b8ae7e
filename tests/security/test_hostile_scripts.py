"""Every hostile script of the table is contained, rightly labelled, and without effect on the rollout after it."""

from __future__ import annotations

import os
import socket
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import (
    MetricSpec,
    MLTaskSpec,
    SubmissionKind,
    SubmissionSpec,
    TaskLimits,
    TaskReference,
)
from mlwright_api.quantities import Quantity
from mlwright_api.rollout import Outcome
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_sandbox.local import LocalBackend, open_backend

TABLE = Path(__file__).with_name("hostile_scripts.toml")
ROWS: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["rows"]
CHECKOUT = Path(__file__).parents[2]
SECRET_NAME = "MLWRIGHT_TEST_SECRET_TOKEN"
LEAKED = "LEAKED"
BENIGN = """
import os, random, sys, tempfile
import numpy as np
import pandas as pd
left = os.listdir(tempfile.gettempdir())
# The interpreter and the checkout themselves may lie beneath /tmp.
known = {path.split("/")[2] for path in (sys.executable, *sys.path) if path.startswith("/tmp/")}
assert set(left) <= known, left
assert sorted(os.listdir(".")) == ["data", "script.py"], os.listdir(".")
if os.access("/dev/shm", os.R_OK) and os.environ["HOME"] == "/tmp":
    assert not os.listdir("/dev/shm")
train, test = pd.read_csv("data/train.csv"), pd.read_csv("data/test.csv")
assert len(train) == 60
test.assign(target=(test.x + np.random.rand(len(test))) / 2)[["id", "target"]].to_csv("submission.csv", index=False)
print(random.random())
"""
GENERATED = {
    "nested": "(" * 200_000 + ")" * 200_000,
    "surrogate": "x = '\ud800'\nprint(x)\n",
    "long": "\N{BULLET} nonsense " * 60_000,
}


def ids(row: dict[str, Any]) -> str:
    name: str = row["name"]
    return name.replace(" ", "-")


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskMounts:
    root = tmp_path_factory.mktemp("task")
    public, private = root / "public", root / "private"
    public.mkdir()
    private.mkdir()
    rows = [(number, (number * 37) % 101 / 101) for number in range(120)]
    label = {number: int(x + ((number * 13) % 7) / 20 > 0.6) for number, x in rows}
    (public / "train.csv").write_text(
        "id,x,target\n" + "".join(f"{number},{x},{label[number]}\n" for number, x in rows[:60])
    )
    (public / "test.csv").write_text("id,x\n" + "".join(f"{number},{x}\n" for number, x in rows[60:]))
    (public / "sample_submission.csv").write_text(
        "id,target\n" + "".join(f"{number},0.5\n" for number, _ in rows[60:])
    )
    split = {number: "Reward" if number % 2 else "Selection" for number, _ in rows[60:]}
    (private / "answers.csv").write_text(
        "id,target,split\n"
        + "".join(f"{number},{label[number]},{split[number]}\n" for number, _ in rows[60:])
    )
    spec = MLTaskSpec(
        title="Hostile",
        description="None",
        metric=MetricSpec(name="roc_auc"),
        submission=SubmissionSpec(target_columns=["target"], kind=SubmissionKind.PROBABILITIES),
        limits=TaskLimits(timeout_seconds=3, memory=Quantity("512Mi"), work_size=Quantity("64Mi")),
        reference=TaskReference(baseline=0.5),
    )
    return TaskMounts("hostile", spec, public, private)


@pytest.fixture(scope="module", params=["namespaces", "lock"])
def backend(request: pytest.FixtureRequest, task: TaskMounts) -> Iterator[LocalBackend]:
    os.environ[SECRET_NAME] = "hunter2"
    # The lock's work folders in memory: some disks take milliseconds to remove a folder, and one row makes 2,100.
    before, tempfile.tempdir = tempfile.tempdir, "/dev/shm"
    try:
        opened = open_backend(request.param, slots=1)
    finally:
        tempfile.tempdir = before
    try:
        with opened:
            yield opened
    finally:
        del os.environ[SECRET_NAME]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Services of the host that a script must not reach: a Unix socket at a path, and an abstract one."""
    path = str(tmp_path_factory.mktemp("service") / "service.sock")
    abstract = f"mlwright-test-{os.getpid()}"
    with closing(socket.socket(socket.AF_UNIX)) as named, closing(socket.socket(socket.AF_UNIX)) as hidden:
        named.bind(path)
        hidden.bind(f"\0{abstract}")
        named.listen()
        hidden.listen()
        yield {"socket": path, "abstract": abstract}


def run(backend: LocalBackend, task: TaskMounts, script: str, name: str) -> Finished:
    backend.submit(SandboxRequest(rollout=name, task=task, script=script, seed=7))
    (finished,) = backend.collect(timeout=60)
    assert finished.rollout == name
    return finished


@pytest.fixture(scope="module")
def benign(backend: LocalBackend, task: TaskMounts) -> Finished:
    finished = run(backend, task, BENIGN, "benign")
    assert finished.status.outcome is Outcome.SCORED, finished.status
    return finished


def text_of(row: dict[str, Any], task: TaskMounts, outside: dict[str, str]) -> str:
    if "generate" in row:
        return GENERATED[row["generate"]]
    facts = {"private": str(task.private), "checkout": str(CHECKOUT), "secret_name": SECRET_NAME, **outside}
    script: str = row["script"]
    for key, value in facts.items():
        script = script.replace("{" + key + "}", value)
    return script


@pytest.mark.sandbox
@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_a_hostile_script_is_contained_and_the_next_rollout_unaffected(
    row: dict[str, Any], backend: LocalBackend, task: TaskMounts, outside: dict[str, str], benign: Finished
) -> None:
    status = run(backend, task, text_of(row, task, outside), "hostile").status
    alone = backend.kind == "Lock"
    expected = row.get("lock", row["outcomes"]) if alone else row["outcomes"]
    assert status.outcome in expected, (status.outcome, status.reason, status.output_tail)
    # A traceback shows the script's own lines, but indented.
    assert not [line for line in status.output_tail.splitlines() if line.startswith(LEAKED)]
    assert len(status.milestones) <= row.get("milestones", 7)
    assert status.isolation is not None
    assert status.isolation.isolated
    after = run(backend, task, BENIGN, "after").status
    assert after.outcome is Outcome.SCORED, (after.reason, after.output_tail)
    assert after.scores == benign.status.scores
    assert after.output_tail == benign.status.output_tail


def test_the_table_has_at_least_forty_rows_with_distinct_names() -> None:
    assert len({row["name"] for row in ROWS}) == len(ROWS) >= 40


def test_every_row_names_known_outcomes() -> None:
    for row in ROWS:
        assert {Outcome(name) for name in (*row["outcomes"], *row.get("lock", ()))}


def test_nothing_leaked_into_the_machine() -> None:
    assert not [
        path for folder in ("/tmp", "/dev/shm", "/var/tmp") for path in Path(folder).glob("mlwright-leaked*")
    ]
