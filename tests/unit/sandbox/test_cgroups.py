"""Control groups of both versions, on a tree of files that looks like theirs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlwright_sandbox.cgroups import (
    PREFIX,
    Hierarchies,
    SlotGroup,
    find_hierarchies,
    parse_kills,
    parse_own,
    remove_stale,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cgroup"


def own(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "own"
    path.write_text(text)
    return path


def version_two(root: Path, group: str, *, handed: str) -> Path:
    folder = root / group
    folder.mkdir(parents=True)
    (folder / "cgroup.procs").touch()
    (folder / "cgroup.subtree_control").write_text(handed)
    return folder


def test_own_groups_are_read_for_both_versions() -> None:
    text = "5:cpu,cpuacct:/a\n4:memory:/b:c\n1:name=systemd:/\n0::/user.slice\n"
    assert parse_own(text) == {
        "cpu": "/a",
        "cpuacct": "/a",
        "memory": "/b:c",
        "name=systemd": "/",
        "": "/user.slice",
    }


def test_version_one_is_used_where_it_can_be_written(root: Path, tmp_path: Path) -> None:
    for controller in ("memory", "pids"):
        (root / controller / "job").mkdir(parents=True)
        (root / controller / "job" / "cgroup.procs").touch()
    found = find_hierarchies(root, own(tmp_path, "2:memory:/job\n1:pids:/job\n0::/\n"))
    assert found.parents == {"memory": root / "memory/job", "pids": root / "pids/job"}
    assert not found.unified


def test_version_two_is_used_where_a_parent_hands_on_its_controllers(root: Path, tmp_path: Path) -> None:
    parent = version_two(root, "user.slice/app.slice", handed="memory pids\n")
    version_two(root, "user.slice/app.slice/shell.scope", handed="")
    found = find_hierarchies(root, own(tmp_path, "0::/user.slice/app.slice/shell.scope\n"))
    assert found.parents == {"": parent}
    assert found.unified


@pytest.mark.parametrize("handed", ["", "memory\n", "cpu pids\n"])
def test_version_two_without_both_controllers_is_no_use(root: Path, tmp_path: Path, handed: str) -> None:
    version_two(root, "scope", handed=handed)
    assert find_hierarchies(root, own(tmp_path, "0::/scope\n")).parents == {}


def test_without_control_groups_there_is_nothing_and_no_error(tmp_path: Path) -> None:
    assert find_hierarchies(tmp_path / "none", tmp_path / "missing").parents == {}
    assert find_hierarchies(tmp_path / "none", own(tmp_path, "0::/\n")).parents == {}


def test_a_group_without_hierarchies_holds_nothing_and_breaks_nothing() -> None:
    group = SlotGroup(Hierarchies({}))
    assert not group.holds_memory
    assert not group.holds_processes
    assert not group.limit_memory(1)
    assert group.kills() == 0
    assert group.open_entries() == []
    group.close()


def test_limits_are_written_with_room_for_the_runner(tmp_path: Path) -> None:
    group = SlotGroup(Hierarchies({"": tmp_path}))
    (folder,) = tmp_path.glob(f"{PREFIX}{os.getpid()}-*")
    assert group.holds_memory
    assert group.holds_processes
    assert group.limit_memory(1000)
    assert 1000 < int((folder / "memory.max").read_text()) < 1000 + 2**28
    assert (folder / "memory.swap.max").read_text() == "0"
    assert int((folder / "pids.max").read_text()) > 100


def test_two_groups_of_one_process_are_two(tmp_path: Path) -> None:
    for _ in range(2):
        SlotGroup(Hierarchies({"": tmp_path}))
    assert len(list(tmp_path.glob(f"{PREFIX}*"))) == 2


@pytest.mark.parametrize(
    ("text", "kills"),
    [
        ("", 0),
        ("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        ("low 0\noom 2\noom_kill 1\noom_group_kill 0\n", 1),
    ],
)
def test_kills_are_read_from_both_versions(text: str, kills: int) -> None:
    assert parse_kills(text) == kills


def test_groups_of_dead_processes_are_removed_and_those_of_living_ones_kept(tmp_path: Path) -> None:
    dead, living, foreign = f"{PREFIX}{2**22 + 1}-0", f"{PREFIX}{os.getpid()}-0", "other"
    for name in (dead, living, foreign):
        (tmp_path / name).mkdir()
    remove_stale(Hierarchies({"": tmp_path}))
    assert {path.name for path in tmp_path.iterdir()} == {living, foreign}
