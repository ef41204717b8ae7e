"""verl's numbers for the cases; run by verl's own environment: `python anchor_verl.py OUT`."""

from __future__ import annotations

import sys
from typing import Any

import cases
import torch
from omegaconf import OmegaConf
from verl.trainer.ppo import core_algos
from verl.trainer.ppo.rollout_corr_helper import compute_rollout_correction_weights

NO_DUAL_CLIP = 1e30
MODES = {
    "TokenMean": "token-mean",
    "SequenceMean": "seq-mean-token-mean",
    "ConstantLength": "seq-mean-token-sum-norm",
}


def with_gradient(name: str, loss: Any, at: Any) -> dict[str, Any]:
    variable = at.detach().clone().requires_grad_()
    value = loss(variable)
    return {name: value.detach(), f"{name}/gradient": torch.autograd.grad(value, variable)[0]}


def policy(
    x: dict[str, Any], mode: str, *, high: float = cases.CLIP, dual: float = NO_DUAL_CLIP, weights: Any = None
):
    """`clip_ratio_low` and `_high` default to 0.2 there whatever `clip_ratio` says, and dual clip is on: set all."""
    config = OmegaConf.create(
        {
            "clip_ratio": cases.CLIP,
            "clip_ratio_low": cases.CLIP,
            "clip_ratio_high": high,
            "clip_ratio_c": dual,
            "global_batch_info": {"loss_scale_factor": cases.MAX_TOKENS},
        }
    )

    def loss(logprobs: Any) -> Any:
        return core_algos.compute_policy_loss_vanilla(
            old_log_prob=x["prox"],
            log_prob=logprobs,
            advantages=x["advantages"],
            response_mask=x["mask"],
            loss_agg_mode=mode,
            config=config,
            rollout_is_weights=weights,
        )[0]

    return loss


def losses(x: dict[str, Any]) -> dict[str, Any]:
    weights, _ = compute_rollout_correction_weights(
        x["prox"] - x["behaviour"], x["mask"], rollout_is="token", rollout_is_threshold=cases.CAP
    )
    variants = {f"policy/{ours}": policy(x, theirs) for ours, theirs in MODES.items()}
    variants["policy/clipHigh"] = policy(x, "token-mean", high=cases.CLIP_HIGH)
    variants["policy/dualClip"] = policy(x, "token-mean", dual=cases.DUAL)
    variants["policy/decoupled"] = policy(x, "token-mean", weights=weights)
    result = {}
    for name, loss in variants.items():
        result |= with_gradient(name, loss, x["logprobs"])
    for kind in ("k1", "k2", "k3"):

        def kl(logprobs: Any, kind: str = kind) -> Any:
            estimate = core_algos.kl_penalty(logprobs, x["reference"], kind)
            return core_algos.agg_loss(estimate, x["mask"], "token-mean")

        result |= with_gradient(f"kl/{kind.upper()}", kl, x["logprobs"])

    def value(values: Any) -> Any:
        return core_algos.compute_value_loss(
            vpreds=values,
            returns=x["returns"],
            values=x["old_values"],
            response_mask=x["mask"],
            cliprange_value=cases.VALUE_CLIP,
        )[0]

    result |= with_gradient("value/clipped", value, x["values"])
    return result | with_gradient(
        "entropy", lambda z: core_algos.compute_entropy_loss(z, x["mask"]), x["logits"]
    )


def gae(x: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns minus values are the advantages before whitening."""
    whitened, returns = core_algos.compute_gae_advantage_return(
        x["rewards"], x["old_values"], x["mask"], cases.GAMMA, cases.LAMBDA
    )
    mask = x["mask"]
    return {
        f"{name}/advantages": (returns - x["old_values"]) * mask,
        f"{name}/returns": returns * mask,
        f"{name}/whitened": whitened * mask,
    }


if __name__ == "__main__":
    double, single = cases.inputs(torch.float64), cases.inputs(torch.float32)
    long = cases.inputs(torch.float64, tokens=cases.LONG)
    torch.save(
        {"float64": losses(double) | gae(double, "gae") | gae(long, "gae2048"), "float32": losses(single)},
        sys.argv[1],
    )
