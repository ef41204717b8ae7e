"""A task's own grade.py: what it is given, and what becomes of what it says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Verdict
from mlwright_sandbox.answers import TaskAnswers
from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.grading import grade_bytes

MakeAnswers = Callable[..., TaskAnswers]
BOTH = (Split.REWARD, Split.SELECTION)
CONTENT = b"target,id\n40,4\n10,1\n20,2\n30,3\n"


@pytest.fixture
def graded(make_answers: MakeAnswers, tmp_path: Path) -> Callable[[str], GraderResult]:
    """graded(body of grade.py): CONTENT graded by it; answers are 1 to 4, Reward has the rows 1 and 3."""

    def grade(source: str, **options: bool) -> GraderResult:
        path = tmp_path / "grade.py"
        path.write_text(source)
        answers = make_answers(
            "profit", "Values", [1, 2, 3, 4], [0, 0, 0, 0], grader=path, direction="Maximize"
        )
        return grade_bytes(answers, CONTENT, BOTH, **options)

    return grade


def test_it_gets_aligned_frames_of_one_split_with_ids_and_targets(
    graded: Callable[[str], GraderResult],
) -> None:
    result = graded(
        "import pandas as pd\n"
        "def grade(submission, answers):\n"
        "    assert list(submission.columns) == list(answers.columns) == ['id', 'target']\n"
        "    assert submission['id'].tolist() == answers['id'].tolist()\n"
        "    assert submission['id'].tolist() in ([1, 3], [2, 4])\n"
        "    assert submission.index.tolist() == [0, 1]\n"
        "    return (submission['target'] - answers['target']).sum()\n"
    )
    assert result.verdict is Verdict.VALID
    assert result.scores == {Split.REWARD: 36.0, Split.SELECTION: 54.0}


REASONS = {
    "ValueError": ("raise ValueError('bids must rise')", "submission.csv: bids must rise"),
    "ours": (
        "from mlwright_sandbox.errors import InvalidSubmissionError\n    raise InvalidSubmissionError('is too short')",
        "submission.csv is too short",
    ),
    "one of that name": (
        "class InvalidSubmissionError(Exception): pass\n    raise InvalidSubmissionError('no bids')",
        "submission.csv: no bids",
    ),
    "several lines": ("raise ValueError('a\\nb\\x1b[2J')", "submission.csv: a b\N{REPLACEMENT CHARACTER}[2J"),
    "another exception": ("return {}['x']", "submission.csv: grade.py raised KeyError: 'x'"),
    "no message": ("raise ValueError", "submission.csv: grade.py raised ValueError"),
    "no number": ("return 'good'", "submission.csv: grade.py returned str, not a number"),
    "nothing": ("return None", "submission.csv: grade.py returned NoneType, not a number"),
    "NaN": (
        "return float('nan')",
        "submission.csv: the score is nan, not a finite number (are values far too large?)",
    ),
}


@pytest.mark.parametrize(("body", "reason"), REASONS.values(), ids=REASONS.keys())
def test_whatever_it_raises_or_returns_becomes_a_one_line_reason(
    graded: Callable[[str], GraderResult], body: str, reason: str
) -> None:
    result = graded(f"def grade(submission, answers):\n    {body}\n")
    assert (result.verdict, result.reason) == (Verdict.INVALID, reason)


def test_numbers_of_numpy_are_numbers(graded: Callable[[str], GraderResult]) -> None:
    assert graded("import numpy\ndef grade(s, a): return numpy.float32(2)\n").scores[Split.REWARD] == 2.0


def test_intervals_resample_what_it_sees(graded: Callable[..., GraderResult]) -> None:
    result = graded("def grade(s, a): return s['target'].mean()\n", intervals=True)
    assert result.intervals[Split.REWARD] == (10.0, 30.0)


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("def score(s, a): return 1\n", "has no function grade"),
        ("import nowhere_to_be_found\n", "cannot be imported: ModuleNotFoundError"),
        ("def grade(:\n", "cannot be imported: SyntaxError"),
    ],
)
def test_a_grader_that_does_not_work_is_the_tasks_fault(
    graded: Callable[[str], GraderResult], source: str, complaint: str
) -> None:
    with pytest.raises(AnswersError, match=complaint):
        graded(source)
