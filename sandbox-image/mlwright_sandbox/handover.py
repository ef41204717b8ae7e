"""The lock by which the agent hands the work folder over to the grader: the kernel releases it, however the agent ends.

The agent makes the file, locks it and then writes one byte, so that a lock which can be taken never means that
there has been none yet. A second byte says that everything of the script's has ended: without it the kernel may still
be ending processes, since a dying process lets go of its locks before its namespace is emptied.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from mlwright_sandbox.errors import HandoverError

_HELD, _CLEAN = b"h", b"c"
_PAUSE_SECONDS = 0.02
SETTLING_SECONDS = 0.2
"""After an unclean end, before what is left can be read."""


class AgentLock:
    """Held by the agent from its first moment; let go by the kernel.

    A lock of the POSIX kind: not inherited by fork, and lost when *any* descriptor of the file is closed by its
    owner, which is why the file is opened here once and never again.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(self._descriptor, _HELD, 0)

    def clean(self) -> None:
        """Say that nothing of the script's is alive any more."""
        os.pwrite(self._descriptor, _CLEAN, len(_HELD))

    def close(self) -> None:
        """Let go of it, as the end of the process does."""
        os.close(self._descriptor)


def wait_for_agent(path: Path, *, seconds: float) -> None:
    """Return when the agent has ended and everything of its script with it.

    Errors: HandoverError if that does not happen within `seconds`.
    """
    deadline = time.monotonic() + seconds
    descriptor = _open_held(path, deadline)
    try:
        _take(descriptor, deadline, seconds)
        if os.fstat(descriptor).st_size <= len(_HELD):
            time.sleep(SETTLING_SECONDS)
    finally:
        os.close(descriptor)


def _open_held(path: Path, deadline: float) -> int:
    """The lock's file, once the agent has locked it."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            descriptor = -1
        if descriptor >= 0:
            if os.fstat(descriptor).st_size:
                return descriptor
            os.close(descriptor)
        _pause(deadline, "the agent has not started")


def _take(descriptor: int, deadline: float, seconds: float) -> None:
    while True:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            _pause(deadline, f"the agent has not ended within {seconds:g} s")
        else:
            return


def _pause(deadline: float, problem: str) -> None:
    if time.monotonic() >= deadline:
        raise HandoverError(problem)
    time.sleep(_PAUSE_SECONDS)
