"""Control groups, version 1 or 2, where this user may make them: memory and process limits that the kernel keeps."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlwright_sandbox.lock import PROCESSES

PREFIX = "mlwright-"
_OWN_BYTES = 96 * 1024 * 1024
"""What the slot's process and the runner may need beside the script."""
_OWN_PROCESSES = 8
_REMOVAL_SECONDS = 1.0
_numbers = itertools.count()
_V1_MEMORY, _V1_PROCESSES = "memory", "pids"


@dataclass(frozen=True)
class Hierarchies:
    """Where this process may make groups: `parents` by controller (version 1), or one for all under ''."""

    parents: Mapping[str, Path]

    @property
    def unified(self) -> bool:
        return "" in self.parents


def find_hierarchies(
    root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")
) -> Hierarchies:
    """Look for writable groups; empty where there are none."""
    try:
        places = parse_own(own.read_text())
    except OSError:
        return Hierarchies({})
    first: dict[str, Path] = {}
    for controller in (_V1_MEMORY, _V1_PROCESSES):
        parent = root / controller / places.get(controller, "").lstrip("/")
        if controller in places and (parent / "cgroup.procs").exists() and os.access(parent, os.W_OK):
            first[controller] = parent
    if first:
        return Hierarchies(first)
    unified = _delegated(root, root / places.get("", "").lstrip("/"))
    return Hierarchies({"": unified} if unified else {})


def parse_own(text: str) -> dict[str, str]:
    """/proc/self/cgroup: the path by controller; '' is the unified hierarchy."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = path
    return found


def _delegated(root: Path, group: Path) -> Path | None:
    """The nearest ancestor that hands memory and pids to its children and that we may move processes within."""
    while group.is_relative_to(root):
        handed = _read(group / "cgroup.subtree_control").split()
        if {"memory", "pids"} <= set(handed) and os.access(group / "cgroup.procs", os.W_OK):
            return group
        group = group.parent
    return None


class SlotGroup:
    """The groups of one slot; made once, its limit set anew for every script."""

    def __init__(self, hierarchies: Hierarchies) -> None:
        name = f"{PREFIX}{os.getpid()}-{next(_numbers)}"
        self._unified = hierarchies.unified
        self._folders: dict[str, Path] = {}
        for controller, parent in hierarchies.parents.items():
            with suppress(OSError):
                folder = parent / name
                folder.mkdir()
                self._folders[controller] = folder
        self.holds_processes = self._limit_processes()
        self.holds_memory = self.limit_memory(1 << 40)

    def limit_memory(self, size: int) -> bool:
        """Set the memory limit of what runs next; whether there is one."""
        if self._unified:
            _write(self._folders.get(""), "memory.swap.max", "0")
            _write(self._folders.get(""), "memory.oom.group", "0")
            return _write(self._folders.get(""), "memory.max", str(size + _OWN_BYTES))
        return _write(self._folders.get(_V1_MEMORY), "memory.limit_in_bytes", str(size + _OWN_BYTES))

    def _limit_processes(self) -> bool:
        folder = self._folders.get("" if self._unified else _V1_PROCESSES)
        return _write(folder, "pids.max", str(PROCESSES + _OWN_PROCESSES))

    def kills(self) -> int:
        """How many processes the kernel has ended here for want of memory, ever."""
        if self._unified:
            return parse_kills(_read(self._folders.get("", Path()) / "memory.events"))
        return parse_kills(_read(self._folders.get(_V1_MEMORY, Path()) / "memory.oom_control"))

    def open_entries(self) -> list[int]:
        """Descriptors to which a process writes 0 to enter."""
        return [
            os.open(folder / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC) for folder in self._folders.values()
        ]

    def close(self) -> None:
        """Remove the groups; what is still inside is given a moment to end."""
        for folder in self._folders.values():
            _remove(folder, patience=_REMOVAL_SECONDS)


def parse_kills(text: str) -> int:
    """oom_kill of memory.events or memory.oom_control; 0 where it is not told."""
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name == "oom_kill":
            return int(value)
    return 0


def own_kills(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """How many processes the kernel has ended for want of memory in the group that this container is."""
    return parse_kills(_own_text(root, own, _V1_MEMORY, "memory.oom_control", unified="memory.events"))


def own_cores(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Whole cores that this container's group may use, at least 1; all that there are where nothing limits it."""
    quota = _own_text(root, own, "cpu", "cpu.cfs_quota_us", unified="cpu.max").split()
    period = _own_text(root, own, "cpu", "cpu.cfs_period_us", unified="cpu.max").split()
    if not quota or not period or not quota[0].isdigit():  # max, or -1
        return len(os.sched_getaffinity(0))
    return max(int(quota[0]) // int(period[-1]), 1)


def _own_text(root: Path, own: Path, controller: str, first: str, *, unified: str) -> str:
    """A file of the group that this process is in. A container may see its group as the root of the hierarchy."""
    places = parse_own(_read(own))
    for parent, place, name in (
        (root / controller, places.get(controller), first),
        (root, places.get(""), unified),
    ):
        if place is not None:
            text = _read(parent / place.lstrip("/") / name) or _read(parent / name)
            if text:
                return text
    return ""


def remove_stale(hierarchies: Hierarchies) -> None:
    """Remove groups that a process left which was killed."""
    for parent in hierarchies.parents.values():
        for folder in parent.glob(f"{PREFIX}*-*"):
            owner = folder.name.removeprefix(PREFIX).partition("-")[0]
            if owner.isdigit() and not Path("/proc", owner).exists():
                _remove(folder, patience=0)


def open_groups(slots: int) -> Sequence[SlotGroup]:
    """A group for every slot; they hold nothing where this user may not make any."""
    hierarchies = find_hierarchies()
    remove_stale(hierarchies)
    return [SlotGroup(hierarchies) for _ in range(slots)]


def _remove(folder: Path, *, patience: float) -> None:
    deadline = time.monotonic() + patience
    while True:
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() >= deadline:
                return
            time.sleep(0.01)


def _write(folder: Path | None, name: str, value: str) -> bool:
    if folder is None:
        return False
    try:
        (folder / name).write_text(value)
    except OSError:
        return False
    return True


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
