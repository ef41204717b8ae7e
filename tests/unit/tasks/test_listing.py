"""Tasks are found below folders, with what is known of each, and broken ones are shown as such."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.folder import TaskFolder
from mlwright_trainer.tasks.listing import list_tasks


def test_a_prepared_task_is_listed_with_its_rows(task: TaskFolder) -> None:
    [listed] = list_tasks([task.root.parent])
    document = listed.document()

    assert document["name"] == "made-up"
    assert document["rows"] == {"Reward": 80, "Selection": 80, "Final": 80}
    assert (document["baseline"], document["best"], document["prepared"]) == (0.5, 0.9, True)
    assert document["direction"] == "Maximize"


def test_a_task_that_is_not_prepared_is_listed_as_such(task: TaskFolder) -> None:
    shutil.rmtree(task.private)

    assert list_tasks([task.root])[0].document()["prepared"] is False


def test_a_broken_manifest_does_not_hide_the_others(made_up: Callable[..., TaskFolder]) -> None:
    sound, broken = made_up(name="sound"), made_up(name="broken")
    (broken.root / "task.yaml").write_text("kind: [")
    listed = {each.folder.name: each for each in list_tasks([sound.root.parent])}

    assert listed["sound"].problem == ""
    assert "task.yaml" in listed["broken"].document()["problem"]


def test_broken_answers_are_a_problem_and_not_an_end(task: TaskFolder) -> None:
    (task.private / "answers.csv").write_text("id\n1\n")

    assert "no column 'big'" in list_tasks([task.root])[0].document()["problem"]


def test_a_task_is_listed_once_however_often_it_is_found(task: TaskFolder) -> None:
    assert len(list_tasks([task.root, task.root])) == 1


def test_a_missing_folder_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        list_tasks([tmp_path / "nowhere"])
