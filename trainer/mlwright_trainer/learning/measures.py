"""What an update measured, as flat names and numbers: the metrics that are published with new weights."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from mlwright_trainer.exchange import TrainingRow
from mlwright_trainer.learning.experience import Experience
from mlwright_trainer.learning.guards import logprob_difference
from mlwright_trainer.learning.losses import masked_mean
from mlwright_trainer.learning.update import Learning, Trace

BUCKETS = ("short", "middle", "long")
"""Terciles of execution seconds, of the rows that ran in a sandbox."""


def metrics(data: Experience, trace: Trace, state: Learning, *, version: int) -> dict[str, float]:
    """Everything about one update from `version`; what was not measured is absent, never zero."""
    rows = data.rows
    if not rows:
        return {"rows": 0.0}
    values: dict[str, float | None] = {
        "rows": float(len(rows)),
        "tokens": float(data.forward.mask.sum()),
        "rewardMean": mean([row.reward for row in rows]),
        "loss/policy": mean(trace.policy_losses),
        "loss/value": mean(trace.value_losses),
        "gradientNorm": mean(trace.gradient_norms),
        "criticGradientNorm": mean(trace.critic_gradient_norms),
        "learningRate": float(state.policy_optimizer.param_groups[0]["lr"]),
        "kl": None if data.kl is None else float(masked_mean(data.kl, data.forward.mask)),
        "klCoefficient": None if data.kl is None else state.kl_coefficient,
        "entropy": float(masked_mean(data.forward.entropies, data.forward.mask)),
        "logprobDifference": logprob_difference(
            data.forward.prox, data.forward.behaviour, data.forward.mask, rows=rows, version=version
        ),
        **_advantage_metrics(data),
        **_weight_metrics(data),
        **_staleness(rows, version),
        **_fractions("clipFraction", trace.clipped, trace.visits, rows),
        **_fractions("truncationFraction", trace.truncated, trace.visits, rows),
    }
    return {name: value for name, value in values.items() if value is not None}


def _advantage_metrics(data: Experience) -> dict[str, float | None]:
    """Moments of the token advantages before normalisation, and how much of the returns the critic
    explains."""
    mask = data.forward.mask
    centre = masked_mean(data.raw_advantages, mask)
    spread = masked_mean((data.raw_advantages - centre).square(), mask).sqrt()
    returns_mean = masked_mean(data.returns, mask)
    variance = float(masked_mean((data.returns - returns_mean).square(), mask))
    return {
        "advantageMean": float(centre),
        "advantageDeviation": float(spread),
        "explainedVariance": 1 - float(spread) ** 2 / variance if variance > 0 else None,
    }


def _weight_metrics(data: Experience) -> dict[str, float | None]:
    return {
        "effectiveSampleSize": data.duration.effective_sample_size,
        "missingMass": data.duration.missing_mass,
        "weightMax": max(data.duration.values),
        "weightsClipped": float(data.duration.clipped),
    }


def _staleness(rows: Sequence[TrainingRow], version: int) -> dict[str, float | None]:
    """Updates between a row's policy and the one that learns from it."""
    ages = [version - row.policy_version for row in rows]
    return {"stalenessMean": mean(ages), "stalenessMax": float(max(ages))}


def _fractions(
    name: str, counts: Tensor, visits: Tensor, rows: Sequence[TrainingRow]
) -> dict[str, float | None]:
    """Share of token visits, over all rows and by duration bucket."""
    shares = {name: _share(counts, visits, range(len(rows)))}
    for bucket, members in duration_buckets(rows).items():
        shares[f"{name}/{bucket}"] = _share(counts, visits, members)
    return shares


def _share(counts: Tensor, visits: Tensor, members: Sequence[int]) -> float | None:
    total = float(visits[list(members)].sum())
    return float(counts[list(members)].sum()) / total if total else None


def duration_buckets(rows: Sequence[TrainingRow]) -> dict[str, list[int]]:
    """Indices of the executed rows by tercile of execution seconds; empty where fewer than three ran."""
    ran = sorted(
        (row.execution_seconds, i) for i, row in enumerate(rows) if row.execution_seconds is not None
    )
    if len(ran) < len(BUCKETS):
        return {}
    bounds = [len(ran) * k // len(BUCKETS) for k in range(len(BUCKETS) + 1)]
    return {name: [i for _, i in ran[bounds[k] : bounds[k + 1]]] for k, name in enumerate(BUCKETS)}


def mean(values: Sequence[float]) -> float | None:
    """None of nothing."""
    return math.fsum(values) / len(values) if values else None
