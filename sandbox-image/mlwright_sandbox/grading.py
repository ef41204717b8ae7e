"""From a submission's bytes and a task's answers to a verdict, a reason and scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter

import numpy as np
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Verdict

from mlwright_sandbox.answers import SplitAnswers, TaskAnswers, load_answers
from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError, MissingSubmission
from mlwright_sandbox.intervals import Rows, bootstrap_interval
from mlwright_sandbox.metrics import score
from mlwright_sandbox.metrics.columns import Column
from mlwright_sandbox.predictions import read_predictions
from mlwright_sandbox.reasons import about, one_line
from mlwright_sandbox.submission import read_submission
from mlwright_sandbox.trivial import trivial_reason

Scorer = Callable[[Rows], float]
"""The score over some rows of a split."""


def answers_for(task: TaskMounts, splits: Sequence[Split]) -> TaskAnswers:
    """The answers of the asked splits; the sealed ones are opened only for Final."""
    return load_answers(task, sealed=Split.FINAL in splits)


def grade_folder(
    answers: TaskAnswers, work_fd: int, splits: Sequence[Split], *, intervals: bool = False
) -> GraderResult:
    """Grade what a script left in the work folder behind `work_fd`.

    Errors: AnswersError where the task is at fault; OSError where the machine is.
    """
    start = perf_counter()
    try:
        content = read_submission(work_fd, answers.spec.submission.file_name, cap=answers.cap)
    except MissingSubmission as error:
        return _refusal(Verdict.MISSING, str(error), start)
    except InvalidSubmissionError as error:
        return _refusal(Verdict.INVALID, str(error), start)
    return grade_bytes(answers, content, splits, intervals=intervals, start=start)


def grade_bytes(
    answers: TaskAnswers,
    content: bytes,
    splits: Sequence[Split],
    *,
    intervals: bool = False,
    start: float | None = None,
) -> GraderResult:
    """Grade the bytes of a submission: pure, but for the clock (and a task's own grade.py).

    Errors: AnswersError where the task is at fault.
    """
    begun = perf_counter() if start is None else start
    digest = hashlib.sha256(content).hexdigest()
    try:
        if len(content) > answers.cap:
            raise InvalidSubmissionError(f"has {len(content):,} bytes; at most {answers.cap:,} are read")
        predictions = read_predictions(content, answers.expected)
        scorers = _scorers(answers, predictions, splits)
        scores = {split: scorer(_all_rows(answers, split)) for split, scorer in scorers.items()}
    except InvalidSubmissionError as error:
        return _refusal(Verdict.INVALID, about(answers.spec.submission.file_name, str(error)), begun, digest)
    trivial = trivial_reason(answers.spec, predictions, answers.sample)
    return GraderResult(
        verdict=Verdict.VALID if trivial is None else Verdict.TRIVIAL,
        reason=trivial or "",
        scores=scores,
        intervals=_intervals(answers, scorers) if intervals else {},
        digest=digest,
        grading_seconds=perf_counter() - begun,
    )


def _refusal(verdict: Verdict, reason: str, start: float, digest: str = "") -> GraderResult:
    return GraderResult(
        verdict=verdict, reason=one_line(reason), digest=digest, grading_seconds=perf_counter() - start
    )


def _all_rows(answers: TaskAnswers, split: Split) -> Rows:
    return np.arange(len(answers.splits[split].rows))


def _scorers(
    answers: TaskAnswers, predictions: Mapping[str, Column], splits: Sequence[Split]
) -> dict[Split, Scorer]:
    missing = [split for split in splits if split not in answers.splits]
    if missing:
        raise AnswersError(f"the task has no answers for {missing[0]}")
    make = _registered_scorer if answers.grader is None else _own_scorer
    return {split: make(answers, predictions, answers.splits[split]) for split in splits}


def _registered_scorer(
    answers: TaskAnswers, predictions: Mapping[str, Column], truth: SplitAnswers
) -> Scorer:
    guess = _taken(predictions, truth.rows)
    return lambda rows: score(answers.spec, _taken(truth.columns, rows), _taken(guess, rows))


def _own_scorer(answers: TaskAnswers, predictions: Mapping[str, Column], truth: SplitAnswers) -> Scorer:
    """A task's own grader; pandas is imported only for those."""
    from mlwright_sandbox.own_grader import frame, load_grade, own_score

    assert answers.grader is not None
    grade = load_grade(answers.grader)
    identifiers = answers.expected.identifiers
    ids = [identifiers.ids[place] for place in truth.rows]
    name, whole = answers.spec.submission.id_column, identifiers.whole
    guess = frame(name, ids, _taken(predictions, truth.rows), numeric_ids=whole)
    known = frame(name, ids, truth.columns, numeric_ids=whole)

    def scorer(rows: Rows) -> float:
        chosen = [each.iloc[rows].reset_index(drop=True) for each in (guess, known)]
        return own_score(grade, *chosen)

    return scorer


def _taken(columns: Mapping[str, Column], rows: Rows) -> dict[str, Column]:
    return {name: column[rows] for name, column in columns.items()}


def _intervals(answers: TaskAnswers, scorers: Mapping[Split, Scorer]) -> dict[Split, tuple[float, float]]:
    found = {
        split: bootstrap_interval(scorer, len(answers.splits[split].rows))
        for split, scorer in scorers.items()
    }
    return {split: interval for split, interval in found.items() if interval is not None}
