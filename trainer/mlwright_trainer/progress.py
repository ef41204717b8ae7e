"""The port through which long work says how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Told of stages in order; one stage at a time."""

    def stage(self, name: str, total: int | None = None) -> None:
        """A stage begins (and the one before it has ended); `total` is its size in whatever it counts."""
        ...

    def advance(self, done: float, note: str = "") -> None:
        """`done` of the stage's total are done."""
        ...

    def say(self, line: str) -> None:
        """Something worth a line of its own."""
        ...


class Silence:
    """Progress for nobody."""

    def stage(self, name: str, total: int | None = None) -> None: ...

    def advance(self, done: float, note: str = "") -> None: ...

    def say(self, line: str) -> None: ...
