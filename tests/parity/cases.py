"""The inputs that ours and the anchors both get: seeded, of every length, clipped and truncated in places."""

from __future__ import annotations

import torch
from torch import Tensor

ROWS, TOKENS, VOCABULARY, MAX_TOKENS = 6, 40, 11, 64
CLIP, CLIP_HIGH, DUAL, CAP, VALUE_CLIP = 0.2, 0.28, 1.5, 2.0, 0.5
GAMMA, LAMBDA = 0.99, 0.95
LONG = 2048


def inputs(dtype: torch.dtype, *, tokens: int = TOKENS, rows: int = ROWS) -> dict[str, Tensor]:
    """All [B, T] but `logits` [B, T, V]; drawn in float64 and then rounded, so that both precisions see the same."""
    generator = torch.Generator().manual_seed(20260101 + tokens)

    def draw(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

    shape = (rows, tokens)
    lengths = torch.randint(1, tokens + 1, (rows,), generator=generator)
    lengths[0] = tokens
    mask = (torch.arange(tokens)[None, :] < lengths[:, None]).double()
    prox = -draw(*shape).abs() - 0.1
    drawn = {
        "mask": mask,
        "prox": prox,
        "logprobs": prox + draw(*shape, scale=0.4),
        "behaviour": prox + draw(*shape, scale=0.5),
        "reference": prox + draw(*shape, scale=0.3),
        "advantages": draw(*shape),
        "old_values": draw(*shape),
        "values": draw(*shape),
        "returns": draw(*shape, scale=2),
        "rewards": draw(*shape, scale=0.1),
        "logits": draw(*shape, VOCABULARY, scale=2),
    }
    drawn["values"] = drawn["old_values"] + 0.6 * drawn["values"]
    return {name: tensor.to(dtype) for name, tensor in drawn.items()}
