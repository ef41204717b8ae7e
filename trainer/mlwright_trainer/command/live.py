"""Progress for a person: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

PLAIN_EVERY_SECONDS = 15
"""Where there is no terminal, a stage says at most this often how far it is."""


def live_progress(console: Console) -> LiveBars | PlainLines:
    """Bars where `console` is a terminal, else lines."""
    return LiveBars(console) if console.is_terminal else PlainLines(console)


class LiveBars:
    """One bar for the stage that runs, lines above it for what is done."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", style="dim"),
            console=console,
            transient=True,
        )
        self._stage = self._progress.add_task("starting", total=None, note="")

    def stage(self, name: str, total: int | None = None) -> None:
        self._progress.remove_task(self._stage)
        self._stage = self._progress.add_task(name, total=total, note="")

    def advance(self, done: float, note: str = "") -> None:
        self._progress.update(self._stage, completed=done, note=note)

    def say(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()


class PlainLines:
    """A line when a stage begins, one now and then while it lasts, and one for everything said."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._name = "starting"
        self._total: int | None = None
        self._spoke_at = time.monotonic()

    def stage(self, name: str, total: int | None = None) -> None:
        self._name, self._total = name, total
        self._spoke_at = time.monotonic()
        self._print(name)

    def advance(self, done: float, note: str = "") -> None:
        if time.monotonic() - self._spoke_at >= PLAIN_EVERY_SECONDS:
            self._spoke_at = time.monotonic()
            share = f" {100 * done / self._total:.0f} %" if self._total else ""
            self._print(f"{self._name}:{share} {note}".rstrip())

    def say(self, line: str) -> None:
        self._print(line)

    def _print(self, line: str) -> None:
        self._console.print(
            f"{time.strftime('%H:%M:%S')}  {line}", markup=False, highlight=False, soft_wrap=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
