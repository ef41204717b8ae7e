"""Rules: what is allowed whole, what may only be listed, and what a kernel of each age can deny."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_sandbox.landlock import (
    EXECUTE,
    READ_DIR,
    READ_FILE,
    WRITE_FILE,
    Access,
    _rules,
    known_accesses,
    without,
)


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)


def test_a_tree_without_secrets_is_allowed_whole(tmp_path: Path) -> None:
    make(tmp_path, "a/x", "b/y")
    assert without([tmp_path], []) == ((tmp_path,), ())


def test_a_secret_is_left_out_and_its_siblings_are_not(tmp_path: Path) -> None:
    make(tmp_path, "site/numpy/x", "site/data/answers", "site/z.py", "bin/python")
    whole, listed = without([tmp_path], [tmp_path / "site" / "data"])
    assert set(whole) == {tmp_path / "site/numpy", tmp_path / "site/z.py", tmp_path / "bin"}
    assert set(listed) == {tmp_path, tmp_path / "site"}


def test_a_link_is_no_way_around_a_secret(tmp_path: Path) -> None:
    make(tmp_path, "lib/data/answers", "lib/code/x")
    (tmp_path / "lib64").symlink_to("lib")
    (tmp_path / "short").symlink_to("lib/data")
    whole, _ = without([tmp_path], [tmp_path / "lib/data"])
    assert set(whole) == {tmp_path / "lib/code"}


def test_a_secret_that_is_itself_a_link_hides_what_it_points_to(tmp_path: Path) -> None:
    make(tmp_path, "real/answers", "other/x")
    (tmp_path / "alias").symlink_to("real")
    whole, _ = without([tmp_path], [tmp_path / "alias"])
    assert set(whole) == {tmp_path / "other"}


def test_a_root_within_a_secret_is_not_allowed_at_all(tmp_path: Path) -> None:
    make(tmp_path, "secret/inner/x")
    assert without([tmp_path / "secret/inner"], [tmp_path / "secret"]) == ((), ())


@pytest.mark.parametrize(("abi", "bits"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (7, 16), (99, 16)])
def test_a_kernel_is_only_asked_for_what_it_knows(abi: int, bits: int) -> None:
    assert known_accesses(abi) == 2**bits - 1


def test_reading_is_not_writing_and_nothing_makes_devices() -> None:
    access = Access(read=(Path("/r"),), list=(Path("/l"),), write=(Path("/w"),), devices=(Path("/d"),))
    rules = dict(_rules(access, known_accesses(7)))
    assert rules[Path("/r")] == EXECUTE | READ_FILE | READ_DIR
    assert rules[Path("/l")] == READ_DIR
    assert rules[Path("/w")] & WRITE_FILE
    assert not rules[Path("/w")] & (1 << 6 | 1 << 11)
    assert not rules[Path("/d")] & (READ_DIR | EXECUTE)


def test_more_can_be_added_for_one_rollout_without_changing_the_rest() -> None:
    base = Access(read=(Path("/r"),))
    own = base.extended(read=[Path("/data")], write=[Path("/work")])
    assert (own.read, own.write) == ((Path("/r"), Path("/data")), (Path("/work"),))
    assert base.write == ()
