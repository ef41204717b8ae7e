"""A script that tries to get out of its sandbox in every way that it knows, harmlessly; one JSON line an attempt.

Run it as a rollout's script. A line is {"name": "EPERM"}: how the attempt was refused; or {"name": {"got": ...}}: what
it got, which is a hole. A line near the end counts both. The lines of a good sandbox are short, so that all of them
fit into a status's outputTail. It needs nothing but Python; a file probe.json beside it may name other targets:
{"addresses": {"otherPod": ["10.1.2.3", 80]}, "paths": {"answers": "/elsewhere/answers.csv"}}.

Its own submission is a link to the answers: the grader has to refuse that.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import platform
import resource
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

ADDRESSES: dict[str, tuple[str, int]] = {
    "apiServer": ("10.96.0.1", 443),
    "metadata": ("169.254.169.254", 80),
    "otherPod": ("10.244.0.1", 8080),
    "service": ("10.96.0.10", 53),
    "node": ("127.0.0.1", 10250),
}
PATHS = {
    "answers": "/private/answers.csv",
    "sealed": "/sealed/answers.csv",
    "control": "/control",
    "request": "/request",
    "message": "/dev/termination-log",
}
CONNECT_SECONDS = 1.0
FORKS = 600
RUNNER = os.getppid()
_LIBC = ctypes.CDLL(None, use_errno=True)
_X86 = platform.machine() == "x86_64"
_NUMBERS = {
    "add_key": 248 if _X86 else 217,
    "keyctl": 250 if _X86 else 219,
    "bpf": 321 if _X86 else 280,
    "userfaultfd": 323 if _X86 else 282,
    "perf_event_open": 298 if _X86 else 241,
    "io_uring_setup": 425,
    "open_tree": 428,
    "fsopen": 430,
    "pidfd_getfd": 438,
    "process_vm_readv": 310 if _X86 else 270,
    "unshare": 272 if _X86 else 97,
    "setns": 308 if _X86 else 268,
    "kexec_load": 246 if _X86 else 104,
    "init_module": 175 if _X86 else 105,
}
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
Attempt = Callable[[], object]


def call(name: str, *arguments: object) -> int:
    """A system call by its name; raises OSError."""
    found: int = _LIBC.syscall(_NUMBERS[name], *arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def libc(name: str, *arguments: object) -> int:
    """A function of the C library that returns -1 and errno; raises OSError."""
    found: int = getattr(_LIBC, name)(*arguments)
    if found < 0:
        raise OSError(ctypes.get_errno(), name)
    return found


def refused(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def any_of(*attempts: Attempt) -> object:
    """What the first got that got anything; else the last refusal."""
    last: OSError = refused(errno.ENOENT)
    for attempt in attempts:
        try:
            return attempt()
        except OSError as error:
            last = error
    raise last


def read(path: str) -> object:
    if Path(path).is_dir():
        return any_of(*[lambda name=name: name for name in os.listdir(path)])  # noqa: PTH208
    with open(path, "rb") as file:  # noqa: PTH123
        return file.read(20).hex()


def reads(*paths: str) -> Attempt:
    return lambda: any_of(*[lambda path=path: (path, read(path)) for path in paths])


def make(path: str) -> object:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    os.unlink(path)  # noqa: PTH108
    return path


def appends(*paths: str) -> Attempt:
    return lambda: any_of(
        *[lambda path=path: (path, os.open(path, os.O_WRONLY | os.O_APPEND)) for path in paths]
    )


def makes_in(*folders: str) -> Attempt:
    return lambda: any_of(*[lambda folder=folder: make(f"{folder}/mlwright-leaked") for folder in folders])


def connects(name: str) -> Attempt:
    def attempt() -> object:
        with socket.create_connection(ADDRESSES[name], CONNECT_SECONDS):
            return ADDRESSES[name]

    return attempt


def opens(family: int, kind: int = socket.SOCK_DGRAM) -> Attempt:
    def attempt() -> object:
        socket.socket(family, kind).close()
        return "a socket"

    return attempt


def asks_a_name_server() -> object:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        return client.sendto(b"\0\1\1\0\0\1\0\0\0\0\0\0\0\0\1\0\1", ("127.0.0.1", 53))


def resolves() -> object:
    return socket.getaddrinfo("kubernetes.default.svc", 443)[0][4]


def sends(pid: int, number: int) -> object:
    os.kill(pid, number)
    return pid


def signals() -> object:
    """0 asks only whether one may; the others are sent where that was refused."""
    return any_of(
        *[
            lambda number=number, pid=pid: sends(pid, number)
            for pid in {1, RUNNER}
            for number in (0, signal.SIGSTOP, signal.SIGTERM, signal.SIGKILL)
        ]
    )


def signals_behind_a_descriptor() -> object:
    descriptor = os.pidfd_open(RUNNER)
    try:
        signal.pidfd_send_signal(descriptor, 0)  # only asks whether one may
    finally:
        os.close(descriptor)
    return RUNNER


def limits_the_runner() -> object:
    return resource.prlimit(RUNNER, resource.RLIMIT_NOFILE, (1, 1))


def raises_a_limit() -> object:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if hard == resource.RLIM_INFINITY:
        return "no limit"
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft + 1, hard + 1))
    except ValueError:
        raise refused(errno.EPERM) from None
    return hard + 1


def runner_files() -> list[str]:
    return [
        f"/proc/{pid}/{name}"
        for pid in sorted({1, RUNNER})
        for name in ("environ", "mem", "maps", "fd/0", "fd/3", "cwd/", "root/")
    ]


def others() -> object:
    """The memory of any process but our own."""
    own = {str(os.getpid()), "self", "thread-self"}
    found = [name for name in os.listdir("/proc") if name.isdigit() and name not in own]  # noqa: PTH208
    return any_of(*[lambda pid=pid: (pid, read(f"/proc/{pid}/environ")) for pid in found])


def roots() -> list[str]:
    """Ways round a path rule to the control files."""
    ways = (
        "/proc/self/root",
        "/proc/1/root",
        f"/proc/{RUNNER}/root",
        "/proc/self/cwd/../..",
        "/proc/self/fd/3/..",
    )
    return [f"{way}{path}" for way in ways for path in (f"{PATHS['control']}/lock", PATHS["message"])]


def links_the_lock() -> object:
    os.link(f"{PATHS['control']}/lock", "lock")
    return read("lock")


def takes_the_lock() -> object:
    import fcntl

    descriptor = os.open(f"{PATHS['control']}/lock", os.O_RDWR)
    fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return "the lock"


def binds() -> object:
    Path("mount").mkdir(exist_ok=True)
    return libc("mount", b"/", b"mount", None, 4096, None)


def mounts_anew() -> object:
    Path("mount").mkdir(exist_ok=True)
    return libc("mount", b"none", b"mount", b"tmpfs", 0, None)


def becomes_root() -> object:
    """Or, where we are root of a kind, somebody else."""
    other = 0 if os.getuid() else 1
    return any_of(
        lambda: os.setuid(other),
        lambda: os.setgid(other),
        lambda: os.setgroups([other]),
        lambda: os.setresuid(other, other, other),
    )


def has_capabilities() -> object:
    """Or may get them from a file that has some, or a set user id."""
    facts = dict(
        line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
    )
    held = {name: facts[name] for name in ("CapEff", "CapPrm", "CapInh", "CapAmb") if int(facts[name], 16)}
    if held or facts["NoNewPrivs"] != "1" or facts["Seccomp"] == "0":
        return held or "privileges can be gained"
    raise refused(errno.EPERM)


def keeps_a_set_user_id() -> object:
    """A shell that somebody else would run as us: useless, but a sign of a mount that does not ignore it."""
    shutil.copy("/bin/true", "true")
    Path("true").chmod(0o6755)
    mode = Path("true").stat().st_mode
    flags = os.statvfs(".").f_flag
    privileges = "NoNewPrivs:\t1" not in Path("/proc/self/status").read_text()
    if mode & stat.S_ISUID and not flags & os.ST_NOSUID and privileges:
        return oct(mode)
    raise refused(errno.EPERM)


def makes_a_device() -> object:
    os.mknod("device", 0o600 | stat.S_IFBLK, os.makedev(8, 0))
    return "device"


def opens_by_handle() -> object:
    handle = ctypes.create_string_buffer(b"\x80\0\0\0\x01\0\0\0" + b"\0" * 128, 136)
    mount_id = ctypes.c_int()
    libc("name_to_handle_at", -100, b"/", handle, ctypes.byref(mount_id), 0)
    return libc("open_by_handle_at", os.open(".", os.O_RDONLY), handle, 0)


def takes_memory() -> object:
    """As much as no sandbox gives; not touched, so that nobody is killed for it."""
    try:
        mmap.mmap(-1, 1 << 40, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError, ValueError):
        raise refused(errno.ENOMEM) from None
    return "a tebibyte"


def writes_a_big_file() -> object:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with open("big", "wb") as file:  # noqa: PTH123
            file.truncate(1 << 40)
    finally:
        with suppress(OSError):
            os.unlink("big")  # noqa: PTH108
    return "a tebibyte"


def fills(folder: str) -> Attempt:
    """Up to a gibibyte in files of a mebibyte; gives everything back."""

    def attempt() -> object:
        with tempfile.TemporaryDirectory(dir=folder) as own:
            for number in range(1024):
                (Path(own) / str(number)).write_bytes(bytes(1 << 20))
        return "a gibibyte"

    return attempt


def forks() -> object:
    """More processes than anybody needs; they end when this one closes the pipe."""
    waiting, ours = os.pipe()
    children = []
    try:
        for _ in range(FORKS):
            pid = os.fork()
            if pid == 0:
                os.close(ours)
                os.read(waiting, 1)
                os._exit(0)
            children.append(pid)
        return FORKS
    finally:
        os.close(ours)
        os.close(waiting)
        for pid in children:
            os.waitpid(pid, 0)


def attempts() -> Iterator[tuple[str, Attempt]]:
    """All that is tried but the floods."""
    for some in (network, files, runner, privileges, kernel_interfaces, limits):
        yield from some()


def network() -> Iterator[tuple[str, Attempt]]:
    yield from ((name, connects(name)) for name in ("apiServer", "metadata", "otherPod", "service", "node"))
    yield "resolve", resolves
    yield "udp", asks_a_name_server
    yield "rawSocket", opens(socket.AF_INET, socket.SOCK_RAW)
    yield "netlink", opens(socket.AF_NETLINK, socket.SOCK_RAW)
    yield "packet", opens(socket.AF_PACKET, socket.SOCK_RAW)
    yield "vsock", opens(socket.AF_VSOCK, socket.SOCK_STREAM)


def files() -> Iterator[tuple[str, Attempt]]:
    yield "answers", reads(PATHS["answers"], PATHS["sealed"])
    yield "token", reads("/var/run/secrets/kubernetes.io/serviceaccount/token", "/run/secrets")
    yield "hostFiles", reads("/etc/shadow", "/host", "/var/lib/kubelet", "/root/.bashrc", "/var/log")
    yield "hostSockets", reads("/run/containerd/containerd.sock", "/var/run/docker.sock", "/run/dbus")
    yield "task", reads(f"{PATHS['request']}/task.json")
    yield "request", reads(f"{PATHS['request']}/job.json", PATHS["request"])
    yield "control", reads(PATHS["control"])
    yield "controlWrite", makes_in(PATHS["control"])
    yield "lock", takes_the_lock
    yield "lockLink", links_the_lock
    yield "message", any_of_message()
    yield (
        "rootWrite",
        makes_in("/", "/usr", "/etc", "/opt", "/var/tmp", "/run", str(Path(os.__file__).parent)),
    )
    yield "dataWrite", any_of_data()
    yield (
        "roundabout",
        lambda: any_of(*[reads(path) for path in roots()], *[appends(path) for path in roots()]),
    )


def runner() -> Iterator[tuple[str, Attempt]]:
    yield "runnerFiles", reads(*runner_files())
    yield "runnerMemory", lambda: call("process_vm_readv", RUNNER, None, 0, None, 0, 0)
    yield "otherProcesses", others
    yield "ptrace", lambda: libc("ptrace", 16, RUNNER, None, None)
    yield "signals", signals
    yield "pidfdSignal", signals_behind_a_descriptor
    yield "runnerLimits", limits_the_runner


def privileges() -> Iterator[tuple[str, Attempt]]:
    yield "mount", mounts_anew
    yield "bind", binds
    yield (
        "newMount",
        lambda: any_of(lambda: call("fsopen", b"tmpfs", 0), lambda: call("open_tree", -100, b"/", 1)),
    )
    yield "chroot", lambda: os.chroot("/tmp")
    yield "userNamespace", lambda: call("unshare", _CLONE_NEWUSER)
    yield "netNamespace", lambda: call("unshare", _CLONE_NEWNET)
    yield "setuid", becomes_root
    yield "setuidFile", keeps_a_set_user_id
    yield "capabilities", has_capabilities
    yield "device", makes_a_device
    yield "handle", opens_by_handle


def kernel_interfaces() -> Iterator[tuple[str, Attempt]]:
    yield "keyring", uses_the_keyring
    yield "ioUring", lambda: call("io_uring_setup", 1, ctypes.create_string_buffer(256))
    yield "bpf", lambda: call("bpf", 0, ctypes.create_string_buffer(128), 128)
    yield "userfaultfd", lambda: call("userfaultfd", 0)
    yield "perf", lambda: call("perf_event_open", ctypes.create_string_buffer(128), 0, -1, -1, 0)
    yield (
        "module",
        lambda: any_of(lambda: call("init_module", 0, 0, b""), lambda: call("kexec_load", 0, 0, 0, 0)),
    )
    yield "kernelLog", lambda: libc("klogctl", 3, ctypes.create_string_buffer(64), 64)
    yield (
        "sysctl",
        appends("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"),
    )


def limits() -> Iterator[tuple[str, Attempt]]:
    yield "ownLimits", raises_a_limit
    yield "oomScore", appends("/proc/self/oom_score_adj", "/proc/1/oom_score_adj")
    yield "memory", takes_memory
    yield "bigFile", writes_a_big_file


def floods() -> Iterator[tuple[str, Attempt]]:
    """What a sandbox may also answer by ending the script; and then this was the last line."""
    yield "shmFill", fills("/dev/shm")
    yield "tmpFill", fills(tempfile.gettempdir())
    yield "workFill", fills(".")
    yield "forks", forks


def any_of_message() -> Attempt:
    return lambda: any_of(reads(PATHS["message"]), appends(PATHS["message"]))


def any_of_data() -> Attempt:
    return lambda: any_of(appends("data/sample_submission.csv"), makes_in("data"))


def uses_the_keyring() -> object:
    return any_of(lambda: call("keyctl", 0, -3, 1), lambda: call("add_key", b"user", b"x", b"x", 1, -4))


def outcome(attempt: Attempt) -> object:
    """The errno's name where it was refused."""
    try:
        found = attempt()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    return {"got": str(found)[:60]}


def tell(line: object) -> None:
    print(json.dumps(line, separators=(",", ":")), flush=True)  # noqa: T201  # what a script has to say


def main() -> None:
    """Try everything, a line each; before the floods, one that counts."""
    with suppress(OSError):
        other = json.loads(Path("probe.json").read_text())
        ADDRESSES.update({name: (host, port) for name, (host, port) in other.get("addresses", {}).items()})
        PATHS.update(other.get("paths", {}))
    os.symlink(PATHS["answers"], "submission.csv")  # noqa: PTH211
    tried = {}
    for name, attempt in attempts():
        tried[name] = outcome(attempt)
        tell({name: tried[name]})
    tell({"tried": len(tried), "got": [name for name, found in tried.items() if isinstance(found, dict)]})
    for name, attempt in floods():
        tell({name: outcome(attempt)})


if __name__ == "__main__":
    main()
