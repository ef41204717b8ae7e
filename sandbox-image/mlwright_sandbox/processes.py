"""Process trees: who belongs to one, what it uses, and ending all of it."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlwright_sandbox import kernel

_PATIENCE_SECONDS = 10.0
_PAUSE_SECONDS = 0.002


@dataclass(frozen=True)
class Process:
    """One line of /proc/<pid>/stat."""

    pid: int
    parent: int
    state: str

    @property
    def dead(self) -> bool:
        """Ended, and waiting for its parent to notice."""
        return self.state in "ZXx"


def parse_stat(text: str) -> Process:
    """Read /proc/<pid>/stat, whose second field may contain anything, brackets and newlines included."""
    pid, _, rest = text.partition(" (")
    state, parent, *_ = rest[rest.rindex(")") + 1 :].split()
    return Process(int(pid), int(parent), state)


def all_processes() -> list[Process]:
    """Every process that this /proc shows."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            text = (folder / "stat").read_text(errors="replace")
            found.append(parse_stat(text))
    return found


def count_of_user(user: int) -> int:
    """Processes and threads that belong to a user."""
    count = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == user:
                count += len(list((folder / "task").iterdir()))
    return count


def descendants(processes: Iterable[Process], root: int) -> list[Process]:
    """Everything that descends from `root`, which is not part of it."""
    children: dict[int, list[Process]] = {}
    for process in processes:
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [root]
    while waiting:
        born = children.get(waiting.pop(), [])
        found += born
        waiting += [process.pid for process in born]
    return found


def own_tree() -> list[Process]:
    """The living descendants of the calling process; zombies left out."""
    return [process for process in descendants(all_processes(), os.getpid()) if not process.dead]


def become_subreaper() -> None:
    """From now on orphans among the descendants become children of the caller."""
    if kernel.LINUX:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)


def kill_namespace() -> None:
    """End every process of the caller's own PID namespace; only for its PID 1."""
    assert os.getpid() == 1, "would end every process of the user"
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)
        if reap():
            return
        time.sleep(_PAUSE_SECONDS)


def kill_descendants() -> None:
    """End every descendant of the calling subreaper: stop all first, so that none is born meanwhile."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < deadline:
        living = own_tree()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in living:
                _send(process, number)
        if reap() and not living:
            return
        time.sleep(_PAUSE_SECONDS)


def kill_group(leader: int) -> None:
    """End a process group, where there is nothing better (not Linux)."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(leader, 0)


def reap() -> bool:
    """Collect the dead children of the caller; whether no child is left."""
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False


def _send(process: Process, number: signal.Signals) -> None:
    """Signal a process unless its number has gone to a stranger meanwhile."""
    with suppress(OSError, ValueError):
        descriptor = os.pidfd_open(process.pid)
        try:
            now = parse_stat(Path("/proc", str(process.pid), "stat").read_text(errors="replace"))
            if now.parent == process.parent or now.parent == os.getpid():
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
