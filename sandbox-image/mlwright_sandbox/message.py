"""The runner's termination message: at most 4,000 bytes of JSON whatever a script prints, written over and over."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from mlwright_api.results import MILESTONES, RUNNER_MESSAGE_BYTES, Receipt, RunnerResult, Unfinished

from mlwright_sandbox.reasons import one_line
from mlwright_sandbox.runner import Watch

Said = TypeVar("Said", RunnerResult, Unfinished)
EVERY_SECONDS = 1.0
"""Between two messages that differ only in what was printed."""


def encoded(result: Said) -> bytes:
    """The message, cut to RUNNER_MESSAGE_BYTES: the output tail first, from its beginning."""
    whole = _json(result)
    if len(whole) <= RUNNER_MESSAGE_BYTES:
        return whole
    tail = result.output_tail
    kept = _most(len(tail), lambda keep: len(_json(_with_tail(result, keep))) <= RUNNER_MESSAGE_BYTES)
    shorter = _json(_with_tail(result, kept))
    return shorter if len(shorter) <= RUNNER_MESSAGE_BYTES else _json(_bare(result))


def _json(result: RunnerResult | Unfinished) -> bytes:
    return result.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def _with_tail(result: Said, keep: int) -> Said:
    tail = result.output_tail
    return result.model_copy(update={"output_tail": tail[len(tail) - keep :]})


def _bare(result: RunnerResult | Unfinished) -> RunnerResult | Unfinished:
    """Without everything that is only for people to read, when even no tail at all was not enough."""
    if isinstance(result, Unfinished):
        return result.model_copy(update={"output_tail": "", "failure": ascii(result.failure)[:256]})
    receipt: Receipt = result.isolation
    checks = [check.model_copy(update={"detail": ""}) for check in receipt.checks]
    return result.model_copy(
        update={
            "output_tail": "",
            "error": ascii(result.error)[:256],
            "isolation": receipt.model_copy(update={"checks": checks}),
        }
    )


def _most(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `most` that fits (0 where none does), since less of a tail is never longer."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low


class MessageFile:
    """The termination message's file, so written that a reader finds a whole message, or one with spaces behind it."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._length = 0

    def write(self, message: Said) -> None:
        """Replace what was there, in one call; then give the spaces back."""
        content = encoded(message)
        os.pwrite(self._descriptor, content.ljust(self._length), 0)
        os.ftruncate(self._descriptor, len(content))
        self._length = len(content)


class Progress:
    """Tells how far a script has come: at once at a milestone, else now and then."""

    def __init__(self, write: Callable[[Unfinished], None]) -> None:
        self._write = write
        self._milestones = 0
        self._printed = 0
        self._written = time.monotonic()

    def __call__(self, watch: Watch) -> None:
        milestones, now = watch.lines.milestones, time.monotonic()
        news = watch.tail.total != self._printed and now - self._written >= EVERY_SECONDS
        if news or len(milestones) != self._milestones:
            self._milestones, self._printed, self._written = len(milestones), watch.tail.total, now
            names = [MILESTONES[index] for index in milestones]
            self._write(Unfinished(unfinished=True, milestones=names, output_tail=watch.tail.text()))


def failed(reason: str) -> Unfinished:
    """A message that there will be no result, and why."""
    return Unfinished(unfinished=True, failure=one_line(reason))
