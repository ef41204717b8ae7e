"""The system calls that Python does not wrap: unshare, mount, prctl, capset, Landlock and seccomp filters."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

LINUX = sys.platform == "linux"

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC = 1, 2, 4, 8, 4096, 16384

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_GET_NO_NEW_PRIVS = 39
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2
PTRACE_ATTACH = 16

_CAPABILITY_VERSION_3 = 0x20080522
_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_LANDLOCK_VERSION = 1
_LANDLOCK_RULE_PATH_BENEATH = 1


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: Any) -> int:
    """Call a C function that returns -1 and errno; raises OSError."""
    function: Callable[..., int] = getattr(_library(), name)
    result = function(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _system_call(number: int, *arguments: Any) -> int:
    function = _library().syscall
    function.restype = ctypes.c_long
    return _call("syscall", ctypes.c_long(number), *arguments)


def unshare(flags: int) -> None:
    """Leave the namespaces named by CLONE_NEW... flags; the caller must have one thread."""
    _call("unshare", flags)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """mount(2)."""
    _call(
        "mount",
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )


def prctl(option: int, *values: int) -> int:
    """prctl(2) with integer arguments, missing ones being 0."""
    padded = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return _call("prctl", option, *padded)


def ptrace_attach(pid: int) -> None:
    """PTRACE_ATTACH."""
    _call("ptrace", PTRACE_ATTACH, pid, None, None)


def drop_capabilities() -> None:
    """Empty every capability set, so that nothing can be regained."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # beyond the last capability, or already without the right to drop
            break
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    _call("capset", header, (ctypes.c_uint32 * 6)())


class _SockFprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def load_seccomp(program: bytes) -> None:
    """Install a compiled BPF program (8 bytes an instruction); needs no_new_privs or CAP_SYS_ADMIN."""
    loaded = _SockFprog(len(program) // 8, program)
    _call("prctl", PR_SET_SECCOMP, ctypes.c_ulong(SECCOMP_MODE_FILTER), ctypes.byref(loaded))


@cache
def landlock_abi() -> int:
    """The kernel's Landlock ABI version; 0 where it has none."""
    if not LINUX:
        return 0
    try:
        flag = ctypes.c_uint32(_LANDLOCK_VERSION)
        return _system_call(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), flag)
    except OSError:
        return 0


def landlock_create_ruleset(filesystem: int, network: int, scoped: int, *, abi: int) -> int:
    """A descriptor of a new ruleset that handles (denies) these accesses."""
    values = [filesystem, network, scoped][: 1 + (abi >= 4) + (abi >= 6)]
    attributes = (ctypes.c_uint64 * len(values))(*values)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    return _system_call(_LANDLOCK_CREATE_RULESET, attributes, size, ctypes.c_uint32(0))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def landlock_allow(ruleset: int, path: str, allowed: int) -> None:
    """Allow accesses beneath a path."""
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathBeneath(allowed, parent)
        kind, flags = ctypes.c_int(_LANDLOCK_RULE_PATH_BENEATH), ctypes.c_uint32(0)
        _system_call(_LANDLOCK_ADD_RULE, ctypes.c_int(ruleset), kind, ctypes.byref(rule), flags)
    finally:
        os.close(parent)


def landlock_restrict_self(ruleset: int) -> None:
    """Enforce a ruleset on the calling thread and its future children; needs no_new_privs."""
    _system_call(_LANDLOCK_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0))
