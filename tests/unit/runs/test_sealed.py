"""Final is read once, after the end, of what was kept, and the read is logged before it happens."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Verdict
from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_sandbox.backend import TaskMounts
from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger import Ledger, Purpose, Result, Sampled
from mlwright_trainer.runs.sealed import BestScript, Exam, exams, grade_sealed


@dataclass
class CountingGrader:
    """Grades by length, and remembers what it was asked and when."""

    events: list[str] = field(default_factory=list)
    asked: list[tuple[bytes, tuple[Split, ...], bool]] = field(default_factory=list)

    def grade(
        self, task: TaskMounts, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False
    ) -> GraderResult:
        self.events.append("graded")
        self.asked.append((submission, splits, intervals))
        scores = {Split.FINAL: len(submission) / 10}
        spread = {Split.FINAL: (0.1, 0.9)} if intervals else {}
        return GraderResult(verdict=Verdict.VALID, scores=scores, intervals=spread, digest="d")


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    made = Ledger.create(tmp_path / "ledger.sqlite", {})
    for purpose in ("Before", "Train", "After"):
        made.commit_round([sampled(purpose, position) for position in range(3)])
    for purpose in ("before", "after"):
        close(made, f"{purpose}-0", Outcome.SCORED, b"abc")
        close(made, f"{purpose}-1", Outcome.ERROR, None)
        close(made, f"{purpose}-2", Outcome.INVALID_SUBMISSION, b"kept, but not valid")
    close(made, "train-0", Outcome.SCORED, b"never kept for the exam")
    return made


def sampled(purpose: Any, position: int) -> Sampled:
    kind: Purpose = purpose
    return Sampled(
        id=f"{purpose.lower()}-{position}",
        purpose=kind,
        round=0,
        position=position,
        task="coins",
        prompt_kind="draft",
        parent=None,
        prompt_tokens=(1,),
        response_tokens=(2,),
        logprobs=(-1.0,),
        spans=(VersionSpan(0, 0, 1),),
        response="",
        script="print()",
        tree="t",
    )


def close(ledger: Ledger, name: str, outcome: Outcome, submission: bytes | None) -> None:
    ledger.close_rollout(name, Result(RolloutStatus(outcome=outcome), 0.0, submission=submission))


def mounts(tmp_path: Path, *, sealed: bool = True) -> dict[str, TaskMounts]:
    spec: Any = None  # neither side looks at it here
    folder = tmp_path / "sealed" if sealed else None
    return {"coins": TaskMounts("coins", spec, tmp_path / "public", tmp_path / "private", folder)}


def best(ledger: Ledger, submission: bytes | None = b"12345") -> BestScript:
    return BestScript("best", ledger.rollout("train-0"), submission)


def test_the_best_script_and_every_valid_fresh_sample_sit_the_exam(ledger: Ledger, tmp_path: Path) -> None:
    papers = list(exams(ledger, tasks=mounts(tmp_path), best=[best(ledger)]))
    assert [paper.subject for paper in papers] == ["best", "before-0", "after-0"]
    assert papers[0].rollout == "train-0"


def test_training_rows_do_not_sit_it(ledger: Ledger, tmp_path: Path) -> None:
    papers = exams(ledger, tasks=mounts(tmp_path), best=[])
    assert not any(paper.subject.startswith("train") for paper in papers)


def test_a_task_without_sealed_answers_has_no_exam(ledger: Ledger, tmp_path: Path) -> None:
    assert list(exams(ledger, tasks=mounts(tmp_path, sealed=False), best=[best(ledger)])) == []


def test_a_best_script_that_wrote_nothing_the_second_time_is_left_out(ledger: Ledger, tmp_path: Path) -> None:
    papers = exams(ledger, tasks=mounts(tmp_path), best=[best(ledger, None)])
    assert "best" not in [paper.subject for paper in papers]


def papers(tmp_path: Path) -> list[Exam]:
    task = mounts(tmp_path)["coins"]
    return [
        Exam("best", "train-0", task, b"12345", interval=True),
        Exam("after-0", "after-0", task, b"abc", interval=False),
    ]


def test_only_final_is_asked_for_and_only_the_best_gets_an_interval(tmp_path: Path) -> None:
    grader = CountingGrader()
    scores = grade_sealed(papers(tmp_path), grader=grader, log_read=lambda *_: None)
    assert sorted(grader.asked) == [(b"12345", (Split.FINAL,), True), (b"abc", (Split.FINAL,), False)]
    assert [(score.subject, score.score, score.interval) for score in scores] == [
        ("best", 0.5, (0.1, 0.9)),
        ("after-0", 0.3, None),
    ]


def test_the_read_is_logged_once_a_task_before_anything_is_graded(tmp_path: Path) -> None:
    grader = CountingGrader()
    grade_sealed(
        papers(tmp_path), grader=grader, log_read=lambda sealed, _: grader.events.append(sealed.name)
    )
    assert grader.events == ["sealed", "graded", "graded"]


def test_the_logged_digest_depends_on_every_submission(tmp_path: Path) -> None:
    digests: list[str] = []
    for count in (1, 2):
        grade_sealed(
            papers(tmp_path)[:count],
            grader=CountingGrader(),
            log_read=lambda _, digest: digests.append(digest),
        )
    assert len(set(digests)) == 2
    assert all(digest.startswith("sha256:") for digest in digests)


def test_a_read_that_cannot_be_logged_does_not_happen(tmp_path: Path) -> None:
    grader = CountingGrader()

    def refuse(*_: object) -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        grade_sealed(papers(tmp_path), grader=grader, log_read=refuse)
    assert grader.asked == []
