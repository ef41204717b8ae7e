"""The losses of PPO, token by token, and the ways to average them; free functions over tensors.

Shapes: B rows, T response tokens (padded on the right). `mask` is 1 where a token is trained, 0 elsewhere
(padding, observations); masked entries of a loss are to be thrown away by `aggregate`.
Symbols and sources: docs/explanation/ppo.md.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
from torch import Tensor

Aggregation = Literal["TokenMean", "SequenceMean", "ConstantLength"]

LOG_RATIO_BOUND = 20.0
"""Log-ratios are clamped to this before `exp`: a ratio of 5e8 is clipped anyway, an infinite one is NaN."""


class PolicyLoss(NamedTuple):
    """Token losses [B, T], and where clipping or truncation took effect [B, T] (bool)."""

    losses: Tensor
    clipped: Tensor
    truncated: Tensor


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean of the entries where `mask` is 1; any shape, both the same; 0 where there are none."""
    return (values * mask).sum() / mask.sum().clamp(min=1)


def token_scale(lengths: Tensor, *, kind: Aggregation, max_tokens: int) -> Tensor:
    """What each row's token losses are multiplied by before they are summed.

    `lengths` [B] (trained tokens of each row) -> [B] in float64. TokenMean: every token counts the same
    (long rows weigh more); SequenceMean: every row counts the same (tokens of long rows weigh less);
    ConstantLength: sums over `max_tokens`, neither depends on the other rows' lengths (Dr. GRPO, 2503.20783).
    """
    lengths = lengths.to(torch.float64)
    if kind == "TokenMean":
        return torch.ones_like(lengths) / lengths.sum().clamp(min=1)
    if kind == "SequenceMean":
        return 1 / (lengths.clamp(min=1) * len(lengths))
    return torch.full_like(lengths, 1 / (max_tokens * len(lengths)))


def aggregate(values: Tensor, mask: Tensor, *, kind: Aggregation, max_tokens: int) -> Tensor:
    """One number from token losses [B, T]."""
    scale = token_scale(mask.sum(dim=1), kind=kind, max_tokens=max_tokens).to(values.dtype)
    return (values * mask * scale[:, None]).sum()


def ratio(logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    """pi / pi_old of each token, [B, T]."""
    return torch.exp((logprobs - old_logprobs).clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND))


def policy_loss(
    *,
    logprobs: Tensor,
    prox_logprobs: Tensor,
    behaviour_logprobs: Tensor,
    advantages: Tensor,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
    importance_cap: float,
) -> PolicyLoss:
    """The decoupled clipped objective, negated (PPO 1707.06347 eq. 7; decoupled 2110.00641; dual 1912.09729).

    -min(cap, pi_prox / pi_behaviour) min(r A, clip(r, 1 - low, 1 + high) A), with r = pi / pi_prox; for A < 0
    `dual_clip` bounds the inner term from below by dual_clip A. All inputs [B, T]; only `logprobs` may
    carry a gradient. With pi_prox = pi_behaviour this is PPO.
    """
    r = ratio(logprobs, prox_logprobs)
    plain, clipped = r * advantages, r.clamp(1 - clip_low, 1 + clip_high) * advantages
    surrogate, took_effect = torch.minimum(plain, clipped), clipped < plain
    if dual_clip is not None:
        bound = dual_clip * advantages
        too_low = (advantages < 0) & (surrogate < bound)
        surrogate, took_effect = torch.where(too_low, bound, surrogate), took_effect | too_low
    importance = ratio(prox_logprobs, behaviour_logprobs)
    return PolicyLoss(
        -importance.clamp(max=importance_cap) * surrogate, took_effect, importance > importance_cap
    )


def value_loss(
    values: Tensor, *, old_values: Tensor, returns: Tensor, clip_range: float | None = None
) -> Tensor:
    """Half the squared error of the critic, token by token; all [B, T].

    With `clip_range` the larger of the errors of V and of V kept within clip_range of the old value, as in
    OpenAI's baselines: it never rewards moving far in one update.
    """
    error = (values - returns).square()
    if clip_range is not None:
        kept = old_values + (values - old_values).clamp(-clip_range, clip_range)
        error = torch.maximum(error, (kept - returns).square())
    return 0.5 * error


def entropy(logits: Tensor) -> Tensor:
    """Entropy in nats of the distribution behind `logits` [..., V] -> [...]."""
    return entropy_of(torch.log_softmax(logits, dim=-1))


def entropy_of(log_p: Tensor) -> Tensor:
    """The same from log-probabilities [..., V]."""
    return -(log_p.exp() * log_p).sum(dim=-1)
