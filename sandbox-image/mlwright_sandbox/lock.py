"""The lock: what a script's process gives up, for ever, before the first line of the script runs."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mlwright_sandbox import kernel, landlock

PROCESSES = 128
"""Processes and threads of one rollout."""
OPEN_FILES = 1024


@dataclass(frozen=True)
class Lock:
    """What this machine can enforce; made once by a fork server."""

    seccomp: bytes | None
    """The compiled filter; None where libseccomp is missing."""
    landlocked: bool
    access: landlock.Access
    processes: int = PROCESSES
    """What RLIMIT_NPROC is set to, which counts per user and user namespace (and not at all for real root)."""


def engage(lock: Lock, *, memory_bytes: int, file_bytes: int) -> None:
    """Lock the calling process and everything that it will start. Raises OSError if any part fails."""
    set_limits(memory_bytes=memory_bytes, file_bytes=file_bytes, processes=lock.processes)
    kernel.drop_capabilities()
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    if lock.landlocked:
        landlock.restrict(lock.access)
    if lock.seccomp is not None:
        kernel.load_seccomp(lock.seccomp)


def engaged(lock: Lock) -> bool:
    """Whether the kernel says of the calling process what `engage` promised."""
    filtered = kernel.prctl(kernel.PR_GET_SECCOMP) == kernel.SECCOMP_MODE_FILTER
    unprivileged = kernel.prctl(kernel.PR_GET_NO_NEW_PRIVS) == 1
    return unprivileged and filtered == (lock.seccomp is not None)


def set_limits(*, memory_bytes: int, file_bytes: int, processes: int) -> None:
    """Resource limits: a backstop for memory (one process), files, processes; no core dumps."""
    # What the fork server has mapped is shared with it and not the script's.
    _lower(resource.RLIMIT_DATA, mapped_bytes() + memory_bytes)
    _lower(resource.RLIMIT_FSIZE, file_bytes)
    _lower(resource.RLIMIT_NPROC, processes)
    _lower(resource.RLIMIT_NOFILE, OPEN_FILES)
    for without in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        _lower(without, 0)


def mapped_bytes() -> int:
    """Private writable memory of the calling process (VmData): what RLIMIT_DATA counts."""
    with suppress(OSError), suppress(ValueError):
        return int(Path("/proc/self/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def _lower(kind: int, value: int) -> None:
    _, hard = resource.getrlimit(kind)
    ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (ceiling, ceiling))
