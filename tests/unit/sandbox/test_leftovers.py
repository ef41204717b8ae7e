"""Folders of rollouts go away: whatever a script made of them, and whoever was killed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from mlwright_sandbox.leftovers import StateFolder, remove, remove_stale


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_nested_deeper_than_a_path_can_name_is_removed() -> None:
    # In memory: some disks take milliseconds for each folder.
    before, top = Path.cwd(), Path(tempfile.mkdtemp(dir="/dev/shm"))
    os.chdir(top)
    try:
        for _ in range(2100):
            os.mkdir("d")  # noqa: PTH102  # a Path would name the whole way
            os.chdir("d")
    finally:
        os.chdir(before)
    remove(top)
    assert not top.exists()


def test_a_folder_closed_to_its_owner_is_removed(tmp_path: Path) -> None:
    inner = tmp_path / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    inner.chmod(0)
    inner.parent.chmod(0)
    remove(tmp_path / "closed")
    assert not (tmp_path / "closed").exists()


def test_what_a_link_points_to_stays(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "precious")
    remove(tmp_path / "folder")
    assert (tmp_path / "precious" / "file").exists()


def test_a_folder_of_many_folders_is_removed(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / "wide" / str(number) / ".removed-0" / "x").mkdir(parents=True)
    remove(tmp_path / "wide")
    assert not (tmp_path / "wide").exists()


def test_names_that_are_no_text_are_removed(tmp_path: Path) -> None:
    (tmp_path / "names").mkdir()
    for name in (b"\xff\xfe", b"a\nb", b"-rf"):
        os.mkdir(os.fsencode(tmp_path / "names") + b"/" + name)  # noqa: PTH102
    remove(tmp_path / "names")
    assert not (tmp_path / "names").exists()


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path / "gone")


def test_what_cannot_be_removed_is_left_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(self: Path) -> None:
        raise OSError(16, "Device or resource busy")

    (tmp_path / "busy").mkdir()
    monkeypatch.setattr(Path, "rmdir", busy)
    with pytest.warns(RuntimeWarning, match="busy"):
        remove(tmp_path / "busy")


def test_a_name_that_looks_like_an_option_is_removed(tmp_path: Path) -> None:
    (tmp_path / "-rf").mkdir()
    remove(tmp_path / "-rf")
    assert not (tmp_path / "-rf").exists()


def test_a_state_folder_is_private_and_goes_with_its_owner() -> None:
    state = StateFolder()
    assert state.path.stat().st_mode & 0o077 == 0
    assert state.fresh(0) != state.fresh(0)
    state.close()
    assert not state.path.exists()
    state.close()


def test_the_folder_of_a_living_owner_is_not_stale(temporary: Path) -> None:
    state = StateFolder()
    remove_stale(temporary)
    assert state.path.exists()
    state.close()


def test_the_folder_of_a_dead_owner_is_removed_at_the_next_start(temporary: Path) -> None:
    stale = temporary / "mlwright-sandbox-dead"
    stale.mkdir()
    (stale / "owner").touch()
    StateFolder().close()
    assert not stale.exists()


def test_a_folder_that_is_not_ours_is_left_alone(temporary: Path) -> None:
    (temporary / "mlwright-sandbox-foreign").mkdir()
    remove_stale(temporary)
    assert (temporary / "mlwright-sandbox-foreign").exists()
