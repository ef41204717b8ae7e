"""Drawing tokens: one noise sequence a request, so that a batch's company changes nothing."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def request_noise(seed: int, length: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """`length` uniform numbers in [0, 1) of the request's own counter-based generator; number t is for token t."""
    return np.random.Generator(np.random.Philox(key=seed % 2**128)).random(length)


def draw(logits: Tensor, temperature: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens by inverse CDF, and their log-probabilities after temperature.

    logits: (rows, vocabulary); temperature, uniform: (rows,) float64. Returns (rows,) int64 and (rows,) float64.
    A token of probability zero is never drawn.
    """
    logprobs = torch.log_softmax(logits.double() / temperature.unsqueeze(1), dim=-1)
    cumulative = logprobs.exp().cumsum(dim=-1)
    total = cumulative[:, -1]
    target = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(cumulative, target.unsqueeze(1), right=True)
    return tokens.squeeze(1), logprobs.gather(1, tokens).squeeze(1)
