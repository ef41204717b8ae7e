"""One PPO update from top to bottom: experience, epochs of mini-batches, steps of micro-batches.

The symbols are those of docs/explanation/ppo.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from mlwright_api.trainingrun import TrainingRunSpec
from torch import Tensor
from torch.optim import AdamW, Optimizer

from mlwright_trainer.exchange import Batch, TrainingRow
from mlwright_trainer.learning.advantages import RunningMoments
from mlwright_trainer.learning.experience import Experience, experience
from mlwright_trainer.learning.guards import require_finite_gradient, require_finite_rows
from mlwright_trainer.learning.kl import kl_estimate, next_coefficient
from mlwright_trainer.learning.losses import PolicyLoss, policy_loss, token_scale, value_loss
from mlwright_trainer.learning.networks import CausalPolicy, Critic, Reference, TokenOutputs
from mlwright_trainer.learning.packing import Packed, microbatches, minibatches, pack, row_tokens, seeded
from mlwright_trainer.learning.parallel import Workers, whole
from mlwright_trainer.learning.schedule import learning_rate_factor


@dataclass
class Learning:
    """Everything that an update changes, and the frozen reference."""

    policy: CausalPolicy
    critic: Critic
    reference: Reference | None
    policy_optimizer: Optimizer
    critic_optimizer: Optimizer
    kl_coefficient: float
    workers: Workers
    running: RunningMoments = field(default_factory=RunningMoments)


@dataclass
class Trace:
    """What the epochs did, summed: per row [R] how many token visits were clipped, truncated, made."""

    clipped: Tensor
    truncated: Tensor
    visits: Tensor
    policy_losses: list[float] = field(default_factory=list)
    value_losses: list[float] = field(default_factory=list)
    gradient_norms: list[float] = field(default_factory=list)
    critic_gradient_norms: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Part:
    """A micro-batch of this process: `scale` [R] is what each row's token losses are multiplied by."""

    packed: Packed
    scale: Tensor
    idle: bool


def start(
    spec: TrainingRunSpec,
    *,
    policy: CausalPolicy,
    critic: Critic,
    reference: Reference | None,
    workers: Workers,
) -> Learning:
    """Fresh optimizers and statistics around the networks."""
    algorithm = spec.algorithm
    return Learning(
        policy,
        critic,
        reference,
        AdamW(policy.parameters(), lr=algorithm.learning_rate, weight_decay=algorithm.weight_decay),
        AdamW(_learning(critic), lr=algorithm.critic_learning_rate, weight_decay=algorithm.weight_decay),
        kl_coefficient=algorithm.kl.coefficient,
        workers=workers,
    )


def update(state: Learning, batch: Batch, spec: TrainingRunSpec) -> tuple[Experience, Trace]:
    """Learn from one batch: `state` moves from version n to n+1.

    Raises InternalError, with nothing saved, where a number is not finite. The caller looks at the experience
    *before* learning through `prepare` and `learn` where it has to.
    """
    data = prepare(state, batch, spec)
    return data, learn(state, data, spec, number=batch.number)


def prepare(state: Learning, batch: Batch, spec: TrainingRunSpec) -> Experience:
    """Everything that is fixed before the first step; changes only the running moments."""
    return experience(
        batch,
        spec,
        policy=state.policy,
        critic=state.critic,
        reference=state.reference,
        running=state.running,
        kl_coefficient=state.kl_coefficient,
        workers=state.workers,
    )


def learn(state: Learning, data: Experience, spec: TrainingRunSpec, *, number: int) -> Trace:
    """All epochs over the experience of batch `number`, then the KL controller."""
    algorithm, rows = spec.algorithm, len(data.rows)
    set_learning_rates(state, spec, number=number)
    zeros = torch.zeros(rows, device=data.weights.device)
    trace = Trace(clipped=zeros.clone(), truncated=zeros.clone(), visits=zeros)
    for epoch in range(algorithm.epochs):
        generator = seeded(spec.seed, "minibatches", number, epoch)
        for indices in minibatches(rows, size=algorithm.minibatch_size, generator=generator):
            _step(state, data, spec, indices=indices, trace=trace, number=number)
    state.workers.total(trace.clipped, trace.truncated, trace.visits)
    if data.kl is not None:
        measured = float(data.kl.sum() / data.forward.mask.sum())
        state.kl_coefficient = next_coefficient(
            state.kl_coefficient, measured=measured, target=algorithm.kl.target
        )
    return trace


def set_learning_rates(state: Learning, spec: TrainingRunSpec, *, number: int) -> None:
    """The schedule of update `number`, for both networks."""
    algorithm = spec.algorithm
    factor = learning_rate_factor(algorithm.scheduler, update=number, updates=algorithm.updates)
    for optimizer, rate in (
        (state.policy_optimizer, algorithm.learning_rate),
        (state.critic_optimizer, algorithm.critic_learning_rate),
    ):
        for group in optimizer.param_groups:
            group["lr"] = rate * factor


def _step(
    state: Learning,
    data: Experience,
    spec: TrainingRunSpec,
    *,
    indices: Sequence[int],
    trace: Trace,
    number: int,
) -> None:
    """One optimizer step of each network on the rows at `indices`."""
    policy_learns = number >= spec.algorithm.critic_warmup_updates
    sums = accumulate(state, data, spec, indices=indices, trace=trace, policy_learns=policy_learns)
    rows = [data.rows[i] for i in indices]
    if policy_learns:
        norm = _advance(state.policy_optimizer, state.policy.parameters(), spec, rows, "policy")
        trace.gradient_norms.append(norm)
        trace.policy_losses.append(sums[0])
    critic_norm = _advance(state.critic_optimizer, _learning(state.critic), spec, rows, "critic")
    trace.critic_gradient_norms.append(critic_norm)
    trace.value_losses.append(sums[1])


def accumulate(
    state: Learning,
    data: Experience,
    spec: TrainingRunSpec,
    *,
    indices: Sequence[int],
    trace: Trace,
    policy_learns: bool = True,
) -> tuple[float, float]:
    """Gradients of the mini-batch at `indices`, summed over its micro-batches; its policy and value loss.

    Every token's share of the loss is fixed for the whole mini-batch first, so the sum does not depend on
    how the rows are grouped.
    """
    rows = [data.rows[i] for i in indices]
    chosen = torch.tensor(indices, device=data.weights.device)
    scale = torch.zeros(len(data.rows), device=data.weights.device)
    scale[chosen] = token_scale(
        data.forward.mask[chosen].sum(dim=1),
        kind=spec.algorithm.loss_aggregation,
        max_tokens=spec.sampling.max_tokens,
    ).float()
    workers, sums = state.workers, torch.zeros(2, device=data.weights.device)
    for share in workers.shares(microbatches(row_tokens(rows), budget=spec.algorithm.microbatch_tokens)):
        packed = pack(data.rows, [indices[i] for i in share], device=data.weights.device)
        # FSDP averages gradients over the processes; scaled up by their number the average is the sum.
        part = Part(packed, scale * (0 if share.idle else workers.size), share.idle)
        sums += _gradients(state, data, spec, part=part, trace=trace, policy_learns=policy_learns)
    workers.total(sums)
    policy_sum, value_sum = (sums / workers.size).tolist()
    return policy_sum, value_sum


def _gradients(
    state: Learning,
    data: Experience,
    spec: TrainingRunSpec,
    *,
    part: Part,
    trace: Trace,
    policy_learns: bool,
) -> Tensor:
    """Add one micro-batch's gradients; its share of the policy and value loss, [2]."""
    policy = torch.zeros((), device=part.scale.device)
    with torch.set_grad_enabled(policy_learns):
        out = _policy_outputs(state, part.packed, spec, needed=policy_learns)
    if policy_learns and out is not None:
        terms = _surrogate(out, data, part.packed, spec)
        if not part.idle:
            _record(trace, terms, part.packed)
        losses = _with_penalties(terms.losses, out, data, part.packed, spec, coefficient=state.kl_coefficient)
        policy = _backward(losses, part, data)
    values = state.critic(part.packed, out.hidden if out is not None else None)
    return torch.stack([policy, _backward(_value_losses(values, data, part.packed, spec), part, data)])


def _policy_outputs(
    state: Learning, packed: Packed, spec: TrainingRunSpec, *, needed: bool
) -> TokenOutputs | None:
    """The policy's pass; None where neither the policy nor the critic has a use for it."""
    if not needed and not state.critic.needs_hidden:
        return None
    return state.policy.outputs(
        packed,
        hidden=state.critic.needs_hidden,
        entropy_gradient=needed and spec.algorithm.entropy_coefficient > 0,
    )


def _surrogate(out: TokenOutputs, data: Experience, packed: Packed, spec: TrainingRunSpec) -> PolicyLoss:
    """[B, T]: the clipped objective; duration weights are in the advantages."""
    algorithm = spec.algorithm
    return policy_loss(
        logprobs=out.logprobs,
        prox_logprobs=_cells(data.forward.prox, packed),
        behaviour_logprobs=_cells(data.forward.behaviour, packed),
        advantages=_cells(data.advantages, packed),
        clip_low=algorithm.clip_range,
        clip_high=algorithm.clip_range if algorithm.clip_range_high is None else algorithm.clip_range_high,
        dual_clip=algorithm.dual_clip,
        importance_cap=algorithm.importance_cap,
    )


def _with_penalties(
    losses: Tensor,
    out: TokenOutputs,
    data: Experience,
    packed: Packed,
    spec: TrainingRunSpec,
    *,
    coefficient: float,
) -> Tensor:
    """[B, T]: plus KL to the reference, minus entropy, neither of them weighted by duration."""
    algorithm = spec.algorithm
    if data.forward.reference is not None and algorithm.kl.placement == "Loss":
        ref = _cells(data.forward.reference, packed)
        losses = losses + coefficient * kl_estimate(out.logprobs, ref, estimator=algorithm.kl.estimator)
    if algorithm.entropy_coefficient > 0:
        losses = losses - algorithm.entropy_coefficient * out.entropies
    return losses


def _value_losses(values: Tensor, data: Experience, packed: Packed, spec: TrainingRunSpec) -> Tensor:
    """[B, T]: the critic's loss, weighted like the policy's."""
    losses = value_loss(
        values,
        old_values=_cells(data.forward.values, packed),
        returns=_cells(data.returns, packed),
        clip_range=spec.algorithm.value_clip_range,
    )
    return losses * data.weights[packed.rows, None].float()


def _backward(losses: Tensor, part: Part, data: Experience) -> Tensor:
    """Add the gradient of the scaled sum; InternalError naming the rows whose loss is not finite."""
    packed = part.packed
    shares = losses * packed.mask * part.scale[packed.rows, None]
    require_finite_rows(shares.detach(), [data.rows[i] for i in packed.rows.tolist()], what="the loss")
    total = shares.sum()
    total.backward()  # type: ignore[no-untyped-call]  # torch does not annotate it
    return total.detach()


def _advance(
    optimizer: Optimizer,
    parameters: list[torch.nn.Parameter],
    spec: TrainingRunSpec,
    rows: Sequence[TrainingRow],
    network: str,
) -> float:
    """Clip, check, step, clear; the norm before clipping."""
    norm = whole(torch.nn.utils.clip_grad_norm_(parameters, spec.algorithm.max_gradient_norm))
    require_finite_gradient(norm, rows, network=network)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return float(norm)


def _record(trace: Trace, terms: PolicyLoss, packed: Packed) -> None:
    trace.clipped.index_add_(0, packed.rows, (terms.clipped * packed.mask).sum(dim=1))
    trace.truncated.index_add_(0, packed.rows, (terms.truncated * packed.mask).sum(dim=1))
    trace.visits.index_add_(0, packed.rows, packed.mask.sum(dim=1))


def _cells(values: Tensor, packed: Packed) -> Tensor:
    """The micro-batch's part of [R, T]."""
    return values[packed.rows, : packed.mask.shape[1]]


def _learning(critic: Critic) -> list[torch.nn.Parameter]:
    return [p for p in critic.parameters() if p.requires_grad]
