"""From bytes to a verdict: what is accepted, what is trivial, which splits are scored."""

from __future__ import annotations

import codecs
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_api.mltask import Split
from mlwright_api.results import Verdict
from mlwright_sandbox.answers import TaskAnswers
from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.grading import answers_for, grade_bytes, grade_folder

BOTH = (Split.REWARD, Split.SELECTION)
MakeAnswers = Callable[..., TaskAnswers]
MakeTask = Callable[..., TaskMounts]
GOOD = b"id,target\n1,0.1\n2,0.2\n3,0.9\n4,0.8\n"


@pytest.fixture
def churn(make_answers: MakeAnswers) -> TaskAnswers:
    """Reward has the rows 1 and 3, Selection 2 and 4."""
    return make_answers("roc_auc", "Probabilities", [0, 0, 1, 1], [0.5] * 4)


def test_a_good_submission_is_valid_with_a_score_for_each_asked_split(churn: TaskAnswers) -> None:
    result = grade_bytes(churn, GOOD, BOTH)
    assert (result.verdict, result.reason) == (Verdict.VALID, "")
    assert result.scores == {Split.REWARD: 1.0, Split.SELECTION: 1.0}
    assert result.digest == hashlib.sha256(GOOD).hexdigest()
    assert result.grading_seconds > 0
    assert result.intervals == {}


def test_only_the_asked_splits_are_scored(churn: TaskAnswers) -> None:
    assert grade_bytes(churn, GOOD, (Split.SELECTION,)).scores.keys() == {Split.SELECTION}


def test_a_split_without_answers_is_the_tasks_fault(churn: TaskAnswers) -> None:
    with pytest.raises(AnswersError, match="no answers for Final"):
        grade_bytes(churn, GOOD, (Split.FINAL,))


SAME = {
    "CRLF": GOOD.replace(b"\n", b"\r\n"),
    "CR": GOOD.replace(b"\n", b"\r"),
    "no last line end": GOOD.rstrip(),
    "blank lines": GOOD.replace(b"\n", b"\n\n") + b"\r\n\n",
    "a byte-order mark": codecs.BOM_UTF8 + GOOD,
    "all quoted": b'"id","target"\n"1","0.1"\n"2","0.2"\n"3","0.9"\n"4","0.8"\n',
    "another order of rows": b"id,target\n4,0.8\n2,0.2\n3,0.9\n1,0.1\n",
    "another order of columns": b"target,id\n0.1,1\n0.2,2\n0.9,3\n0.8,4\n",
    "ids as floats": GOOD.replace(b",0", b".0,0").replace(b"4.0,", b"4.,"),
    "blanks after commas": GOOD.replace(b",", b", "),
    "blanks around ids": b"id,target\n 1 ,0.1\n2,0.2\n3,0.9\n4 ,0.8\n",
    "blanks around names": b" id , target \n1,0.1\n2,0.2\n3,0.9\n4,0.8\n",
    "scientific notation": b"id,target\n1,1e-1\n2,2E-1\n3,+.9\n4,80.0e-2\n",
}


@pytest.mark.parametrize("content", SAME.values(), ids=SAME.keys())
def test_the_same_table_written_otherwise_has_the_same_score(churn: TaskAnswers, content: bytes) -> None:
    result = grade_bytes(churn, content, BOTH)
    assert (result.verdict, result.reason) == (Verdict.VALID, "")
    assert result.scores == grade_bytes(churn, GOOD, BOTH).scores


def test_a_quoted_id_may_hold_commas_quotes_and_line_breaks(make_answers: MakeAnswers) -> None:
    ids = ['"a,b"', '"say ""hi"""', '"two\nlines"', "plain"]
    answers = make_answers("rmse", "Values", [1, 2, 3, 4], [0] * 4, ids=ids)
    content = "id,target\n" + "".join(f"{name},{value}\n" for name, value in zip(ids, "1235", strict=True))
    assert grade_bytes(answers, content.encode(), BOTH).scores == {
        Split.REWARD: 0.0,
        Split.SELECTION: pytest.approx(0.5**0.5),
    }


def test_ids_that_are_no_whole_numbers_are_compared_as_text(make_answers: MakeAnswers) -> None:
    answers = make_answers("rmse", "Values", [1, 2], [0, 0], ids=["007", "1.50"])
    assert grade_bytes(answers, b"id,target\n007,1\n1.50,9\n", BOTH).verdict is Verdict.VALID
    refused = grade_bytes(answers, b"id,target\n7,1\n1.5,9\n", BOTH)
    assert refused.reason.startswith("submission.csv has none of the 2 ids")


def test_numbers_are_read_exactly(make_answers: MakeAnswers) -> None:
    value = 0.1234567890123456789
    answers = make_answers("mae", "Values", [repr(value), 0], [0, 0])
    exact = grade_bytes(answers, f"id,target\n1,{value!r}\n2,1\n".encode(), BOTH)
    assert exact.scores[Split.REWARD] == 0.0


def test_probabilities_a_rounding_error_outside_are_clipped(churn: TaskAnswers) -> None:
    content = GOOD.replace(b"0.9", b"1.0000001").replace(b"0.1\n", b"-1e-9\n")
    assert grade_bytes(churn, content, BOTH).verdict is Verdict.VALID


def test_numeric_labels_are_equal_as_numbers(make_answers: MakeAnswers) -> None:
    answers = make_answers("accuracy", "Labels", [0, 1, 2, 1], [0] * 4)
    result = grade_bytes(answers, b"id,target\n1,0.0\n2,1.0\n3,2\n4, 1\n", BOTH)
    assert result.scores == {Split.REWARD: 1.0, Split.SELECTION: 1.0}


def test_a_rare_unknown_label_among_many_counts_as_wrong(make_answers: MakeAnswers) -> None:
    answers = make_answers("accuracy", "Labels", ["a", "b", "c", "a"], ["a"] * 4)
    result = grade_bytes(answers, b"id,target\n1,a\n2,b\n3,new\n4,a\n", BOTH)
    assert result.verdict is Verdict.VALID
    assert result.scores == {Split.REWARD: 0.5, Split.SELECTION: 1.0}


def test_a_label_that_is_called_nan_by_the_task_is_a_label(make_answers: MakeAnswers) -> None:
    answers = make_answers("accuracy", "Labels", ["None", "b", "c", "None"], ["b"] * 4)
    assert grade_bytes(answers, b"id,target\n1,None\n2,b\n3,c\n4,b\n", BOTH).scores[Split.REWARD] == 1.0


def test_an_empty_cell_is_an_answer_where_words_are_asked_for(make_answers: MakeAnswers) -> None:
    answers = make_answers("word_jaccard", "Labels", ["good", "bad"], ["x", "y"])
    result = grade_bytes(answers, b"id,target\n1,good\n2,\n", BOTH)
    assert result.scores == {Split.REWARD: 1.0, Split.SELECTION: 0.0}


def submission(*values: object) -> bytes:
    return ("id,target\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values, start=1))).encode()


def test_a_constant_is_trivial_and_still_scored(churn: TaskAnswers) -> None:
    result = grade_bytes(churn, submission(0.3, 0.3, 0.3, 0.3), BOTH)
    assert result.verdict is Verdict.TRIVIAL
    assert result.reason == "the predictions are constant: every target column has one value for all rows"
    assert result.scores == {Split.REWARD: 0.5, Split.SELECTION: 0.5}


def test_the_sample_itself_is_trivial(make_answers: MakeAnswers) -> None:
    answers = make_answers("rmse", "Values", [1, 2, 3, 4], [4, 3, 2, 1])
    result = grade_bytes(answers, submission("4.0", 3, "2e0", 1), BOTH)
    assert (result.verdict, result.reason) == (Verdict.TRIVIAL, "the predictions equal the sample submission")


def test_probabilities_in_the_order_of_the_sample_are_trivial(make_answers: MakeAnswers) -> None:
    answers = make_answers("roc_auc", "Probabilities", [0, 0, 1, 1], [0.1, 0.5, 0.2, 0.5])
    result = grade_bytes(answers, submission(0.2, 0.9, 0.3, 0.9), BOTH)
    assert result.verdict is Verdict.TRIVIAL
    assert result.reason == "the predictions order the rows as the sample submission does"


def test_probabilities_in_another_order_are_not(make_answers: MakeAnswers) -> None:
    answers = make_answers("roc_auc", "Probabilities", [0, 0, 1, 1], [0.1, 0.5, 0.2, 0.5])
    assert grade_bytes(answers, submission(0.2, 0.9, 0.3, 0.8), BOTH).verdict is Verdict.VALID


def test_values_in_the_order_of_the_sample_say_something_of_their_own(make_answers: MakeAnswers) -> None:
    answers = make_answers("rmse", "Values", [1, 2, 3, 4], [0, 1, 2, 3])
    assert grade_bytes(answers, submission(1, 2, 3, 4), BOTH).verdict is Verdict.VALID


def test_values_in_the_order_of_the_sample_are_trivial_for_a_metric_of_ranks(
    make_answers: MakeAnswers,
) -> None:
    answers = make_answers("spearman", "Values", [1, 4, 2, 3], [0, 1, 2, 3])
    assert grade_bytes(answers, submission(10, 20, 30, 40), BOTH).verdict is Verdict.TRIVIAL


def test_constant_labels_are_trivial(make_answers: MakeAnswers) -> None:
    answers = make_answers("accuracy", "Labels", ["a", "b", "c", "a"], ["b"] * 4)
    assert grade_bytes(answers, submission("a", "a", "a", "a"), BOTH).verdict is Verdict.TRIVIAL


def test_a_refused_submission_has_a_digest_and_no_score(churn: TaskAnswers) -> None:
    result = grade_bytes(churn, b"rubbish", BOTH)
    assert result.verdict is Verdict.INVALID
    assert result.digest == hashlib.sha256(b"rubbish").hexdigest()
    assert result.scores == {}


def test_bytes_above_the_cap_are_refused_unread(churn: TaskAnswers) -> None:
    result = grade_bytes(churn, b"x" * (churn.cap + 1), BOTH)
    assert result.reason == "submission.csv has 16,777,217 bytes; at most 16,777,216 are read"


def test_the_cap_grows_with_the_sample(make_answers: MakeAnswers) -> None:
    sample = ["0." + "1" * 1_000_000] * 2
    assert make_answers("rmse", "Values", [1, 2], sample).cap > 30_000_000


def test_intervals_come_where_they_are_asked_for(make_answers: MakeAnswers) -> None:
    truth = [i % 7 for i in range(200)]
    answers = make_answers("mae", "Values", truth, [0] * 200)
    content = submission(*[value + (i % 5) for i, value in enumerate(truth)])
    result = grade_bytes(answers, content, (Split.REWARD,), intervals=True)
    low, high = result.intervals[Split.REWARD]
    assert low < result.scores[Split.REWARD] < high
    assert result.intervals == grade_bytes(answers, content, (Split.REWARD,), intervals=True).intervals


def test_final_is_read_only_when_it_is_asked_for(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task()
    opened: list[str] = []
    real = Path.read_bytes

    def noting(path: Path) -> bytes:
        opened.append(f"{path.parent.name}/{path.name}")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", noting)
    answers_for(task, BOTH)
    assert opened == ["public/sample_submission.csv", "private/answers.csv"]
    answers_for(task, (Split.FINAL,))
    assert opened[2:] == ["public/sample_submission.csv", "private/answers.csv", "sealed/answers.csv"]


def test_a_work_folder_is_graded_through_its_descriptor(make_task: MakeTask, tmp_path: Path) -> None:
    task = make_task()
    work = tmp_path / "work"
    work.mkdir()
    (work / "submission.csv").write_bytes(submission(1, 2, 3, 5, 5, 7))
    descriptor = os.open(work, os.O_RDONLY)
    splits = (Split.REWARD, Split.SELECTION, Split.FINAL)
    result = grade_folder(answers_for(task, splits), descriptor, splits)
    os.close(descriptor)
    assert result.scores == {
        Split.REWARD: 0.0,
        Split.SELECTION: pytest.approx(0.5**0.5),
        Split.FINAL: pytest.approx(0.5**0.5),
    }


def test_a_missing_file_has_the_verdict_missing_and_no_digest(make_task: MakeTask, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    descriptor = os.open(work, os.O_RDONLY)
    result = grade_folder(answers_for(make_task(), BOTH), descriptor, BOTH)
    os.close(descriptor)
    assert (result.verdict, result.digest) == (Verdict.MISSING, "")
