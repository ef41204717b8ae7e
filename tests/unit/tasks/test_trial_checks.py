"""Checks by use, with the grader's own code and made-up ends of the reference solution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pytest
from mlwright_api.metric_catalog import CATALOG
from mlwright_api.mltask import Split, TaskReference
from mlwright_api.results import GraderResult, Verdict
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_sandbox.backend import Finished
from mlwright_trainer.tasks.checks import Check, Status
from mlwright_trainer.tasks.folder import TaskFolder, load_task, read_task_answers
from mlwright_trainer.tasks.trial_checks import (
    Measured,
    check_baseline,
    check_best,
    check_by_use,
    check_improvement,
    check_perfect,
    check_reference,
    check_sample,
    check_size,
    standard_errors,
)

Grade = Callable[..., GraderResult]


@dataclass
class FakeTrial:
    """Grades for real, in this process; "runs" a script by answering with a submission."""

    task: TaskFolder
    grade_with: Grade
    submission: bytes | None = None
    outcome: Outcome = Outcome.SCORED
    seconds: float = 1.0
    asked: list[tuple[Split, ...]] = field(default_factory=list)

    def grade(self, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False) -> GraderResult:
        self.asked.append(splits)
        return self.grade_with(self.task, submission, splits, intervals=intervals)

    def run(self, script: str) -> Finished:
        status = RolloutStatus(
            outcome=self.outcome, reason="why not", seconds=RolloutSeconds(execution=self.seconds)
        )
        return Finished("r", status, started_at=0.0, submission=self.submission)


def _solved(task: TaskFolder) -> bytes:
    """A good submission: the noise of the target is all that it misses."""
    test = pd.read_csv(task.public / "test.csv")
    score = 1 / (1 + np.exp(-(2 * test["weight"] + test["height"] - 0.5)))
    return test[["id"]].assign(big=score).to_csv(index=False).encode()


def _checks(task: TaskFolder, trial: FakeTrial) -> dict[str, Check]:
    return {check.name: check for check in check_by_use(task, read_task_answers(task), trial)}


@pytest.fixture
def solved(made_up: Callable[..., TaskFolder], grade: Grade) -> FakeTrial:
    """A task with a reference solution, recorded as it measures."""
    task = made_up(reference={"best": 0.98})
    (task.root / "solution.py").write_text("")
    return FakeTrial(task, grade, submission=_solved(task))


def test_a_sound_task_passes_everything(solved: FakeTrial) -> None:
    checks = _checks(solved.task, solved)

    assert {name: check.status for name, check in checks.items()} == dict.fromkeys(
        [
            "sample-grades",
            "recorded-baseline",
            "perfect-answers",
            "reference-runs",
            "ids-shuffled",
            "reference-beats-baseline",
            "recorded-best",
            "large-enough",
        ],
        Status.PASS,
    )
    assert checks["recorded-baseline"].measured == 0.5
    assert checks["recorded-best"].measured == pytest.approx(0.98, abs=0.02)


def test_final_is_only_ever_graded_for_perfect_answers(solved: FakeTrial) -> None:
    checks = _checks(solved.task, solved)

    assert [splits for splits in solved.asked if Split.FINAL in splits] == [
        (Split.REWARD, Split.SELECTION, Split.FINAL)
    ]
    assert "Final" not in checks["reference-beats-baseline"].line
    assert "Final about" in checks["large-enough"].line


def test_a_task_without_solution_warns_and_still_shuffles(task: TaskFolder, grade: Grade) -> None:
    checks = _checks(task, FakeTrial(task, grade))

    assert checks["reference-runs"].status is Status.WARN
    assert checks["ids-shuffled"].status is Status.PASS


def test_a_solution_that_fails_ends_the_checks(solved: FakeTrial) -> None:
    solved.outcome, solved.submission = Outcome.TIMEOUT, None
    checks = _checks(solved.task, solved)

    assert (checks["reference-runs"].status, checks["reference-runs"].line) == (
        Status.FAIL,
        "solution.py ended as Timeout: why not",
    )
    assert "recorded-best" not in checks


def test_a_slow_solution_is_a_warning(solved: FakeTrial) -> None:
    solved.seconds = 7.0

    assert _checks(solved.task, solved)["reference-runs"].status is Status.WARN


def test_an_invalid_sample_fails_two_checks(task: TaskFolder, grade: Grade) -> None:
    wrong = GraderResult(verdict=Verdict.INVALID, reason="has no rows")

    assert check_sample(wrong).status is Status.FAIL
    assert check_baseline(wrong, task).status is Status.FAIL


@pytest.mark.parametrize(("score", "status"), [(0.5, Status.PASS), (0.503, Status.PASS), (0.51, Status.FAIL)])
def test_the_recorded_baseline_is_the_samples_score(task: TaskFolder, score: float, status: Status) -> None:
    graded = GraderResult(verdict=Verdict.TRIVIAL, scores={Split.REWARD: score})

    assert check_baseline(graded, task).status is status


@pytest.mark.parametrize(
    ("metric", "score", "status"),
    [
        ("roc_auc", 1.0, Status.PASS),
        ("roc_auc", 0.97, Status.FAIL),
        ("rmse", 0.0, Status.PASS),
        ("rmse", 1e-3, Status.FAIL),
        ("log_loss", 1e-15, Status.PASS),
    ],
)
def test_perfect_answers_reach_the_bound(metric: str, score: float, status: Status) -> None:
    graded = GraderResult(verdict=Verdict.VALID, scores={Split.REWARD: score})

    assert check_perfect(graded, CATALOG[metric]).status is status


def test_perfect_answers_that_are_refused_fail() -> None:
    wrong = GraderResult(verdict=Verdict.INVALID, reason="ids")

    assert check_perfect(wrong, CATALOG["rmse"]).status is Status.FAIL


@pytest.mark.parametrize(
    ("metric", "reference", "sample", "status"),
    [
        ("roc_auc", 0.8, 0.5, Status.PASS),
        ("roc_auc", 0.51, 0.5, Status.WARN),
        ("roc_auc", 0.5, 0.5, Status.FAIL),
        ("rmse", 1.0, 2.0, Status.PASS),
        ("rmse", 2.1, 2.0, Status.FAIL),
    ],
)
def test_the_reference_beats_the_sample_beyond_noise(
    metric: str, reference: float, sample: float, status: Status
) -> None:
    measured = Measured(dict.fromkeys((Split.REWARD, Split.SELECTION), reference), {Split.REWARD: 0.01})
    graded = GraderResult(
        verdict=Verdict.TRIVIAL, scores=dict.fromkeys((Split.REWARD, Split.SELECTION), sample)
    )

    assert check_improvement(measured, graded, CATALOG[metric]).status is status


@pytest.mark.parametrize(
    ("found", "status"),
    [(0.9, Status.PASS), (0.885, Status.PASS), (0.80, Status.WARN), (0.95, Status.FAIL)],
)
def test_the_recorded_best_is_the_references_score(task: TaskFolder, found: float, status: Status) -> None:
    """Recorded is 0.9; more may be known of a leaderboard, less is a mistake."""
    check = check_best(Measured({Split.REWARD: found}, {Split.REWARD: 0.02}), task)

    assert (check.status, check.measured) == (status, found)


def test_a_missing_best_is_a_warning_where_the_metric_has_a_bound(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    manifest.write_text(manifest.read_text().replace("    best: 0.9\n", ""))
    check = check_best(Measured({Split.REWARD: 0.8}, {}), load_task(task.root))

    assert (check.status, check.measured) == (Status.WARN, 0.8)


def test_a_missing_best_fails_where_the_metric_has_no_bound(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    text = manifest.read_text().replace("    best: 0.9\n", "")
    manifest.write_text(text.replace("name: roc_auc", "name: profit\n    direction: Maximize"))
    (task.root / "grade.py").write_text("def grade(submission, answers): return 1.0\n")

    assert check_best(Measured({Split.REWARD: 0.8}, {}), load_task(task.root)).status is Status.FAIL


@pytest.mark.parametrize(("error", "status"), [(0.01, Status.PASS), (0.06, Status.WARN), (0.2, Status.FAIL)])
def test_noise_is_judged_by_the_way_from_baseline_to_best(error: float, status: Status) -> None:
    measured = Measured({Split.REWARD: 0.8}, {Split.REWARD: error, Split.SELECTION: error})
    counts = {"Reward": 100, "Selection": 100, "Final": 100}

    assert check_size(measured, counts, TaskReference(baseline=0.5, best=1.0)).status is status


def test_a_small_final_split_is_noisier() -> None:
    measured = Measured({Split.REWARD: 0.8}, {Split.REWARD: 0.01, Split.SELECTION: 0.01})
    counts = {"Reward": 1000, "Selection": 1000, "Final": 10}
    check = check_size(measured, counts, TaskReference(baseline=0.5, best=1.0))

    assert (check.status, "Final about 0.1 (10 rows, not graded)" in check.line) == (Status.WARN, True)


def test_splits_without_interval_are_a_warning() -> None:
    check = check_size(Measured({}, {}), {}, TaskReference(baseline=0.5, best=1.0))

    assert check.status is Status.WARN


def test_the_standard_error_is_that_of_a_normal_interval() -> None:
    graded = GraderResult(verdict=Verdict.VALID, intervals={Split.REWARD: (0.8 - 0.0196, 0.8 + 0.0196)})

    assert standard_errors(graded)[Split.REWARD] == pytest.approx(0.01, rel=1e-4)


def test_the_bootstrap_agrees_with_the_formula_for_accuracy(
    made_up: Callable[..., TaskFolder], grade: Grade
) -> None:
    task = made_up(
        target="kind", metric="accuracy", kind="Labels", constant="middle", reference={"baseline": 0.4}
    )
    graded = grade(task, task.sample.read_bytes(), (Split.REWARD,), intervals=True)
    share = graded.scores[Split.REWARD]
    expected = (share * (1 - share) / 80) ** 0.5

    assert standard_errors(graded)[Split.REWARD] == pytest.approx(expected, rel=0.15)


def test_a_grader_that_reads_rows_by_order_is_found_out(solved: FakeTrial, grade: Grade) -> None:
    def by_order(
        task: TaskFolder, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False
    ) -> GraderResult:
        graded = grade(task, submission, splits, intervals=intervals)
        first = submission.splitlines()[1].split(b",")[0]
        shift = 0.0 if first == task.sample.read_bytes().splitlines()[1].split(b",")[0] else 0.2
        return graded.model_copy(
            update={"scores": {split: score - shift for split, score in graded.scores.items()}}
        )

    solved.grade_with = by_order
    assert _checks(solved.task, solved)["ids-shuffled"].status is Status.FAIL


def test_an_interrupted_reference_is_never_called_scored(task: TaskFolder) -> None:
    finished = Finished("r", RolloutStatus(reason="nobody knows"), started_at=0.0)

    assert check_reference(finished, task).status is Status.FAIL
