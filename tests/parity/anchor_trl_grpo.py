"""The numbers of today's TRL (1.16.0), whose clipped loss lives in GRPO; run by its environment: `python ... OUT`.

Its PPO trainer is gone. The loss takes token advantages, so PPO's surrogate, KL in the loss, dual clip (`delta`),
the capped importance weight of stale samples and the three aggregations can all be asked for.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import cases
import torch
from trl.trainer.grpo_trainer import GRPOTrainer

LOSS_TYPES = {"TokenMean": "bnpo", "SequenceMean": "grpo", "ConstantLength": "dr_grpo"}


def trainer(x: dict[str, Any], logprobs: Any, **change: Any) -> Any:
    """What `_compute_loss` reads of a trainer; evaluation mode, so nothing is divided by accumulation steps."""
    settings = {
        "loss_type": "bnpo",
        "epsilon_low": cases.CLIP,
        "epsilon_high": cases.CLIP,
        "beta": 0.0,
        "use_vllm": False,
        "delta": None,
        **change,
    }
    delta = settings.pop("delta")
    return SimpleNamespace(
        **settings,
        args=SimpleNamespace(delta=delta, use_bias_correction_kl=False),
        model=SimpleNamespace(training=False),
        accelerator=SimpleNamespace(gather=lambda t: t, reduce=lambda t, reduction: t),
        _get_per_token_logps_and_entropies=lambda *a, **k: (logprobs, torch.zeros_like(logprobs), None),
        _entropy_bonus_enabled=False,
        _metrics={"eval": defaultdict(list)},
        aux_loss_enabled=False,
        importance_sampling_level="token",
        max_completion_length=cases.MAX_TOKENS,
        off_policy_mask_threshold=None,
        top_entropy_quantile=1.0,
        vllm_importance_sampling_correction=True,
    )


def loss(x: dict[str, Any], logprobs: Any, **change: Any) -> Any:
    tokens = torch.zeros_like(x["mask"], dtype=torch.long)
    batch = {
        "prompt_ids": tokens[:, :1],
        "prompt_mask": tokens[:, :1] + 1,
        "completion_ids": tokens,
        "completion_mask": x["mask"],
        "advantages": x["advantages"],
        "old_per_token_logps": x["prox"],
        "ref_per_token_logps": x["reference"],
        "importance_sampling_ratio": torch.exp(x["prox"] - x["behaviour"]).clamp(max=cases.CAP),
    }
    me = trainer(x, logprobs, **change)
    return GRPOTrainer._compute_loss(me, me.model, batch)


def losses(x: dict[str, Any]) -> dict[str, Any]:
    variants = {f"policy/{ours}": {"loss_type": theirs} for ours, theirs in LOSS_TYPES.items()}
    variants["policy/clipHigh"] = {"epsilon_high": cases.CLIP_HIGH}
    variants["policy/dualClip"] = {"delta": cases.DUAL}
    variants["policy/decoupled"] = {"use_vllm": True}
    result = {}
    for name, change in variants.items():
        logprobs = x["logprobs"].detach().clone().requires_grad_()
        value = loss(x, logprobs, **change)
        result[name] = value.detach()
        result[f"{name}/gradient"] = torch.autograd.grad(value, logprobs)[0]
    logprobs = x["logprobs"].detach().clone().requires_grad_()
    kl = loss(x, logprobs, beta=1.0) - loss(x, logprobs)
    result["kl/K3"] = kl.detach()
    result["kl/K3/gradient"] = torch.autograd.grad(kl, logprobs)[0]
    return result


if __name__ == "__main__":
    torch.save(
        {
            "float64": losses(cases.inputs(torch.float64)),
            "float32": losses(cases.inputs(torch.float32)),
        },
        sys.argv[1],
    )
