"""The seccomp filter of a locked script: system calls that no data science needs and that attacks do."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mlwright_sandbox import kernel, landlock
from mlwright_sandbox.errors import IsolationError

_DENIED = (
    # Look into or steer other processes.
    "ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd perf_event_open",
    # Change what the file system is; open files behind the back of path rules.
    "mount umount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr",
    "name_to_handle_at open_by_handle_at fanotify_init quotactl quotactl_fd swapon swapoff acct",
    # Leave or make namespaces.
    "unshare setns",
    # Kernel interfaces with a history of holes.
    "keyctl add_key request_key bpf userfaultfd io_uring_setup io_uring_enter io_uring_register",
    "kexec_load kexec_file_load init_module finit_module delete_module create_module lookup_dcookie",
    "vmsplice modify_ldt uselib nfsservctl vhangup",
    # The machine itself.
    "reboot settimeofday clock_settime clock_settime64 adjtimex clock_adjtime stime syslog",
    "sethostname setdomainname ioperm iopl personality",
    # A script keeps to the core that its slot has.
    "sched_setaffinity sched_setscheduler sched_setparam sched_setattr mbind migrate_pages move_pages set_mempolicy",
)
_NAMESPACES = (
    kernel.CLONE_NEWNS
    | kernel.CLONE_NEWCGROUP
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
)
_AF_UNIX = 1
_SOCK_TYPE_MASK, _SOCK_DGRAM = 0xF, 2
_PRIO_PROCESS, _IOPRIO_PROCESS = 0, 1
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_S_IFMT, _DEVICES = 0o170000, (0o020000, 0o060000)
_EVERYBODY = 0xFFFFFFFF
"""kill(-1), as the 32 bits that the kernel looks at."""


def compile_filter(*, alone: bool) -> bytes:
    """The BPF program; raises IsolationError where libseccomp is missing.

    `alone`: whether the lock is all there is. Then Unix sockets may not connect, since Landlock does not guard
    other people's sockets, and there is no System V or POSIX IPC, since it outlives who made it.
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError, OSError) as error:
        raise IsolationError(f"seccomp: libseccomp cannot be loaded ({error})") from error
    program = pyseccomp.SyscallFilter(defaction=pyseccomp.ALLOW)
    _deny_calls(pyseccomp, program)
    _deny_arguments(pyseccomp, program)
    if alone:
        _deny_what_namespaces_hold(pyseccomp, program)
    with tempfile.TemporaryFile() as file:
        program.export_bpf(file)
        file.seek(0, os.SEEK_SET)
        return file.read()


def _deny_calls(pyseccomp: Any, program: Any) -> None:
    for name in " ".join(_DENIED).split():
        _deny(pyseccomp, program, name)
    # glibc falls back to clone, whose flags a filter can see.
    _deny(pyseccomp, program, "clone3", number=errno.ENOSYS)


def _deny_arguments(pyseccomp: Any, program: Any) -> None:
    def when(index: int, value: int, mask: int = 0xFFFFFFFF) -> Any:
        return pyseccomp.Arg(index, pyseccomp.MASKED_EQ, mask, value)

    for flag in (1 << bit for bit in range(32) if _NAMESPACES & (1 << bit)):
        _deny(pyseccomp, program, "clone", when(0, flag, flag))
    _deny(pyseccomp, program, "socket", pyseccomp.Arg(0, pyseccomp.NE, _AF_UNIX))
    _deny_arguments_naming_others(pyseccomp, program)
    for command in (_TIOCSTI, _TIOCLINUX):
        _deny(pyseccomp, program, "ioctl", when(1, command))
    for device in _DEVICES:
        _deny(pyseccomp, program, "mknod", when(1, device, _S_IFMT))
        _deny(pyseccomp, program, "mknodat", when(2, device, _S_IFMT))
    # Where Landlock does not scope signals, at least nobody can hit everything at once.
    if kernel.landlock_abi() < landlock.SIGNALS_SCOPED_ABI:
        _deny(pyseccomp, program, "kill", when(0, _EVERYBODY))
        _deny_signals_to_the_first_process(pyseccomp, program)


def _deny_signals_to_the_first_process(pyseccomp: Any, program: Any) -> None:
    """A runner that is PID 1 may have handlers. Behind a descriptor could be anybody."""
    for name in ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open"):
        _deny(pyseccomp, program, name, pyseccomp.Arg(0, pyseccomp.MASKED_EQ, 0xFFFFFFFF, 1))
    _deny(pyseccomp, program, "pidfd_send_signal")


def _deny_arguments_naming_others(pyseccomp: Any, program: Any) -> None:
    """Limits and priorities are for oneself (process number 0): no signal is needed to end a runner by its own."""
    for name, expected in (
        ("prlimit64", [(0, 0)]),
        ("setpriority", [(0, _PRIO_PROCESS), (1, 0)]),
        ("ioprio_set", [(0, _IOPRIO_PROCESS), (1, 0)]),
    ):
        for index, value in expected:
            _deny(pyseccomp, program, name, pyseccomp.Arg(index, pyseccomp.NE, value))


def _deny_what_namespaces_hold(pyseccomp: Any, program: Any) -> None:
    for name in ("connect", "shmget", "msgget", "semget", "mq_open"):
        _deny(pyseccomp, program, name)
    datagram = pyseccomp.Arg(1, pyseccomp.MASKED_EQ, _SOCK_TYPE_MASK, _SOCK_DGRAM)
    for name in ("socket", "socketpair"):
        _deny(pyseccomp, program, name, datagram)


def _deny(pyseccomp: Any, program: Any, name: str, *arguments: Any, number: int = errno.EPERM) -> None:
    add: Callable[..., None] = program.add_rule
    # A call that this libseccomp or this architecture does not know cannot be named; the receipt tests what counts.
    with suppress(ValueError, OSError, RuntimeError):
        add(pyseccomp.ERRNO(number), name, *arguments)
