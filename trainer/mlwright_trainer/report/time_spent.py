"""How the wall time of a run was spent, as slices of one bar."""

from __future__ import annotations

from dataclasses import dataclass

from mlwright_trainer.report.model import Seconds

_NAMES = {
    "fine_tuning": ("fine-tuning", "t1"),
    "sampling": ("sampling", "t2"),
    "execution": ("running scripts", "t3"),
    "learning": ("learning", "t4"),
    "sealed": ("sealed grading", "t5"),
    "other": ("everything else", "t6"),
}


@dataclass(frozen=True)
class Slice:
    """A part of the time; `share` is of all parts together."""

    label: str
    style: str
    seconds: float
    share: float


def slices(seconds: Seconds) -> list[Slice]:
    """The parts that took any time, in the order in which a run goes through them."""
    spent = {name: getattr(seconds, name) for name in _NAMES}
    whole = sum(spent.values())
    return [
        Slice(*_NAMES[name], seconds=value, share=value / whole) for name, value in spent.items() if value > 0
    ]
