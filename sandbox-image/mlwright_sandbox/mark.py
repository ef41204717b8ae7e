"""The function that instrumented code calls at a milestone; imports nothing, since it may travel to workers."""

from __future__ import annotations

from collections.abc import Callable


class Mark:
    """Passes a milestone's index on when it is higher than all before; never disturbs the script.

    A script's functions may be pickled together with their globals (joblib, cloudpickle): in another process
    a mark does nothing.
    """

    __slots__ = ("_emit", "_highest")

    def __init__(self, emit: Callable[[int], object]) -> None:
        self._emit = emit
        self._highest = -1

    def __call__(self, index: int) -> None:
        if index > self._highest:
            self._highest = index
            try:
                self._emit(index)
            except OSError:
                # The script has closed the descriptor: its own business, and its loss.
                return

    def __reduce__(self) -> tuple[Callable[[], Callable[[int], None]], tuple[()]]:
        return silent, ()


def silent() -> Callable[[int], None]:
    """A mark that does nothing."""
    return _ignore


def _ignore(_index: int) -> None:
    return
