"""What a running rollout uses, looked up by the runner where no control group holds it to its limits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

WALKED_ENTRIES = 20_000
"""A folder is not counted further than this; see `folder_usage`."""


@dataclass(frozen=True)
class Memory:
    """What a process has in memory, in bytes."""

    private: int = 0
    shared: int = 0
    """Shared mappings and memory-backed files; of the files of libraries nothing."""


def memory_of(pid: int | str) -> Memory:
    """Memory of one process; nothing if it has gone."""
    with suppress(OSError, ValueError):
        return parse_memory(Path("/proc", str(pid), "status").read_text(errors="replace"))
    return Memory()


def parse_memory(status: str) -> Memory:
    """RssAnon, VmPTE and RssShmem of /proc/<pid>/status; zombies and kernel threads have none.

    Page tables count: touching one page of zeros every 2 MiB takes gigabytes of them and no other memory.
    """
    found = {"RssAnon": 0, "VmPTE": 0, "RssShmem": 0}
    for line in status.splitlines():
        name, _, value = line.partition(":")
        if name in found:
            found[name] = int(value.split()[0]) * 1024
    return Memory(found["RssAnon"] + found["VmPTE"], found["RssShmem"])


def tree_memory(pids: Iterable[int], *, inherited: int) -> Memory:
    """Memory of a rollout's processes, without what each may share with the fork server.

    Whether two processes share the same pages cannot be seen from outside, so of the shared the largest counts.
    """
    each = [memory_of(pid) for pid in pids]
    private = sum(max(memory.private - inherited, 0) for memory in each)
    return Memory(private, max((memory.shared for memory in each), default=0))


def mount_bytes(paths: Iterable[Path]) -> int:
    """Bytes that lie in memory-backed mounts."""
    total = 0
    for path in paths:
        state = os.statvfs(path)
        total += (state.f_blocks - state.f_bfree) * state.f_frsize
    return total


def mount_entries(paths: Iterable[Path]) -> int:
    """Files, folders and links in memory-backed mounts; each costs kernel memory, however small it is."""
    states = [os.statvfs(path) for path in paths]
    return sum(state.f_files - state.f_ffree for state in states)


def full(folder: Path) -> bool:
    """Whether a sized mount has no byte left."""
    return os.statvfs(folder).f_bavail == 0


def out_of_files(folder: Path) -> bool:
    """Whether a sized mount has no inode left."""
    state = os.statvfs(folder)
    return state.f_files > 0 and state.f_ffree == 0


def folder_usage(folder: Path) -> tuple[int, int]:
    """(bytes, entries) beneath a folder that has no mount of its own; stops counting at WALKED_ENTRIES."""
    size = entries = 0
    waiting = [str(folder)]
    while waiting and entries < WALKED_ENTRIES:
        with suppress(OSError), os.scandir(waiting.pop()) as found:
            for entry in found:
                entries += 1
                if entries >= WALKED_ENTRIES:
                    break
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    size += entry.stat(follow_symlinks=False).st_blocks * 512
    return size, entries
