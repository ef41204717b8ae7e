"""The fork server: imports the libraries once, then forks a process for each slot, which forks one for each script.

server (in the world that bwrap built)      serves the control socket: one message a slot
└── slot (in its control group, on its core)    serves its own socket: one message a script
    └── launcher (leaves the namespaces)          ends at once
        └── runner (PID 1 of the new ones)          reports to a socket of this one script
            └── script

Whatever a script does to its memory happens to its own copy. It never holds a socket, and it cannot see, trace or
signal any process above it. At the end of a socket its server ends, and bwrap ends everything with the world.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from mlwright_sandbox import kernel, landlock, libraries, namespaces, processes, runner, seccomp, wire
from mlwright_sandbox.errors import IsolationError
from mlwright_sandbox.lock import PROCESSES, Lock
from mlwright_sandbox.script import Place
from mlwright_sandbox.wire import Job

NAMESPACES, LOCK, PLAIN = "Namespaces", "Lock", "Plain"
_SPARE_PROCESSES = 1024


@dataclass(frozen=True)
class Setting:
    """How the scripts of one server are held."""

    kind: str
    public: Path
    lock: Lock | None
    covered: tuple[Path, ...] = ()
    """See `namespaces.covered`."""

    def place(self, folder: str) -> Place:
        """Where the next script runs; `folder` is its own one where there are no namespaces."""
        if self.kind == NAMESPACES:
            return Place(
                namespaces.WORK,
                libraries.script_environment(namespaces.TEMPORARY),
                self.lock,
                own_namespaces=True,
                first_process=True,
                shown_again=self.covered,
                mounts=(namespaces.WORK, namespaces.TEMPORARY, namespaces.SHARED),
            )
        work, temporary = Path(folder, "work"), Path(folder, "tmp")
        work.mkdir()
        temporary.mkdir()
        (work / "data").symlink_to(self.public)
        lock = self.lock
        if lock is not None:
            own = lock.access.extended(read=[self.public], write=[work, temporary])
            lock = replace(lock, access=own)
        environment = libraries.script_environment(temporary)
        return Place(work, environment, lock, walked=(Path(folder),))


def make_setting(message: Mapping[str, Any]) -> Setting:
    """What this server can enforce, of what it was asked for."""
    kind, public = message["kind"], Path(message["public"])
    if kind == PLAIN:
        return Setting(kind, public, None)
    if kind == NAMESPACES:
        own = (namespaces.WORK, namespaces.TEMPORARY, namespaces.SHARED)
        access = landlock.Access(read=(Path("/"),), write=own, devices=landlock.DEVICES)
        processes_limit = PROCESSES
    else:
        read, listed = (tuple(map(Path, message[name])) for name in ("read", "list"))
        access = landlock.Access(read=read, list=listed, devices=landlock.DEVICES)
        # This user's other processes count, too; the runner looks at the exact number.
        processes_limit = processes.count_of_user(os.getuid()) + _SPARE_PROCESSES
    try:
        program = seccomp.compile_filter(alone=kind != NAMESPACES)
    except IsolationError:
        program = None
    lock = Lock(program, kernel.landlock_abi() > 0, access, processes_limit)
    return Setting(kind, public, lock, tuple(map(Path, message.get("covered", ()))))


def main(arguments: Sequence[str]) -> None:
    """Serve the control socket whose descriptor is the only argument, until its end."""
    control = socket.socket(fileno=int(arguments[0]))
    control.set_inheritable(False)
    configured = wire.receive(control)
    if configured is None:
        return
    setting = make_setting(configured[0])
    if configured[0]["preload"]:
        libraries.preload()
    _settle()
    facts = {"seccomp": setting.lock is not None and setting.lock.seccomp is not None}
    wire.send(control, facts | {"landlock": setting.lock is not None and setting.lock.landlocked})
    while (received := wire.receive(control)) is not None:
        message, descriptors = received
        if os.fork() == 0:
            control.close()
            _serve_slot(setting, message, descriptors)
        wire.close_all(descriptors)
        processes.reap()


def _settle() -> None:
    """Make forks cheap and quiet; and nothing that reacts to the terminal."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    libraries.settle()


def _serve_slot(setting: Setting, message: Mapping[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """Fork a process for every script that comes over the slot's socket."""
    try:
        _enter(message["cpu"], descriptors[1:])
        channel = socket.socket(fileno=descriptors[0])
        if setting.kind != NAMESPACES:
            processes.become_subreaper()
        while (received := wire.receive(channel)) is not None:
            _launch(setting, received[0], received[1], channel)
    finally:
        os._exit(0)


def _enter(cpu: int | None, groups: Sequence[int]) -> None:
    for group in groups:
        os.write(group, b"0")
    wire.close_all(groups)
    if cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {cpu})


def _launch(
    setting: Setting, message: Mapping[str, Any], descriptors: Sequence[int], channel: socket.socket
) -> None:
    control = socket.socket(fileno=descriptors[0])
    pid = os.fork()
    if pid == 0:
        channel.close()
        try:
            _become_runner(setting, message, control)
        except BaseException as error:
            runner.refuse(control, error)
        finally:
            os._exit(0)
    control.close()
    os.waitpid(pid, 0)
    if setting.kind != NAMESPACES and kernel.LINUX:
        processes.kill_descendants()  # a runner that was killed may have left some


def _become_runner(setting: Setting, message: Mapping[str, Any], control: socket.socket) -> NoReturn:
    job = Job.from_message(message["job"])
    if setting.kind == NAMESPACES:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # else the maps of the new namespace belong to root
        namespaces.leave()
        if os.fork() != 0:
            os._exit(0)
    runner.run(job, setting.place(message["folder"]), control)


if __name__ == "__main__":
    main(sys.argv[1:])
