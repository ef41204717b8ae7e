"""Test rows that are also training rows, with or without their answer."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from mlwright_trainer.tasks.duplicates import Duplicates, find_duplicates
from mlwright_trainer.tasks.folder import TaskFolder, read_task_answers
from mlwright_trainer.tasks.public_files import read_public


def _found(task: TaskFolder) -> list[Duplicates]:
    return find_duplicates(read_public(task.public), read_task_answers(task))


def _copy_into_train(task: TaskFolder, *, rows: int, flip: bool = False) -> None:
    """Test rows under new ids, with their answers (or the opposite)."""
    test = pd.read_csv(task.public / "test.csv").head(rows)
    answers = read_task_answers(task).table[["id", "big"]].astype(int)
    copied = test.merge(answers, on="id").assign(id=range(10_000, 10_000 + rows))
    if flip:
        copied["big"] = 1 - copied["big"]
    train = pd.read_csv(task.public / "train.csv")
    pd.concat([train, copied]).to_csv(task.public / "train.csv", index=False)


def test_a_sound_task_has_none(task: TaskFolder) -> None:
    assert _found(task) == []


def test_copied_rows_are_counted_with_their_answers(task: TaskFolder) -> None:
    _copy_into_train(task, rows=30)
    found = _found(task)

    assert {(each.file, each.rows, each.answered, each.test_rows) for each in found} == {
        ("train.csv", 30, 30, 240)
    }
    assert found[0].share == 30 / 240


def test_copied_rows_with_another_answer_tell_nothing(task: TaskFolder) -> None:
    _copy_into_train(task, rows=30, flip=True)

    assert {(each.rows, each.answered) for each in _found(task)} == {(30, 0)}


def test_the_order_of_columns_does_not_matter(task: TaskFolder) -> None:
    _copy_into_train(task, rows=5)
    train = pd.read_csv(task.public / "train.csv")
    train[list(reversed(train.columns))].to_csv(task.public / "train.csv", index=False)

    assert {each.rows for each in _found(task)} == {5}


def test_arrays_that_share_rows_are_counted(made_up: Callable[..., TaskFolder]) -> None:
    task = made_up()
    random = np.random.default_rng(0)
    train = random.integers(0, 255, size=(20, 4, 4)).astype(np.uint8)
    np.save(task.public / "train_images.npy", train)
    np.save(task.public / "test_images.npy", np.concatenate([train[:3], 255 - train[3:]]))

    assert [(each.file, each.rows) for each in _found(task)] == [("test_images.npy and train_images.npy", 3)]
