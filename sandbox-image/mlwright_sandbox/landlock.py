"""Landlock rules: which paths a locked script may read and write, everything else being denied."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from stat import S_ISDIR

from mlwright_sandbox import kernel

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FILESYSTEM_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many filesystem accesses each ABI version knows; 5 and later know 16."""
_NETWORK = 0b11
_SCOPES = 0b11
"""Abstract Unix sockets and signals may not leave the domain (ABI 6)."""
SIGNALS_SCOPED_ABI = 6
"""The first that keeps signals within the domain."""

_FILE_ACCESSES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = EXECUTE | READ_FILE | READ_DIR
DEVICES = tuple(Path("/dev", name) for name in ("null", "zero", "full", "random", "urandom"))
"""Those that every program may use."""


@dataclass(frozen=True)
class Access:
    """What a locked process may touch; paths that do not exist are left out."""

    read: tuple[Path, ...] = ()
    """Read, list and execute beneath."""
    list: tuple[Path, ...] = ()
    """List directories beneath, but read no file."""
    write: tuple[Path, ...] = ()
    """Everything but device nodes beneath."""
    devices: tuple[Path, ...] = ()
    """Single files to read and write."""

    def extended(self, *, read: Sequence[Path] = (), write: Sequence[Path] = ()) -> Access:
        """The same with more."""
        return replace(self, read=(*self.read, *read), write=(*self.write, *write))


def known_accesses(abi: int) -> int:
    """The filesystem accesses that a kernel of this ABI can deny."""
    return (1 << _FILESYSTEM_BITS.get(abi, 16)) - 1


def restrict(access: Access) -> None:
    """Deny the calling process everything that `access` does not allow; needs no_new_privs and Landlock."""
    abi = kernel.landlock_abi()
    known = known_accesses(abi)
    ruleset = kernel.landlock_create_ruleset(known, _NETWORK, _SCOPES, abi=abi)
    try:
        for path, allowed in _rules(access, known):
            with suppress(FileNotFoundError):
                kernel.landlock_allow(ruleset, os.fspath(path), allowed & _possible(path))
        kernel.landlock_restrict_self(ruleset)
    finally:
        os.close(ruleset)


def _rules(access: Access, known: int) -> Iterator[tuple[Path, int]]:
    writable = known & ~(_MAKE_CHAR | _MAKE_BLOCK)
    yield from ((path, _READ) for path in access.read)
    yield from ((path, READ_DIR) for path in access.list)
    yield from ((path, writable) for path in access.write)
    yield from ((path, known & (READ_FILE | WRITE_FILE | _TRUNCATE)) for path in access.devices)


def _possible(path: Path) -> int:
    """A rule on a file may only name accesses that a file has."""
    return -1 if S_ISDIR(path.stat().st_mode) else _FILE_ACCESSES


def without(roots: Sequence[Path], hidden: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Split trees so that `hidden` is left out, since a rule cannot be taken back further down.

    Links are followed, as the kernel does when it makes a rule. Returns (paths that can be allowed whole,
    directories that may only be listed).
    """
    secrets = [path.resolve() for path in hidden]
    whole: dict[Path, None] = {}
    listed: dict[Path, None] = {}
    waiting = list(roots)
    while waiting:
        path = waiting.pop().resolve()
        if path in whole or path in listed or any(path.is_relative_to(secret) for secret in secrets):
            continue
        if any(secret.is_relative_to(path) for secret in secrets):
            listed[path] = None
            waiting.extend(path.iterdir())
        else:
            whole[path] = None
    return tuple(whole), tuple(listed)
