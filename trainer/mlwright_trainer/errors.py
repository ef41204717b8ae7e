"""The trainer's errors, one hierarchy.

MlwrightError
├── UserError            the user's mistake: what, where, what to do; the command exits 2
└── InternalError        ours or the machine's fault; the command exits 1
"""

from __future__ import annotations


class MlwrightError(Exception):
    """Base of everything that the trainer raises on purpose; the text is one line fit for a person."""

    exit_code = 1


class UserError(MlwrightError):
    """Something that the user can mend: a file, a field, a missing extra."""

    exit_code = 2


class InternalError(MlwrightError):
    """Something that the user cannot mend: a broken ledger, a dead sandbox, numbers that are not finite."""


def refusal(error: OSError) -> str:
    """What the system said, as part of a sentence."""
    return (error.strerror or str(error)).lower()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the machine ran out of memory; torch says so in the words of a RuntimeError."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("can't allocate memory" in words or "out of memory" in words)
    )
