"""A small task with real data files, and backends that run it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

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
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_sandbox.local import LocalBackend, open_backend

SOLUTION = """
import pandas as pd
from sklearn.linear_model import LogisticRegression
train, test = pd.read_csv("data/train.csv"), pd.read_csv("data/test.csv")
model = LogisticRegression()
model.fit(train[["x"]], train["target"])
predictions = model.predict_proba(test[["x"]])[:, 1]
pd.DataFrame({"id": test["id"], "target": predictions}).to_csv("submission.csv", index=False)
"""


def make_task(root: Path, *, name: str = "small", timeout: float = 20) -> TaskMounts:
    public, private = root / "public", root / "private"
    public.mkdir(parents=True)
    private.mkdir()
    x = {number: (number * 37) % 101 / 101 for number in range(120)}
    target = {number: int(x[number] + ((number * 13) % 7) / 20 > 0.6) for number in x}
    held_out = range(60, 120)
    split = {number: "Reward" if number % 2 else "Selection" for number in held_out}
    _write(public / "train.csv", "id,x,target", [f"{n},{x[n]},{target[n]}" for n in range(60)])
    _write(public / "test.csv", "id,x", [f"{n},{x[n]}" for n in held_out])
    _write(public / "sample_submission.csv", "id,target", [f"{n},0.5" for n in held_out])
    _write(private / "answers.csv", "id,target,split", [f"{n},{target[n]},{split[n]}" for n in held_out])
    spec = MLTaskSpec(
        title="Small",
        description="Predict target from x.",
        metric=MetricSpec(name="roc_auc"),
        submission=SubmissionSpec(target_columns=["target"], kind=SubmissionKind.PROBABILITIES),
        limits=TaskLimits(timeout_seconds=timeout, memory=Quantity("512Mi"), work_size=Quantity("64Mi")),
        reference=TaskReference(baseline=0.5),
    )
    return TaskMounts(name, spec, public, private)


def _write(path: Path, header: str, lines: list[str]) -> None:
    path.write_text("\n".join([header, *lines]) + "\n")


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskMounts:
    return make_task(tmp_path_factory.mktemp("small") / "task")


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., TaskMounts]:
    """Makes further tasks."""
    return lambda **values: make_task(tmp_path_factory.mktemp("further") / "task", **values)


@pytest.fixture(scope="session")
def solution() -> str:
    return SOLUTION


@pytest.fixture(scope="session")
def two_slots() -> Iterator[LocalBackend]:
    with open_backend("namespaces", slots=2) as backend:
        yield backend


@pytest.fixture(scope="session", params=["namespaces", "lock"])
def backend(request: pytest.FixtureRequest) -> Iterator[LocalBackend]:
    """Each kind of isolation in turn."""
    with open_backend(request.param, slots=1) as opened:
        yield opened


Run = Callable[..., Finished]


@pytest.fixture(scope="session")
def run(task: TaskMounts) -> Run:
    """Run one script to its end."""

    def run_one(backend: LocalBackend, script: str, *, on: TaskMounts = task, **options: object) -> Finished:
        request = SandboxRequest(rollout="one", task=on, script=script, **{"seed": 1, **options})  # type: ignore[arg-type]  # options of the request
        backend.submit(request)
        (finished,) = backend.collect(timeout=120)
        return finished

    return run_one
