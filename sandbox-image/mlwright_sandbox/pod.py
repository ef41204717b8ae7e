"""A pod's runner, PID 1 of the container `agent`: from the request to the termination message.

It takes the lock, reads the request, tries what scripts must not be able to do while the libraries are imported, runs
the script in a locked child as the fork server does, and writes what it saw. Whoever ends PID 1 ends everything in
its container, and lets go of the lock.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from mlwright_api.results import Receipt

from mlwright_sandbox import cgroups, kernel, landlock, libraries, namespaces, runner, seccomp, world
from mlwright_sandbox.conclusion import runner_result
from mlwright_sandbox.errors import IsolationError, RequestError
from mlwright_sandbox.handover import AgentLock
from mlwright_sandbox.lock import PROCESSES, Lock
from mlwright_sandbox.message import MessageFile, Progress, failed
from mlwright_sandbox.receipt import in_user_namespace, make_receipt, network_targets
from mlwright_sandbox.request import DATA_NAME, read_request
from mlwright_sandbox.script import Place
from mlwright_sandbox.wire import Job, Probe, Report

BAD_REQUEST, OWN_FAULT, TERMINATED = 64, 70, 143
"""Exit codes, after sysexits.h and for SIGTERM; 0 with a result, whatever became of the script."""
LOCK_FILE = "lock"
_SECRETS = tuple(map(Path, ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")))
"""Nobody but root may read them; nor may a script, whoever it is on the machine."""
_PROBE_SECONDS = 20
_PROBE_BYTES = 256 << 20
_SHARED_PROCESSES = 4096
"""Where the machine counts every pod's processes as the same user's; the runner looks at the exact number."""


@dataclass(frozen=True)
class Mounts:
    """What a pod's agent finds where; nothing of `hidden` is a script's."""

    work: Path
    public: Path
    control: Path
    request: Path
    message: Path
    private: Path = Path("/private")
    """The answers, which only the grader's container has."""

    @property
    def hidden(self) -> tuple[Path, ...]:
        return (self.control, self.control / LOCK_FILE, self.request, self.message)

    @property
    def own(self) -> tuple[Path, ...]:
        """What scripts write to."""
        places = (self.work, namespaces.TEMPORARY, namespaces.SHARED)
        return tuple(path for path in places if path.is_dir())


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit 0 with a result; 64 for a request that is none, 70 for our own faults, both with the reason."""
    begun = time.monotonic()
    mounts = Mounts(**vars(_parser().parse_args(arguments)))
    signal.signal(signal.SIGTERM, _leave)
    message: MessageFile | None = None
    try:
        message = MessageFile(mounts.message)
        return _serve(mounts, message, begun)
    except RequestError as error:
        return _give_up(message, f"request: {error}", BAD_REQUEST)
    except BaseException as error:
        text = str(error) if isinstance(error, IsolationError) else repr(error)
        return _give_up(message, f"runner: {text}", OWN_FAULT)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mlwright_sandbox.agent", description=__doc__)
    for name, default, what in (
        ("work", "/work", "the script's work folder"),
        ("public", "/public", "the task's public data"),
        ("control", "/control", "the folder of the lock, shared with the grader"),
        ("request", "/request", "the folder with job.json and files.json"),
        ("message", "/dev/termination-log", "the file for the result"),
    ):
        parser.add_argument(f"--{name}", type=Path, default=Path(default), help=what)
    return parser


def _leave(_number: int, _frame: object) -> NoReturn:
    """The pod is being deleted; the kernel ends everything with us."""
    os._exit(TERMINATED)


def _give_up(message: MessageFile | None, reason: str, code: int) -> int:
    sys.stderr.write(f"{reason}\n")
    if message is not None:
        message.write(failed(reason))
    return code


def _serve(mounts: Mounts, message: MessageFile, begun: float) -> int:
    if os.getpid() != 1:
        raise IsolationError("not the first process of a container: nothing would end what a script leaves")
    lock = AgentLock(mounts.control / LOCK_FILE)
    job = read_request(mounts.request)
    place = pod_place(mounts)
    (mounts.work / DATA_NAME).symlink_to(mounts.public)
    receipt = _prepare(mounts, place)
    kills = cgroups.own_kills()
    report = _sound(runner.finish(runner.start(job, place), progress=Progress(message.write)))
    result = runner_result(
        report,
        receipt,
        starting_seconds=report.started_monotonic - begun,
        out_of_memory=cgroups.own_kills() > kills,
    )
    message.write(result)
    lock.clean()
    return 0


def _prepare(mounts: Mounts, place: Place) -> Receipt:
    """Import the libraries; meanwhile a child waits for network connections that must not come about."""
    trying = runner.start(_probe(mounts, locked=False), place)
    libraries.preload()
    libraries.settle()
    unlocked = _sound(runner.finish(trying)).probed
    locked = _sound(runner.finish(runner.start(_probe(mounts, locked=True), place))).probed
    return make_receipt(
        "Pod",
        unlocked=unlocked,
        locked=locked,
        seccomp=place.lock is not None and place.lock.seccomp is not None,
        user_namespace=in_user_namespace(Path("/proc/self/uid_map").read_text()),
    )


def _probe(mounts: Mounts, *, locked: bool) -> Job:
    probe = Probe(
        locked=locked,
        answers=(str(mounts.private),),
        network=network_targets(os.environ),
        hidden=tuple(map(str, mounts.hidden)),
    )
    return Job("", 0, _PROBE_SECONDS, _PROBE_BYTES, _PROBE_BYTES, probe=probe)


def _sound(report: Report) -> Report:
    if report.failure:
        raise IsolationError(report.failure)
    return report


def pod_place(mounts: Mounts) -> Place:
    """Where the script runs: the container's own mounts, and the lock, as far as this kernel has one."""
    try:
        program = seccomp.compile_filter(alone=False)
    except IsolationError:
        program = None
    alone = in_user_namespace(Path("/proc/self/uid_map").read_text())
    lock = Lock(
        program,
        landlocked=kernel.landlock_abi() > 0,
        access=pod_access(mounts),
        processes=PROCESSES if alone else _SHARED_PROCESSES,
    )
    memory = memory_mounts(Path("/proc/self/mountinfo").read_text())
    return Place(
        mounts.work,
        libraries.script_environment(namespaces.TEMPORARY, cores=cgroups.own_cores()),
        lock,
        first_process=True,
        mounts=tuple(path for path in mounts.own if path in memory),
        walked=tuple(path for path in mounts.own if path not in memory),
    )


def pod_access(mounts: Mounts) -> landlock.Access:
    """The system, the interpreter, /proc and the public data to read; the work folder and two more to write."""
    seen = world.this_world()
    roots = [*seen.trees, Path("/etc"), mounts.public]
    hidden = [*mounts.hidden, *seen.hidden, *_SECRETS]
    whole, listed = landlock.without([path for path in roots if path.exists()], hidden)
    read = (*whole, *seen.shown, Path("/proc"), *world.CPU_FACTS)
    access = landlock.Access(read=read, list=listed, devices=landlock.DEVICES)
    return replace(access, write=mounts.own)


def memory_mounts(mountinfo: str) -> frozenset[Path]:
    """Mount points of whole tmpfs, of /proc/self/mountinfo: what lies in them is known without looking at it."""
    found = set()
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        root, point = before.split()[3:5]
        if root == "/" and after.split()[:1] == ["tmpfs"]:
            found.add(Path(point.encode().decode("unicode_escape")))
    return frozenset(found)


if __name__ == "__main__":
    sys.exit(main())
