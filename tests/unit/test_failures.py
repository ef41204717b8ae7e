"""The machine's refusals in the words of the command."""

from __future__ import annotations

import errno

import pytest
from mlwright_trainer.command.failures import explained


@pytest.mark.parametrize(
    ("error", "exit_code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/weights"), 1, ("/x/weights", "--resume")),
        (OSError(errno.EROFS, "Read-only file system", "/x"), 2, ("/x", "another --dir")),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 2, ("permissions",)),
        (
            Exception("Error while serializing: I/O error: No space left on device (os error 28)"),
            1,
            ("free some",),
        ),
        (MemoryError(), 1, ("out of memory", "microbatchTokens")),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried 9 bytes"),
            1,
            ("9 bytes",),
        ),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), 1, ("2 GiB",)),
    ],
)
def test_what_the_machine_refuses_is_said_with_what_to_do(
    error: Exception, exit_code: int, words: tuple[str, ...]
) -> None:
    known = explained(error)
    assert known is not None
    assert known.exit_code == exit_code
    assert all(word in str(known) for word in words)
    assert "\n" not in str(known)


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes do not match"), KeyError("x"), OSError(errno.EBADF, "bad")]
)
def test_a_fault_of_ours_is_not_dressed_up(error: Exception) -> None:
    assert explained(error) is None
