"""The sealed grading: Final is read once, after the run has ended, and every read is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult
from mlwright_sandbox.backend import Grader, TaskMounts

from mlwright_trainer.ledger import LedgerReader, RolloutRow, SealedScore


@dataclass(frozen=True)
class BestScript:
    """A task's best script, run once more: `submission` is what it wrote then (None: it wrote nothing valid)."""

    subject: str
    row: RolloutRow
    submission: bytes | None


def grade_sealed(
    *, ledger: LedgerReader, tasks: Mapping[str, TaskMounts], best: Sequence[BestScript], grader: Grader
) -> Iterator[SealedScore]:
    """Final scores of every kept fresh sample and of the best scripts; the caller records them in one go.

    The best scripts get a bootstrap interval over the split's rows. Tasks without sealed answers are left out.
    """
    for script in best:
        mounts = tasks[script.row.task]
        if mounts.sealed is not None and script.submission is not None:
            result = grader.grade(mounts, script.submission, (Split.FINAL,), intervals=True)
            yield _sealed(script.subject, script.row.id, result)
    for row in [*ledger.rollouts("Before"), *ledger.rollouts("After")]:
        submission = ledger.submission(row.id)
        mounts = tasks[row.task]
        if (
            mounts.sealed is not None
            and submission is not None
            and row.outcome is not None
            and row.outcome.valid
        ):
            yield _sealed(row.id, row.id, grader.grade(mounts, submission, (Split.FINAL,)))


def _sealed(subject: str, rollout: str, result: GraderResult) -> SealedScore:
    return SealedScore(
        subject=subject,
        rollout=rollout,
        digest=result.digest,
        verdict=str(result.verdict),
        reason=result.reason,
        score=result.scores.get(Split.FINAL),
        interval=result.intervals.get(Split.FINAL),
    )
