"""The sealed grading: Final is read once, after the run has ended, and every read is written down."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mlwright_api.mltask import Split
from mlwright_sandbox.backend import Grader, TaskMounts

from mlwright_trainer.ledger import LedgerReader, RolloutRow, SealedScore

GRADINGS_AT_ONCE = 2
LogRead = Callable[[Path, str], None]
"""Told of a task's sealed folder and the digest of all that is about to be graded on it."""


@dataclass(frozen=True)
class BestScript:
    """A task's best script, run once more: `submission` is what it wrote then (None: it wrote nothing valid)."""

    subject: str
    row: RolloutRow
    submission: bytes | None


@dataclass(frozen=True)
class Exam:
    """One submission to be graded on Final; `interval` asks for a bootstrap over the split's rows."""

    subject: str
    rollout: str
    mounts: TaskMounts
    submission: bytes
    interval: bool


def exams(
    ledger: LedgerReader, *, tasks: Mapping[str, TaskMounts], best: Sequence[BestScript]
) -> Iterator[Exam]:
    """The best scripts' submissions and every kept, valid, fresh sample; tasks without sealed answers are left out."""
    for script in best:
        if script.submission is not None and tasks[script.row.task].sealed is not None:
            yield Exam(
                script.subject, script.row.id, tasks[script.row.task], script.submission, interval=True
            )
    for row in [*ledger.rollouts("Before"), *ledger.rollouts("After")]:
        submission = ledger.submission(row.id)
        valid = row.outcome is not None and row.outcome.valid
        if valid and submission is not None and tasks[row.task].sealed is not None:
            yield Exam(row.id, row.id, tasks[row.task], submission, interval=False)


def grade_sealed(papers: Sequence[Exam], *, grader: Grader, log_read: LogRead) -> list[SealedScore]:
    """Final scores of all papers, each read logged first; the caller records them in one go."""
    for sealed in sorted({paper.mounts.sealed for paper in papers if paper.mounts.sealed is not None}):
        log_read(sealed, _digest([paper for paper in papers if paper.mounts.sealed == sealed]))
    with ThreadPoolExecutor(GRADINGS_AT_ONCE) as pool:
        return list(pool.map(lambda paper: _graded(paper, grader), papers))


def _graded(paper: Exam, grader: Grader) -> SealedScore:
    result = grader.grade(paper.mounts, paper.submission, (Split.FINAL,), intervals=paper.interval)
    return SealedScore(
        subject=paper.subject,
        rollout=paper.rollout,
        digest=result.digest,
        verdict=str(result.verdict),
        reason=result.reason,
        score=result.scores.get(Split.FINAL),
        interval=result.intervals.get(Split.FINAL),
    )


def _digest(papers: Sequence[Exam]) -> str:
    total = hashlib.sha256()
    for paper in papers:
        total.update(hashlib.sha256(paper.submission).digest())
    return f"sha256:{total.hexdigest()}"
