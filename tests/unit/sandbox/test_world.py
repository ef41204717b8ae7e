"""What a sandboxed Python sees of this machine, and what it does not."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import mlwright_api
import mlwright_sandbox
import pytest
from mlwright_sandbox import world
from mlwright_sandbox.namespaces import DATA, TEMPORARY, WORK, bwrap_command, covered
from mlwright_sandbox.world import World, this_world

CHECKOUT = Path(__file__).parents[3]


def visible(seen: World, path: Path) -> bool:
    """Whether a path can be read: in a tree and not hidden, or shown again."""
    if any(path.is_relative_to(shown) for shown in seen.shown):
        return True
    inside = any(path.is_relative_to(tree) for tree in seen.trees)
    return inside and not any(path.is_relative_to(hidden) for hidden in seen.hidden)


def test_the_interpreter_and_both_packages_are_visible() -> None:
    seen = this_world()
    for file in (sys.executable, mlwright_api.__file__, mlwright_sandbox.__file__, pytest.__file__):
        assert file is not None
        assert visible(seen, Path(file)), file


@pytest.mark.parametrize("name", ["pyproject.toml", "examples", "trainer", "tests", ".git"])
def test_nothing_else_of_the_checkout_is(name: str) -> None:
    assert not visible(this_world(), CHECKOUT / name)


@pytest.mark.parametrize(
    "path", ["/root/.ssh", "/home/somebody", "/etc/shadow", "/var/log", "/run", "/tmp/other"]
)
def test_neither_homes_nor_secrets_are(path: str) -> None:
    assert not visible(this_world(), Path(path))


def test_data_sets_that_libraries_bring_along_are_hidden() -> None:
    import sklearn.datasets

    data = Path(sklearn.datasets.__file__).parent / "data"
    assert data.exists()
    assert not visible(this_world(), data)
    assert visible(this_world(), data.parent / "_base.py")


def test_a_secret_within_a_visible_tree_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tasks" / "private").mkdir(parents=True)
    monkeypatch.setattr(world, "SYSTEM", (tmp_path,))
    assert visible(this_world(), tmp_path / "tasks" / "private")
    assert not visible(this_world([tmp_path / "tasks" / "private"]), tmp_path / "tasks" / "private")


def test_a_secret_outside_needs_no_hiding(tmp_path: Path) -> None:
    assert this_world([tmp_path]).hidden == this_world().hidden


def test_a_virtual_environment_shows_its_libraries_and_not_the_folder_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("lib", "bin", "private"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    seen = this_world()
    assert visible(seen, tmp_path / "lib")
    assert not visible(seen, tmp_path / "private")


def test_every_link_on_the_way_to_the_interpreter_is_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "python").symlink_to("../two/python")
    (tmp_path / "two" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "one" / "python"))
    seen = this_world()
    assert visible(seen, tmp_path / "one" / "python")
    assert visible(seen, tmp_path / "two" / "python")


def command(seen: World) -> list[str]:
    return bwrap_command(
        Path("/bwrap"),
        world=seen,
        public=Path("/tasks/churn/public"),
        stubs={"passwd": 9},
        environment={"A": "b"},
    )


def pairs(arguments: list[str]) -> set[tuple[str, str]]:
    return set(itertools.pairwise(arguments))


def test_the_world_is_read_only_cut_off_and_ends_with_its_parent() -> None:
    made = command(World((Path("/usr"),), (), ()))
    assert {"--unshare-all", "--die-with-parent", "--new-session", "--clearenv"} <= set(made)
    assert ("--remount-ro", "/") in pairs(made)
    assert ("/tasks/churn/public", str(DATA)) in pairs(made)
    binds = [made[index + 1] for index, word in enumerate(made) if word == "--bind"]
    assert binds == ["/proc"]


def test_hidden_comes_after_the_trees_and_shown_after_the_hidden() -> None:
    made = command(World((Path("/usr"),), (Path("/usr/src"),), (Path("/usr/src/ours"),)))
    tree = made.index("/usr")
    hidden = made.index("/usr/src")
    shown = made.index("/usr/src/ours")
    assert tree < hidden < shown < made.index("--remount-ro")


def test_the_temporary_mounts_come_before_what_may_lie_in_them() -> None:
    made = command(World((Path("/tmp/venv/lib"),), (), ()))
    assert made.index(str(TEMPORARY)) < made.index("/tmp/venv/lib")


def test_what_a_scripts_own_mounts_cover_is_known() -> None:
    seen = World((Path("/tmp/venv/lib"), Path("/usr")), (Path("/tmp/venv/lib/data"),), (WORK / "ours",))
    assert covered(seen) == [Path("/tmp/venv/lib"), WORK / "ours"]
