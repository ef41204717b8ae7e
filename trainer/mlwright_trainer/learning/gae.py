"""Generalised advantage estimation (arXiv 1506.02438), in float64 whatever comes in."""

from __future__ import annotations

import torch
from torch import Tensor


def gae(rewards: Tensor, values: Tensor, mask: Tensor, *, gamma: float, lam: float) -> tuple[Tensor, Tensor]:
    """Advantages and returns of response tokens; all [B, T], results in float64, 0 where `mask` is 0.

    delta_t = r_t + gamma V_{t+1} - V_t and A_t = delta_t + gamma lambda A_{t+1} over the trained tokens
    alone: a masked token (an observation inside a response, padding) is stepped over as if it were not
    there. V after the last token is 0. Returns are A + V. In float32 two right implementations differ by
    1e-5 at 2,048 tokens, hence float64.
    """
    rewards, values, mask = (tensor.to(torch.float64) for tensor in (rewards, values, mask))
    advantage = next_value = torch.zeros_like(values[:, 0])
    advantages = torch.zeros_like(values)
    for t in reversed(range(values.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        inside = mask[:, t] > 0
        advantage = torch.where(inside, delta + gamma * lam * advantage, advantage)
        next_value = torch.where(inside, values[:, t], next_value)
        advantages[:, t] = torch.where(inside, advantage, 0)
    return advantages, (advantages + values) * mask


def terminal_rewards(rewards: Tensor, mask: Tensor) -> Tensor:
    """Each row's reward [B] on its last trained token -> [B, T], float64, 0 elsewhere."""
    positions = torch.arange(mask.shape[1], device=mask.device)
    last = torch.where(mask > 0, positions, -1).max(dim=1).values
    return torch.where(positions[None, :] == last[:, None], rewards.to(torch.float64)[:, None], 0)
