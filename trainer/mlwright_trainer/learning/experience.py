"""What an update learns from: a batch as tensors, with everything that is fixed before the first step.

[R, T]: R rows of the batch, T the longest response. Nothing here carries a gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from mlwright_api.trainingrun import TrainingRunSpec
from torch import Tensor

from mlwright_trainer.exchange import Batch, TrainingRow
from mlwright_trainer.learning.advantages import RunningMoments, normalized
from mlwright_trainer.learning.gae import gae, terminal_rewards
from mlwright_trainer.learning.guards import require_finite_rows, require_sound_rows
from mlwright_trainer.learning.kl import kl_estimate
from mlwright_trainer.learning.networks import CausalPolicy, Critic, Reference
from mlwright_trainer.learning.packing import microbatches, pack, padded, row_tokens
from mlwright_trainer.learning.parallel import Workers
from mlwright_trainer.rewards.weighting import DurationWeights, duration_weights


@dataclass(frozen=True)
class Forward:
    """The networks' answers before the update; all [R, T] in float32, `reference` None where no KL is asked
    for."""

    mask: Tensor
    behaviour: Tensor
    prox: Tensor
    values: Tensor
    entropies: Tensor
    reference: Tensor | None


@dataclass(frozen=True)
class Experience:
    """A batch ready to be learnt from; `advantages` are normalised and weighted, `raw_advantages` neither."""

    rows: Sequence[TrainingRow]
    forward: Forward
    weights: Tensor
    duration: DurationWeights
    raw_advantages: Tensor
    advantages: Tensor
    returns: Tensor
    kl: Tensor | None


def experience(
    batch: Batch,
    spec: TrainingRunSpec,
    *,
    policy: CausalPolicy,
    critic: Critic,
    reference: Reference | None,
    running: RunningMoments,
    kl_coefficient: float,
    workers: Workers,
) -> Experience:
    """Everything the epochs need; `running` takes this batch in. InternalError where a row is broken."""
    require_sound_rows(batch.rows)
    seen = forward(batch.rows, spec, policy=policy, critic=critic, reference=reference, workers=workers)
    algorithm = spec.algorithm
    kl = _kl(seen, spec)
    rewards = terminal_rewards(_rewards(batch.rows, seen.mask.device), seen.mask)
    if kl is not None and algorithm.kl.placement == "Reward":
        rewards = rewards - kl_coefficient * kl
    advantages, returns = gae(rewards, seen.values, seen.mask, gamma=algorithm.gamma, lam=algorithm.lambda_)
    duration = duration_weights(batch, algorithm.duration_weighting)
    weights = torch.tensor(duration.values, dtype=torch.float64, device=seen.mask.device)
    scaled = normalized(
        advantages,
        seen.mask,
        weights=weights,
        groups=[(row.task, row.prompt_kind) for row in batch.rows],
        running=running,
        kind=algorithm.advantage_normalization,
    )
    return Experience(batch.rows, seen, weights, duration, advantages, scaled.float(), returns.float(), kl)


@torch.no_grad()
def forward(
    rows: Sequence[TrainingRow],
    spec: TrainingRunSpec,
    *,
    policy: CausalPolicy,
    critic: Critic,
    reference: Reference | None,
    workers: Workers,
) -> Forward:
    """pi_prox, values and reference of every response token, micro-batch by micro-batch."""
    device = workers.device
    behaviour = padded([row.logprobs for row in rows], device=device)
    mask = padded([(1.0,) * len(row.response_tokens) for row in rows], device=device)
    prox, values, entropies, ref = (torch.zeros_like(mask) for _ in range(4))
    for share in workers.shares(microbatches(row_tokens(rows), budget=spec.algorithm.microbatch_tokens)):
        packed = pack(rows, share, device=device)
        out = policy.outputs(packed, hidden=critic.needs_hidden)
        parts = [out.logprobs, critic(packed, out.hidden), out.entropies]
        parts += [reference.logprobs(packed)] if reference is not None else []
        if not share.idle:
            for target, part in zip((prox, values, entropies, ref), parts, strict=False):
                target[packed.rows, : packed.mask.shape[1]] = part
    workers.total(prox, values, entropies, ref)
    for name, tensor in (("log-probability", prox), ("value", values), ("reference", ref)):
        require_finite_rows(tensor, rows, what=f"the {name} of a token")
    return Forward(mask, behaviour, prox, values, entropies, None if reference is None else ref)


def wants_reference(spec: TrainingRunSpec) -> bool:
    """Whether the frozen reference takes part at all."""
    return spec.algorithm.kl.coefficient > 0


def _kl(seen: Forward, spec: TrainingRunSpec) -> Tensor | None:
    """[R, T], 0 where the mask is."""
    if seen.reference is None:
        return None
    return kl_estimate(seen.prox, seen.reference, estimator=spec.algorithm.kl.estimator) * seen.mask


def _rewards(rows: Sequence[TrainingRow], device: torch.device) -> Tensor:
    return torch.tensor([row.reward for row in rows], dtype=torch.float64, device=device)
