"""What a running rollout uses, looked up by the runner where no control group holds it to its limits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

WALKED_ENTRIES = 20_000
"""A folder is not counted further than this; see `folder_usage`."""
_ANONYMOUS = "RssAnon:"


def anonymous_bytes(pid: int | str) -> int:
    """Private memory of one process; 0 if it has gone."""
    with suppress(OSError, ValueError):
        return parse_anonymous(Path("/proc", str(pid), "status").read_text(errors="replace"))
    return 0


def parse_anonymous(status: str) -> int:
    """RssAnon of /proc/<pid>/status, in bytes; 0 where there is none (kernel threads, zombies)."""
    for line in status.splitlines():
        if line.startswith(_ANONYMOUS):
            return int(line.split()[1]) * 1024
    return 0


def tree_bytes(pids: Iterable[int], *, inherited: int) -> int:
    """Memory of a rollout's processes, without what each may share with the fork server."""
    return sum(max(anonymous_bytes(pid) - inherited, 0) for pid in pids)


def mount_bytes(paths: Iterable[Path]) -> int:
    """Bytes that lie in memory-backed mounts."""
    total = 0
    for path in paths:
        state = os.statvfs(path)
        total += (state.f_blocks - state.f_bfree) * state.f_frsize
    return total


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
