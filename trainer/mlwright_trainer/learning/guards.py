"""What stops a run before a weight is changed: broken rows, numbers that are not finite, a sampler that
disagrees."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import TrainingRow

NAMED_ROWS = 8
"""How many offending rows a message names."""

LOGPROB_TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 0.02}
"""Largest mean |sampler - learner| in nats per token at which the two still compute the same policy."""


def require_sound_rows(rows: Sequence[TrainingRow]) -> None:
    """InternalError for rows that must never reach a learner."""
    problems = [f"{row.id}: {problem}" for row in rows if (problem := _problem(row))]
    if problems:
        raise InternalError(f"rows that cannot be trained: {_listed(problems)}")


def _problem(row: TrainingRow) -> str:
    if not row.outcome.trained:
        return f"outcome {row.outcome} has no reward"
    if not row.prompt_tokens or not row.response_tokens:
        return "no prompt or no response tokens"
    if len(row.logprobs) != len(row.response_tokens):
        return f"{len(row.logprobs)} log-probabilities for {len(row.response_tokens)} tokens"
    if not all(map(math.isfinite, (row.reward, *row.logprobs))):
        return "a reward or log-probability that is not finite"
    return ""


def require_finite_rows(values: Tensor, rows: Sequence[TrainingRow], *, what: str) -> None:
    """InternalError naming the rows of `values` [R, ...] that hold a NaN or an infinity."""
    broken = ~torch.isfinite(values).reshape(len(rows), -1).all(dim=1)
    if broken.any():
        ids = [row.id for row, bad in zip(rows, broken.tolist(), strict=True) if bad]
        raise InternalError(f"{what} is not finite, nothing was saved; rows {_listed(ids)}")


def require_finite_gradient(norm: Tensor, rows: Sequence[TrainingRow], *, network: str) -> None:
    """InternalError naming the mini-batch whose gradient norm is not finite; call before the optimizer
    steps."""
    if not bool(torch.isfinite(norm)):
        ids = [row.id for row in rows]
        raise InternalError(f"the {network}'s gradient is not finite, nothing was saved; rows {_listed(ids)}")


def logprob_difference(
    prox: Tensor, behaviour: Tensor, mask: Tensor, *, rows: Sequence[TrainingRow], version: int
) -> float | None:
    """Mean |learner - sampler| in nats per token over the rows that `version` sampled; None where it
    sampled none."""
    current = torch.tensor([row.policy_version == version for row in rows], device=mask.device)
    if not bool(current.any()):
        return None
    chosen = mask * current[:, None]
    return float(((prox - behaviour).abs() * chosen).sum() / chosen.sum())


def require_agreement(difference: float, *, dtype: torch.dtype, version: int) -> None:
    """InternalError when sampler and learner do not compute the same probabilities."""
    allowed = LOGPROB_TOLERANCE[dtype]
    if not difference <= allowed:
        raise InternalError(
            f"sampler and learner disagree about version {version}: mean |log-probability difference| "
            f"{difference:.3g} nats per token, allowed {allowed:g} for {str(dtype).removeprefix('torch.')}; "
            "nothing was learnt (are both at the same weights, temperature and dtype?)"
        )


def _listed(items: Sequence[str]) -> str:
    more = f" and {len(items) - NAMED_ROWS} more" if len(items) > NAMED_ROWS else ""
    return ", ".join(items[:NAMED_ROWS]) + more
