"""Laws that the learner's numbers obey whatever the batch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from mlwright_api.trainingrun import Scheduler
from mlwright_trainer.learning.advantages import RunningMoments, normalized
from mlwright_trainer.learning.gae import gae, terminal_rewards
from mlwright_trainer.learning.kl import kl_estimate, next_coefficient
from mlwright_trainer.learning.losses import aggregate, policy_loss, token_scale, value_loss
from mlwright_trainer.learning.packing import microbatches, minibatches, seeded
from mlwright_trainer.learning.schedule import learning_rate_factor
from torch import Tensor

pytestmark = pytest.mark.torch
torch_sized = settings(deadline=None, max_examples=60)

lengths = st.lists(st.integers(1, 9), min_size=1, max_size=7)
seeds = st.integers(0, 2**31 - 1)
KINDS = st.sampled_from(["TokenMean", "SequenceMean", "ConstantLength"])


def drawn(seed: int, *shape: int, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def mask_of(rows: list[int]) -> Tensor:
    return (torch.arange(max(rows))[None, :] < torch.tensor(rows)[:, None]).double()


@torch_sized
@given(lengths, seeds, st.sampled_from(["Running", "Batch"]))
def test_weighted_advantages_of_a_batch_sum_to_zero(rows: list[int], seed: int, kind: str) -> None:
    mask, advantages = mask_of(rows), drawn(seed, len(rows), max(rows), scale=3)
    weights = drawn(seed + 1, len(rows)).abs() + 0.01
    groups = [("t", "draft" if i % 2 else "improve") for i in range(len(rows))]
    result = normalized(
        advantages,
        mask,
        weights=weights,
        groups=groups,
        running=RunningMoments(),
        kind="Running" if kind == "Running" else "Batch",
    )
    assert abs(float(result.sum())) < 1e-6 * max(1, float(result.abs().sum()))
    assert not (result * (1 - mask)).any()


@torch_sized
@given(lengths, seeds, st.floats(0.1, 10), st.floats(-5, 5))
def test_normalised_advantages_ignore_scale_and_shift(
    rows: list[int], seed: int, scale: float, shift: float
) -> None:
    mask, advantages = mask_of(rows), drawn(seed, len(rows), max(rows))
    weights = drawn(seed + 1, len(rows)).abs() + 0.01
    assume(float((advantages * mask).std(correction=0)) > 1e-3)

    def result(values: Tensor) -> Tensor:
        groups = [("t", "draft")] * len(rows)
        return RunningMoments().normalize(values, mask, weights=weights, groups=groups)

    torch.testing.assert_close(result(advantages), result(scale * advantages + shift), rtol=1e-4, atol=1e-5)


@torch_sized
@given(lengths, seeds, KINDS)
def test_the_order_of_rows_does_not_matter(rows: list[int], seed: int, kind: str) -> None:
    mask, values = mask_of(rows), drawn(seed, len(rows), max(rows))
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))
    one = aggregate(values, mask, kind=kind, max_tokens=9)  # type: ignore[arg-type]  # sampled from the literals
    other = aggregate(values[order], mask[order], kind=kind, max_tokens=9)  # type: ignore[arg-type]  # as above
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)


@torch_sized
@given(lengths, st.sampled_from(["TokenMean", "SequenceMean"]))
def test_token_shares_add_up_to_one(rows: list[int], kind: str) -> None:
    counts = torch.tensor(rows)
    scale = token_scale(counts, kind=kind, max_tokens=9)  # type: ignore[arg-type]  # sampled from the literals
    assert float((scale * counts).sum()) == pytest.approx(1)


@torch_sized
@given(lengths, seeds, st.floats(0, 1), st.floats(0, 1))
def test_advantages_obey_their_recursion_and_returns_their_definition(
    rows: list[int], seed: int, gamma: float, lam: float
) -> None:
    mask = mask_of(rows)
    rewards, values = drawn(seed, *mask.shape), drawn(seed + 1, *mask.shape)
    advantages, returns = gae(rewards, values, mask, gamma=gamma, lam=lam)
    for i, length in enumerate(rows):
        expected = 0.0
        for t in range(length):
            weight = sum(
                (gamma * lam) ** (k - t)
                * float(rewards[i, k] + (gamma * values[i, k + 1] if k + 1 < length else 0) - values[i, k])
                for k in range(t, length)
            )
            expected = weight
            assert float(advantages[i, t]) == pytest.approx(expected, abs=1e-9)
    torch.testing.assert_close(returns, (advantages + values) * mask)


@torch_sized
@given(lengths, seeds)
def test_without_discount_every_return_is_the_terminal_reward(rows: list[int], seed: int) -> None:
    mask, reward = mask_of(rows), drawn(seed, len(rows))
    _, returns = gae(terminal_rewards(reward, mask), drawn(seed + 1, *mask.shape), mask, gamma=1, lam=1)
    torch.testing.assert_close(returns, reward[:, None] * mask, rtol=0, atol=1e-9)


@torch_sized
@given(seeds, st.floats(0.01, 0.9), st.floats(1.1, 5))
def test_the_clipped_objective_is_a_lower_bound_of_the_plain_one(seed: int, clip: float, cap: float) -> None:
    shape = (4, 6)
    prox, advantages = drawn(seed, *shape), drawn(seed + 1, *shape)
    logprobs, behaviour = prox + drawn(seed + 2, *shape), prox + drawn(seed + 3, *shape)
    terms = policy_loss(
        logprobs=logprobs,
        prox_logprobs=prox,
        behaviour_logprobs=behaviour,
        advantages=advantages,
        clip_low=clip,
        clip_high=clip,
        importance_cap=cap,
    )
    importance = (prox - behaviour).exp().clamp(max=cap)
    plain = -importance * (logprobs - prox).exp() * advantages
    assert bool((terms.losses >= plain - 1e-12).all())
    assert bool((terms.clipped == (terms.losses > plain + 1e-12)).all())


@torch_sized
@given(seeds, st.floats(0.01, 2))
def test_clipping_the_value_loss_never_makes_it_smaller(seed: int, clip: float) -> None:
    values, old, returns = (drawn(seed + i, 3, 5) for i in range(3))
    clipped = value_loss(values, old_values=old, returns=returns, clip_range=clip)
    assert bool((clipped >= value_loss(values, old_values=old, returns=returns)).all())


@torch_sized
@given(seeds)
def test_k2_and_k3_are_never_negative_and_agree_for_small_differences(seed: int) -> None:
    pi = drawn(seed, 20) - 3
    ref = pi + drawn(seed + 1, 20, scale=1e-3)
    k2, k3 = (kl_estimate(pi, ref, estimator=kind) for kind in ("K2", "K3"))  # type: ignore[arg-type]  # literals
    assert bool((k2 >= 0).all())
    assert bool((k3 >= 0).all())
    torch.testing.assert_close(k2, k3, rtol=1e-2, atol=1e-15)


@torch_sized
@given(st.floats(1e-6, 10), st.floats(-10, 1e6), st.floats(1e-6, 10))
def test_the_kl_coefficient_stays_positive_and_moves_the_right_way(
    coefficient: float, measured: float, target: float
) -> None:
    following = next_coefficient(coefficient, measured=measured, target=target)
    assert 0.98 * coefficient * (1 - 1e-12) <= following <= 1.02 * coefficient * (1 + 1e-12)
    assert (following - coefficient) * (measured - target) >= 0


@torch_sized
@given(st.lists(st.integers(1, 50), max_size=30), st.integers(1, 120))
def test_micro_batches_hold_every_row_once_and_fit_the_budget(tokens: list[int], budget: int) -> None:
    groups = microbatches(tokens, budget=budget)
    assert sorted(i for group in groups for i in group) == list(range(len(tokens)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(tokens[i] for i in group) <= budget


@torch_sized
@given(st.integers(0, 60), st.one_of(st.none(), st.integers(1, 70)), seeds)
def test_minibatches_are_an_even_partition(rows: int, size: int | None, seed: int) -> None:
    parts = minibatches(rows, size=size, generator=seeded(seed))
    assert sorted(i for part in parts for i in part) == list(range(rows))
    if rows:
        sizes = [len(part) for part in parts]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= (size or rows)


@torch_sized
@given(
    st.sampled_from(["Constant", "Linear", "Cosine"]),
    st.integers(0, 20),
    st.integers(1, 30),
    st.integers(0, 60),
)
def test_learning_rates_stay_between_zero_and_the_base(
    kind: str, warmup: int, updates: int, update: int
) -> None:
    scheduler = Scheduler.model_validate({"kind": kind, "warmupUpdates": warmup})
    factor = learning_rate_factor(scheduler, update=update, updates=updates)
    assert 0 <= factor <= 1
    assert math.isfinite(factor)
    assert factor > 0 or update >= updates
