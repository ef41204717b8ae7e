"""Estimators of KL(pi || ref) from sampled tokens, and the controller of its coefficient."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from mlwright_trainer.learning.losses import LOG_RATIO_BOUND

Estimator = Literal["K1", "K2", "K3"]

CONTROLLER_GAIN = 0.1
CONTROLLER_ERROR_BOUND = 0.2
"""Ziegler et al., arXiv 1909.08593, section 2.2."""


def kl_estimate(logprobs: Tensor, ref_logprobs: Tensor, *, estimator: Estimator) -> Tensor:
    """KL per token, any shape; natural logarithms. With x = log ref - log pi (Schulman's note
    "Approximating KL"):

    K1 = -x: unbiased, noisy, of either sign. K2 = x^2 / 2: biased, positive. K3 = e^x - 1 - x: unbiased,
    positive. As a *value* (in the reward) any will do. As a *loss* what counts is the gradient in
    expectation over samples of pi: K2 gives that of KL(pi || ref), K3 that of KL(ref || pi), K1 gives zero.
    """
    x = ref_logprobs - logprobs
    if estimator == "K1":
        return -x
    if estimator == "K2":
        return 0.5 * x.square()
    x = x.clamp(-LOG_RATIO_BOUND, LOG_RATIO_BOUND)
    return torch.expm1(x) - x


def next_coefficient(coefficient: float, *, measured: float, target: float | None) -> float:
    """The KL coefficient of the next update: at most 2 % up or down, towards `target` (nats per token)."""
    if target is None:
        return coefficient
    error = min(max(measured / target - 1, -CONTROLLER_ERROR_BOUND), CONTROLLER_ERROR_BOUND)
    return coefficient * (1 + CONTROLLER_GAIN * error)
