"""A run's folder: one process at a time, whole files only."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.runs.folder import RunFolder, open_run, write_whole


def test_a_second_process_is_kept_out_and_told_who_works_there(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with (
        folder.locked(),
        pytest.raises(UserError, match=f"process {os.getpid()} is working"),
        folder.locked(),
    ):
        pass


def test_the_folder_is_free_again_afterwards_also_after_an_error(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(RuntimeError), folder.locked():
        raise RuntimeError
    with folder.locked():
        pass


def test_a_place_where_no_folder_can_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(UserError, match="choose another --dir"),
        RunFolder(tmp_path / "file" / "run").locked(),
    ):
        pass


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no run here"):
        open_run(tmp_path)


def test_a_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    write_whole(path, b"one")
    write_whole(path, b"two")
    assert path.read_bytes() == b"two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["script.py"]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "script.py"
    write_whole(path, b"one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one"
