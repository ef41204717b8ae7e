"""The numbers of TRL's last PPO with methods of its own (0.11.4); run by its environment: `python ... OUT`."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import cases
import torch
import trl.trainer.ppo_config  # noqa: F401  # before ppo_trainer, which needs it loaded
from trl.trainer.ppo_trainer import PPOTrainer

TRAINER = SimpleNamespace(
    config=SimpleNamespace(
        cliprange=cases.CLIP,
        cliprange_value=cases.VALUE_CLIP,
        gamma=cases.GAMMA,
        lam=cases.LAMBDA,
        ratio_threshold=10.0,
        vf_coef=1.0,
        whiten_rewards=False,
    )
)


def losses(x: dict[str, Any]) -> dict[str, Any]:
    """Policy and value loss from one call; token-mean is the only aggregation there."""
    logprobs, values = (x[name].detach().clone().requires_grad_() for name in ("logprobs", "values"))
    policy, value, stats = PPOTrainer.loss(
        TRAINER,
        old_logprobs=x["prox"],
        values=x["old_values"],
        logits=x["logits"],
        vpreds=values,
        logprobs=logprobs,
        mask=x["mask"],
        advantages=x["advantages"],
        returns=x["returns"],
    )
    return {
        "policy/TokenMean": policy.detach(),
        "policy/TokenMean/gradient": torch.autograd.grad(policy, logprobs)[0],
        "value/clipped": value.detach(),
        "value/clipped/gradient": torch.autograd.grad(value, values)[0],
        "entropy": stats["policy/entropy"],
    }


def gae(x: dict[str, Any], name: str) -> dict[str, Any]:
    _, whitened, returns = PPOTrainer.compute_advantages(TRAINER, x["old_values"], x["rewards"], x["mask"])
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
