"""Takes a submission out of a hostile work folder: one regular file, read once into memory, size-capped."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from itertools import islice

from mlwright_sandbox.errors import InvalidSubmissionError, MissingSubmission
from mlwright_sandbox.reasons import amount, quoted

_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}
_SCRIPTS_FAULT = {errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}
_LISTED_ENTRIES = 256


def read_submission(dir_fd: int, file_name: str, *, cap: int) -> bytes:
    """The bytes of `file_name` in the folder behind `dir_fd`, at most `cap` of them.

    Never follows a link, never blocks on a pipe or a device, never reads more than `cap` + 1 bytes.
    Errors: MissingSubmission, InvalidSubmissionError (each one line); OSError where the machine is at fault.
    """
    if "/" in file_name or file_name in ("", ".", ".."):
        raise ValueError(f"{file_name!r} is not the name of a file")
    _check_kind(_look(dir_fd, file_name), file_name)
    descriptor = _open(dir_fd, file_name)
    try:
        found = os.fstat(descriptor)
        _check_kind(found, file_name)
        _check_size(found.st_size, file_name, cap)
        return _read(descriptor, file_name, cap)
    finally:
        os.close(descriptor)


def _look(dir_fd: int, file_name: str) -> os.stat_result:
    try:
        return os.stat(file_name, dir_fd=dir_fd, follow_symlinks=False)
    except FileNotFoundError:
        others = list(_other_tables(dir_fd))
        hint = f"; there is {others[0]}" if others else ""
        raise MissingSubmission(f"{file_name} was not written{hint}") from None


def _other_tables(dir_fd: int) -> Iterator[str]:
    """Other CSV files that may have been meant; looks at a bounded number of entries."""
    with os.scandir(dir_fd) as entries:
        for entry in islice(entries, _LISTED_ENTRIES):
            if entry.name.lower().endswith((".csv", ".csv.gz", ".tsv", ".parquet")):
                yield quoted(entry.name)


def _check_kind(found: os.stat_result, file_name: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise InvalidSubmissionError(f"{file_name} is {kind}; write a regular file")
    if found.st_nlink != 1:
        # A second name of a file that is not the script's could be anything; honest scripts link nothing.
        raise InvalidSubmissionError(
            f"{file_name} has {found.st_nlink} hard links; write a file of its own instead of linking"
        )


def _open(dir_fd: int, file_name: str) -> int:
    try:
        return os.open(file_name, _OPEN_FLAGS, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in _SCRIPTS_FAULT:
            raise InvalidSubmissionError(f"{file_name} cannot be read: {error.strerror}") from error
        raise


def _check_size(size: int, file_name: str, cap: int) -> None:
    if size > cap:
        raise InvalidSubmissionError(f"{file_name} has {amount(size)}; at most {amount(cap)} are read")
    if size == 0:
        raise InvalidSubmissionError(f"{file_name} is empty")


def _read(descriptor: int, file_name: str, cap: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while part := os.read(descriptor, min(1 << 20, cap + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > cap:
            break
    _check_size(size, file_name, cap)
    return b"".join(parts)
