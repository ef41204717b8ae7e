"""Tasks for the tests of this folder: on disk, and as answers in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import MetricSpec, MLTaskSpec, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_sandbox.answers import TaskAnswers, build_answers
from mlwright_sandbox.backend import TaskMounts

MakeAnswers = Callable[..., TaskAnswers]
MakeTask = Callable[..., TaskMounts]


def spec_of(metric: str, kind: str, targets: Sequence[str] = ("target",), **parameters: Any) -> MLTaskSpec:
    return MLTaskSpec(
        title="task",
        description="-",
        metric=MetricSpec(name=metric, **parameters),
        submission=SubmissionSpec(target_columns=list(targets), kind=SubmissionKind(kind)),
        reference=TaskReference(baseline=0),
    )


@pytest.fixture
def make_answers() -> MakeAnswers:
    """make_answers(metric, kind, truth, sample, ids=...): rows take turns in Reward and Selection."""

    def make(
        metric: str,
        kind: str,
        truth: Sequence[object],
        sample: Sequence[object],
        *,
        ids: Sequence[object] | None = None,
        grader: Path | None = None,
        **parameters: Any,
    ) -> TaskAnswers:
        names = ids or range(1, len(truth) + 1)
        answers = [
            f"{name},{value},{('Reward', 'Selection')[place % 2]}"
            for place, (name, value) in enumerate(zip(names, truth, strict=True))
        ]
        shown = [f"{name},{value}" for name, value in zip(names, sample, strict=True)]
        return build_answers(
            spec_of(metric, kind, **parameters),
            sample="\n".join(["id,target", *shown]).encode(),
            private="\n".join(["id,target,split", *answers]).encode(),
            complete=True,
            grader=grader,
        )

    return make


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """make_task(private=..., sealed=..., sample=...): a task folder from lines; RMSE of `target` unless told."""

    def make(
        *,
        sample: Sequence[str] = ("id,target", "1,0", "2,0", "3,0", "4,0", "5,0", "6,0"),
        private: Sequence[str] = (
            "id,target,split",
            "1,1,Reward",
            "2,2,Reward",
            "3,3,Selection",
            "4,4,Selection",
        ),
        sealed: Sequence[str] | None = ("id,target,split", "5,5,Final", "6,6,Final"),
        spec: MLTaskSpec | None = None,
        grade: str | None = None,
    ) -> TaskMounts:
        folders = {name: tmp_path / name for name in ("public", "private", "sealed")}
        for folder in folders.values():
            folder.mkdir(exist_ok=True)
        (folders["public"] / "sample_submission.csv").write_text("\n".join(sample))
        (folders["private"] / "answers.csv").write_text("\n".join(private))
        if sealed is not None:
            (folders["sealed"] / "answers.csv").write_text("\n".join(sealed))
        if grade is not None:
            (tmp_path / "grade.py").write_text(grade)
        return TaskMounts(
            name="task",
            spec=spec or spec_of("rmse", "Values"),
            public=folders["public"],
            private=folders["private"],
            sealed=None if sealed is None else folders["sealed"],
            grader=None if grade is None else tmp_path / "grade.py",
        )

    return make
