"""The lock's parts, each tried in a child process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from mlwright_api.results import Limit
from mlwright_sandbox import seccomp
from mlwright_sandbox.lock import mapped_bytes
from mlwright_sandbox.script import _limit_of

SETUP = """
import ctypes, errno, os, resource, socket, sys
from pathlib import Path
from mlwright_sandbox import kernel, landlock, lock, seccomp
def refused(call, *arguments):
    try:
        call(*arguments)
    except OSError as error:
        return errno.errorcode[error.errno]
    return "allowed"
"""


def child(code: str) -> list[str]:
    """What a fresh interpreter prints, by line."""
    done = subprocess.run([sys.executable, "-c", SETUP + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


FILTERED = """
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
kernel.load_seccomp(seccomp.compile_filter(alone={alone}))
"""


def test_the_filter_is_whole_instructions() -> None:
    assert len(seccomp.compile_filter(alone=False)) % 8 == 0
    assert len(seccomp.compile_filter(alone=True)) > len(seccomp.compile_filter(alone=False))


def test_the_filter_denies_what_it_names_and_nothing_that_scripts_need() -> None:
    code = (
        FILTERED.format(alone=False)
        + """
print(refused(socket.socket, socket.AF_INET), refused(socket.socket, socket.AF_UNIX))
print(refused(kernel.unshare, kernel.CLONE_NEWUSER), refused(kernel.unshare, 0))
print(refused(kernel.ptrace_attach, os.getppid()), refused(kernel.mount, "a", "/tmp", "tmpfs", 0))
print(refused(os.sched_setaffinity, 0, os.sched_getaffinity(0)))
pid = os.fork()
if pid == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
import threading
threading.Thread(target=print, args=("thread",)).start()
"""
    )
    assert child(code) == ["EPERM", "allowed", "EPERM", "EPERM", "EPERM", "EPERM", "EPERM", "7", "thread"]


def test_where_landlock_keeps_no_signals_the_filter_keeps_those_to_the_first_process() -> None:
    """Of a container that is the runner, and a pod's has a handler."""
    code = (
        "kernel.landlock_abi = lambda: 5\n"
        + FILTERED.format(alone=False)
        + """
print(refused(os.kill, 1, 0), refused(os.kill, -1, 0), refused(os.pidfd_open, 1))
print(refused(os.kill, os.getpid(), 0), refused(os.pidfd_open, os.getpid()))
"""
    )
    assert child(code) == ["EPERM", "EPERM", "EPERM", "allowed", "allowed"]


def test_alone_the_filter_also_denies_connecting_and_what_outlives_a_script() -> None:
    code = (
        """
libc = ctypes.CDLL(None, use_errno=True)
server = socket.socket(socket.AF_UNIX)
server.bind("\\0mlwright-unit-" + str(os.getpid()))
server.listen()
def connect():
    socket.socket(socket.AF_UNIX).connect(server.getsockname())
print(refused(connect))
"""
        + FILTERED.format(alone=True)
        + """
print(refused(connect), refused(socket.socket, socket.AF_UNIX, socket.SOCK_DGRAM))
print(libc.shmget(1, 10, 0o1600), libc.semget(1, 1, 0o1600), libc.msgget(1, 0o1600))
"""
    )
    assert child(code) == ["allowed", "EPERM", "EPERM", "-1", "-1", "-1"]


def test_path_rules_hold_and_cannot_be_taken_back(tmp_path: object) -> None:
    code = f"""
root = Path({str(tmp_path)!r})
for name in ("work", "data", "secret"):
    (root / name).mkdir()
    (root / name / "file").write_text("x")
access = landlock.Access(read=(root / "data", Path("/usr")), write=(root / "work",))
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
landlock.restrict(access)
print(refused((root / "data" / "file").read_text), refused((root / "data" / "file").write_text, "y"))
print(refused((root / "work" / "new").write_text, "y"), refused((root / "secret" / "file").read_text))
print(refused((root / "data" / "file").unlink), refused(os.link, root / "data" / "file", root / "work" / "link"))
landlock.restrict(landlock.Access(read=(root,)))
print(refused((root / "secret" / "file").read_text))
"""
    # A link into another directory is refused as one across devices, so that programs copy instead.
    assert child(code) == ["allowed", "EACCES", "allowed", "EACCES", "EACCES", "EXDEV", "EACCES"]


def test_the_lock_as_a_whole_engages_and_knows_that_it_did() -> None:
    code = """
made = lock.Lock(seccomp.compile_filter(alone=True), True, landlock.Access(read=(Path("/"),)))
print(lock.engaged(made))
lock.engage(made, memory_bytes=1 << 28, file_bytes=1 << 20)
print(lock.engaged(made), resource.getrlimit(resource.RLIMIT_CORE), resource.getrlimit(resource.RLIMIT_FSIZE)[1])
try:
    parts = [bytearray(1 << 26) for _ in range(20)]
except MemoryError:
    print("MemoryError")
print("CapEff:\\t0000000000000000" in Path("/proc/self/status").read_text())
"""
    assert child(code) == ["False", "True", "(0,", "0)", "1048576", "MemoryError", "True"]


def test_this_process_has_mapped_memory() -> None:
    assert mapped_bytes() > 1 << 20


@pytest.mark.parametrize(
    ("error", "limit"),
    [
        (MemoryError(), Limit.MEMORY),
        (OSError(28, "No space left on device"), Limit.DISK),
        (OSError(122, "Disk quota exceeded"), Limit.DISK),
        (OSError(27, "File too large"), Limit.DISK),
        (OSError(24, "Too many open files"), Limit.FILES),
        (BlockingIOError(11, "Resource temporarily unavailable"), Limit.PROCESSES),
        (RuntimeError("can't start new thread"), Limit.PROCESSES),
        (RuntimeError("other"), None),
        (OSError(2, "No such file"), None),
        (ValueError("No space left on device"), None),
    ],
)
def test_an_uncaught_exception_stands_for_the_limit_that_it_names(
    error: BaseException, limit: Limit | None
) -> None:
    assert _limit_of(error) is limit


def test_an_exception_raised_from_a_limit_stands_for_it_too() -> None:
    error = ValueError("cannot save")
    error.__cause__ = OSError(28, "No space left on device")
    assert _limit_of(error) is Limit.DISK
