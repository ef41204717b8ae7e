"""Learning rates as a pure function of the update's number: nothing to save, nothing to lose."""

from __future__ import annotations

import math

from mlwright_api.trainingrun import Scheduler


def learning_rate_factor(scheduler: Scheduler, *, update: int, updates: int) -> float:
    """What the base rate is multiplied by in update `update` (from 0) of `updates`.

    A warmup of w updates rises linearly and reaches 1 in its last one (update 0 learns already); after it,
    Linear and Cosine fall towards 0, which they would reach in update `updates`.
    """
    warmup = scheduler.warmup_updates
    if update < warmup:
        return (update + 1) / warmup
    if scheduler.kind == "Constant":
        return 1.0
    done = min(1.0, (update - warmup) / max(1, updates - warmup))
    return 1 - done if scheduler.kind == "Linear" else 0.5 * (1 + math.cos(math.pi * done))
