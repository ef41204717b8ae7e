"""Folders that appear whole: killed at every step, torn, taken over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mlwright_trainer.errors import InternalError
from mlwright_trainer.learning.disk import (
    MARKER,
    Disk,
    Fence,
    commit_folder,
    discard_folder,
    numbered,
    sweep,
    torn,
)

pytestmark = pytest.mark.torch


class Killed(BaseException):
    """Stands for SIGKILL: nothing in our code may catch it."""


class DyingDisk(Disk):
    """Dies before step `k`; a half-written file is part of dying while filling."""

    def __init__(self, k: int) -> None:
        self.left = k

    def _step(self) -> None:
        if self.left == 0:
            raise Killed
        self.left -= 1

    def make_folder(self, path):
        self._step()
        super().make_folder(path)

    def fill(self, folder, writer):
        if self.left == 0:
            (folder / "content").write_text("ha")
        self._step()
        super().fill(folder, writer)

    def write(self, path, text):
        if self.left == 0:
            path.write_text(text[:3])
        self._step()
        super().write(path, text)

    def rename(self, source, target):
        self._step()
        super().rename(source, target)

    def remove(self, path):
        self._step()
        super().remove(path)


def content(text: str):
    def write(folder: Path) -> None:
        (folder / "content").write_text(text)

    return write


def test_a_committed_folder_is_complete_and_says_who_wrote_it(tmp_path):
    commit_folder(tmp_path / "3", content("x"), facts={"restart": 7}, disk=Disk())
    assert torn(tmp_path / "3") == ""
    marker = json.loads((tmp_path / "3" / MARKER).read_text())
    assert marker["restart"] == 7
    assert marker["files"].keys() == {"content"}
    assert [path.name for path in tmp_path.iterdir()] == ["3"]


@pytest.mark.parametrize("k", range(12))
def test_killed_at_any_step_there_is_the_old_folder_the_new_one_or_none(tmp_path, k):
    target = tmp_path / "1"
    commit_folder(target, content("old"), facts={}, disk=Disk())
    try:
        commit_folder(target, content("new"), facts={}, disk=DyingDisk(k))
        finished = True
    except Killed:
        finished = False
    assert finished == (k >= 8)
    if target.exists():
        assert torn(target) == ""
        assert (target / "content").read_text() in ("old", "new")
    sweep(tmp_path, disk=Disk())
    commit_folder(target, content("new"), facts={}, disk=Disk())
    assert torn(target) == ""
    assert (target / "content").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["1"]


@pytest.mark.parametrize("k", range(3))
def test_a_folder_that_is_being_deleted_is_whole_or_out_of_sight(tmp_path, k):
    commit_folder(tmp_path / "1", content("x"), facts={}, disk=Disk())
    with pytest.raises(Killed):
        discard_folder(tmp_path / "1", disk=DyingDisk(k))
    assert numbered(tmp_path) == ([1] if k < 2 else [])
    sweep(tmp_path, disk=Disk())
    assert [torn(tmp_path / str(n)) for n in numbered(tmp_path)] in ([""], [])


@pytest.mark.parametrize("damage", ["shorter", "gone", "more", "no marker", "empty marker", "broken marker"])
def test_damage_is_seen(tmp_path, damage):
    folder = tmp_path / "1"
    commit_folder(folder, content("complete"), facts={}, disk=Disk())
    if damage == "shorter":
        (folder / "content").write_text("comp")
    elif damage == "gone":
        (folder / "content").unlink()
    elif damage == "more":
        (folder / "extra").write_text("")
    elif damage == "no marker":
        (folder / MARKER).unlink()
    else:
        (folder / MARKER).write_text("" if damage == "empty marker" else "[]")
    assert torn(folder)


def test_only_whole_numbers_are_versions(tmp_path):
    for name in ("0", "10", "9", ".11.partial", "12.old", "notes"):
        (tmp_path / name).mkdir()
    (tmp_path / "7").write_text("a file")
    assert numbered(tmp_path) == [0, 9, 10]


def test_each_start_gets_the_next_restart_number(tmp_path):
    assert [Fence(tmp_path, disk=Disk()).restart for _ in range(3)] == [1, 2, 3]


def test_an_older_learner_is_refused_once_a_newer_one_has_started(tmp_path):
    older = Fence(tmp_path, disk=Disk())
    older.check()
    Fence(tmp_path, disk=Disk())
    with pytest.raises(InternalError, match="restart 1 of the learner is refused: restart 2 has taken over"):
        older.check()


def test_a_given_restart_number_may_be_repeated_but_not_lowered(tmp_path):
    Fence(tmp_path, disk=Disk(), restart=5)
    Fence(tmp_path, disk=Disk(), restart=5).check()
    with pytest.raises(InternalError, match="restart 4"):
        Fence(tmp_path, disk=Disk(), restart=4)
