"""One line at a time for the person who waits: what is being done, and how long it took."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


def say(text: str) -> None:
    """Writes a line to standard error; standard output is for results."""
    sys.stderr.write(f"cluster: {text}\n")
    sys.stderr.flush()


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Says what is being done, and when it is done how many seconds it took."""
    say(f"{what} ...")
    started = time.monotonic()
    yield
    say(f"{what}: {time.monotonic() - started:.0f} s")
