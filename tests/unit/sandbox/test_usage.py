"""What a rollout uses, counted where no control group counts it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mlwright_sandbox import usage
from mlwright_sandbox.usage import Memory, folder_usage, memory_of, parse_memory, tree_memory

STATUS = "Name:\tpython\nVmRSS:\t  5000 kB\nRssAnon:\t  3000 kB\nRssFile:\t 1000 kB\nRssShmem:\t 1000 kB\n"


def test_private_and_shared_memory_are_read() -> None:
    assert parse_memory(STATUS) == Memory(3000 * 1024, 1000 * 1024)


def test_page_tables_are_memory_of_the_process_that_needs_them() -> None:
    """A script that touches one page of zeros every 2 MiB has little else."""
    assert parse_memory("RssAnon:\t 4 kB\nVmPTE:\t 2000 kB\n") == Memory(2004 * 1024, 0)


def test_a_zombie_has_no_memory() -> None:
    assert parse_memory("Name:\tpython\nState:\tZ (zombie)\n") == Memory()


def test_this_process_has_memory_and_a_missing_one_has_none() -> None:
    assert memory_of(os.getpid()).private > 1024 * 1024
    assert memory_of(2**22 + 1) == Memory()


def test_what_the_server_lent_is_counted_for_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {1: Memory(100, 50), 2: Memory(130, 70), 3: Memory(20, 0)}
    monkeypatch.setattr(usage, "memory_of", sizes.__getitem__)
    assert tree_memory(sizes, inherited=90) == Memory(10 + 40 + 0, 70)


def test_a_tree_without_processes_uses_nothing() -> None:
    assert tree_memory([], inherited=5) == Memory()


def test_a_folder_counts_what_lies_at_any_depth(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "big").write_bytes(b"x" * 100_000)
    size, entries = folder_usage(tmp_path)
    assert entries == 3
    assert 100_000 <= size < 200_000


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "out").symlink_to("/usr")
    assert folder_usage(tmp_path)[1] == 2


def test_counting_stops_at_a_number_of_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        (tmp_path / str(number)).touch()
    monkeypatch.setattr(usage, "WALKED_ENTRIES", 4)
    assert folder_usage(tmp_path)[1] == 4


def test_a_folder_that_vanishes_counts_nothing(tmp_path: Path) -> None:
    assert folder_usage(tmp_path / "gone") == (0, 0)


def test_a_disk_with_room_is_neither_full_nor_out_of_files(tmp_path: Path) -> None:
    assert not usage.full(tmp_path)
    assert not usage.out_of_files(tmp_path)


def test_mounts_are_counted_by_what_lies_in_them(tmp_path: Path) -> None:
    assert usage.mount_bytes([tmp_path, tmp_path]) == 2 * usage.mount_bytes([tmp_path]) > 0
