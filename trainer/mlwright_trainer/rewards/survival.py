"""Kaplan-Meier: how long scripts take, learned also from those that were cancelled before they ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from mlwright_trainer.exchange import Launch


def survival_after(launches: Iterable[Launch], seconds: float) -> float:
    """Estimated share of launches that take longer than `seconds`; 0 without launches.

    A cancelled launch is censored at the time until which it was watched; at equal times an end counts
    before a cancellation (Kaplan and Meier, 1958).
    """
    watched = list(launches)
    ended = Counter(launch.seconds for launch in watched if launch.finished)
    cancelled = Counter(launch.seconds for launch in watched if not launch.finished)
    at_risk, share = len(watched), 1.0 if watched else 0.0
    for time in sorted(ended.keys() | cancelled.keys()):
        if time > seconds:
            break
        share *= 1 - ended[time] / at_risk
        at_risk -= ended[time] + cancelled[time]
    return share
