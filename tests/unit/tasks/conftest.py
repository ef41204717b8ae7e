"""A small made-up task for the tests: 400 rows that can be learned from, written in milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult
from mlwright_sandbox.answers import load_answers
from mlwright_sandbox.grading import grade_bytes
from mlwright_trainer.tasks.folder import TaskFolder, load_task
from mlwright_trainer.tasks.splitting import (
    SplitSizes,
    TaskTables,
    assign_splits,
    shuffled_ids,
    write_tables,
)

ROWS = 400

MANIFEST = """\
apiVersion: mlwright.dev/v1alpha1
kind: MLTask
metadata:
  name: made-up
spec:
  title: Made up
  description: Predict.
  metric:
    name: {metric}
  submission:
    targetColumns: [{targets}]
    kind: {kind}
  limits:
    timeoutSeconds: 10
  reference:
    baseline: {baseline}
    best: {best}
"""


def made_up_table() -> pd.DataFrame:
    """Features and three targets: a class, a number and a word; the same at every call."""
    random = np.random.default_rng(7)
    weight, height = random.normal(size=ROWS).round(4), random.normal(size=ROWS).round(4)
    shade = random.choice(["red", "green", "blue"], ROWS)
    size = (2 * weight + height + random.normal(scale=0.5, size=ROWS)).round(3)
    return pd.DataFrame(
        {
            "weight": weight,
            "height": height,
            "shade": shade,
            "size": size,
            "big": (size > 0.5).astype(int),
            "kind": np.where(size > 1, "large", np.where(size < -1, "small", "middle")),
        }
    )


def write_made_up(
    root: Path, *, target: str = "big", constant: float | str = 0.5, sizes: SplitSizes | None = None
) -> None:
    """public/, private/ and sealed/ below `root`."""
    table = made_up_table()
    targets = table[[target]]
    strata = table["kind"].tolist()
    write_tables(
        root,
        TaskTables(table[["weight", "height", "shade"]], targets, targets, {target: constant}),
        ids=shuffled_ids(ROWS, seed=1),
        splits=assign_splits(ROWS, sizes or SplitSizes(4, 2, 2, 2), seed=1, stratify=strata),
    )


@pytest.fixture
def made_up(tmp_path: Path) -> Callable[..., TaskFolder]:
    """Makes a task folder that stands: `made_up(target="big", metric="roc_auc", ...)`."""

    def build(
        *,
        target: str = "big",
        metric: str = "roc_auc",
        kind: str = "Probabilities",
        constant: float | str = 0.5,
        reference: Mapping[str, float] | None = None,
        name: str = "made-up",
    ) -> TaskFolder:
        scores = {"baseline": 0.5, "best": 0.9} | dict(reference or {})
        root = tmp_path / name
        root.mkdir()
        (root / "task.yaml").write_text(MANIFEST.format(metric=metric, targets=target, kind=kind, **scores))
        write_made_up(root, target=target, constant=constant)
        return load_task(root)

    return build


@pytest.fixture
def task(made_up: Callable[..., TaskFolder]) -> TaskFolder:
    """The binary one."""
    return made_up()


def grade_here(
    task: TaskFolder, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False
) -> GraderResult:
    """The grader's own code, without its process."""
    answers = load_answers(task.mounts(), sealed=Split.FINAL in splits)
    return grade_bytes(answers, submission, splits, intervals=intervals)


@pytest.fixture
def grade() -> Callable[..., GraderResult]:
    """`grade(task, submission, splits)` in this process."""
    return grade_here
