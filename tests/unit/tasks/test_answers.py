"""Answers are read as text, with the columns and splits that belong to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mlwright_api.mltask import Split, SubmissionKind, SubmissionSpec
from mlwright_trainer.tasks.answers import AnswersError, read_answers, read_ids

SPEC = SubmissionSpec(target_columns=["y"], kind=SubmissionKind.VALUES)


def _file(root: Path, folder: str, text: str) -> Path:
    path = root / folder / "answers.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_private_and_sealed_answers_are_one_table(tmp_path: Path) -> None:
    private = _file(tmp_path, "private", "id,y,split\n01,1.50,Reward\n2,NA,Selection\n")
    sealed = _file(tmp_path, "sealed", "split,id,y\nFinal,3,7\n")
    answers = read_answers([private, sealed], submission=SPEC)

    assert answers.ids == ["01", "2", "3"]
    assert answers.splits == ["Reward", "Selection", "Final"]
    assert list(answers.targets["y"]) == ["1.50", "NA", "7"]
    assert answers.counts() == {"Reward": 1, "Selection": 1, "Final": 1}
    assert answers.of(Split.FINAL, Split.REWARD).ids == ["01", "3"]


def test_numbers_are_numbers_only_where_a_whole_column_is(tmp_path: Path) -> None:
    words = read_answers(
        [_file(tmp_path, "private", "id,y,split\n1,1.0,Reward\n2,a,Reward\n")], submission=SPEC
    )
    numbers = read_answers(
        [_file(tmp_path, "private", "id,y,split\n1,1.0,Reward\n2,3,Reward\n")], submission=SPEC
    )

    assert list(words.values["y"]) == ["1.0", "a"]
    assert list(numbers.values["y"]) == [1.0, 3.0]


def test_the_answers_are_their_own_perfect_submission(tmp_path: Path) -> None:
    answers = read_answers(
        [_file(tmp_path, "private", "id,y,split\n1,a,Reward\n2,b,Reward\n")], submission=SPEC
    )

    assert answers.submission_csv() == b"id,y\n1,a\n2,b\n"
    assert answers.submission_csv(order=np.array([1, 0])) == b"id,y\n2,b\n1,a\n"


@pytest.mark.parametrize(
    ("folder", "text", "said"),
    [
        ("private", "id,y\n1,2\n", "no column 'split'"),
        ("private", "id,split\n1,Reward\n", "no column 'y'"),
        ("private", "id,y,split\n1,2,Final\n", "'Final' (allowed here: Reward, Selection)"),
        ("sealed", "id,y,split\n1,2,Reward\n", "'Reward' (allowed here: Final)"),
        ("private", "id,y,split\n1,2,reward\n", "'reward' (allowed here"),
        ("private", "", "not a CSV file"),
        ("private", 'id,y,split\n1,"2,Reward\n', "not a CSV file"),
    ],
)
def test_wrong_answers_are_refused_with_the_file_and_the_reason(
    tmp_path: Path, folder: str, text: str, said: str
) -> None:
    path = _file(tmp_path, folder, text)
    with pytest.raises(AnswersError) as caught:
        read_answers([path], submission=SPEC)

    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sample.csv"
    path.write_bytes("id,y\n1,é\n".encode("latin-1"))

    with pytest.raises(AnswersError, match="not a CSV file in UTF-8"):
        read_ids(path, "id")
