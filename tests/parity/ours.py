"""Our numbers for the cases, under the names that the anchors use for theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cases
import torch
from mlwright_trainer.learning.advantages import whiten
from mlwright_trainer.learning.gae import gae
from mlwright_trainer.learning.kl import kl_estimate
from mlwright_trainer.learning.losses import (
    Aggregation,
    aggregate,
    entropy,
    masked_mean,
    policy_loss,
    value_loss,
)
from torch import Tensor

Numbers = dict[str, Tensor]


def with_gradient(name: str, loss: Callable[[Tensor], Tensor], at: Tensor) -> Numbers:
    """A scalar loss and its gradient with respect to `at`."""
    variable = at.detach().clone().requires_grad_()
    value = loss(variable)
    (gradient,) = torch.autograd.grad(value, variable)
    return {name: value.detach(), f"{name}/gradient": gradient}


def policy(x: dict[str, Tensor], kind: Aggregation, *, importance: bool = False, **change: Any) -> Any:
    """The policy loss as a function of log-probabilities; with pi_prox = pi_behaviour unless `importance`."""
    settings = {"clip_low": cases.CLIP, "clip_high": cases.CLIP, "dual_clip": None, **change}
    behaviour = x["behaviour"] if importance else x["prox"]

    def loss(logprobs: Tensor) -> Tensor:
        terms = policy_loss(
            logprobs=logprobs,
            prox_logprobs=x["prox"],
            behaviour_logprobs=behaviour,
            advantages=x["advantages"],
            importance_cap=cases.CAP,
            **settings,
        )
        return aggregate(terms.losses, x["mask"], kind=kind, max_tokens=cases.MAX_TOKENS)

    return loss


def policy_numbers(x: dict[str, Tensor]) -> Numbers:
    """Every variant of the policy loss, with gradients."""
    variants: dict[str, Callable[[Tensor], Tensor]] = {
        "policy/TokenMean": policy(x, "TokenMean"),
        "policy/SequenceMean": policy(x, "SequenceMean"),
        "policy/ConstantLength": policy(x, "ConstantLength"),
        "policy/clipHigh": policy(x, "TokenMean", clip_high=cases.CLIP_HIGH),
        "policy/dualClip": policy(x, "TokenMean", dual_clip=cases.DUAL),
        "policy/decoupled": policy(x, "TokenMean", importance=True),
    }
    numbers: Numbers = {}
    for name, loss in variants.items():
        numbers |= with_gradient(name, loss, x["logprobs"])
    return numbers


def kl_numbers(x: dict[str, Tensor]) -> Numbers:
    """The estimators, summed over trained tokens, with gradients."""
    numbers: Numbers = {}
    for kind in ("K1", "K2", "K3"):

        def loss(logprobs: Tensor, kind: Any = kind) -> Tensor:
            return masked_mean(kl_estimate(logprobs, x["reference"], estimator=kind), x["mask"])

        numbers |= with_gradient(f"kl/{kind}", loss, x["logprobs"])
    return numbers


def value_numbers(x: dict[str, Tensor]) -> Numbers:
    """The clipped value loss, with its gradient."""

    def loss(values: Tensor) -> Tensor:
        losses = value_loss(
            values, old_values=x["old_values"], returns=x["returns"], clip_range=cases.VALUE_CLIP
        )
        return aggregate(losses, x["mask"], kind="TokenMean", max_tokens=cases.MAX_TOKENS)

    return with_gradient("value/clipped", loss, x["values"])


def entropy_numbers(x: dict[str, Tensor]) -> Numbers:
    """Mean entropy of trained tokens, with its gradient in the logits."""
    return with_gradient("entropy", lambda z: masked_mean(entropy(z), x["mask"]), x["logits"])


def gae_numbers(x: dict[str, Tensor], name: str) -> Numbers:
    """Advantages and returns of trained tokens, and the whitened advantages."""
    advantages, returns = gae(x["rewards"], x["old_values"], x["mask"], gamma=cases.GAMMA, lam=cases.LAMBDA)
    weights = torch.ones(len(advantages), dtype=torch.float64)
    return {
        f"{name}/advantages": advantages,
        f"{name}/returns": returns,
        f"{name}/whitened": whiten(advantages, x["mask"].double(), weights=weights),
    }


def numbers(x: dict[str, Tensor]) -> Numbers:
    """Everything that can be compared in one precision; GAE is float64 only."""
    result = policy_numbers(x) | kl_numbers(x) | value_numbers(x) | entropy_numbers(x)
    if x["mask"].dtype == torch.float64:
        result |= gae_numbers(x, "gae") | gae_numbers(
            cases.inputs(torch.float64, tokens=cases.LONG), "gae2048"
        )
    return result
