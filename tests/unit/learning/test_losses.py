"""The losses against numbers worked out by hand, and their gradients against finite differences."""

from __future__ import annotations

import math

import pytest
import torch
from mlwright_trainer.learning.losses import (
    aggregate,
    entropy,
    masked_mean,
    policy_loss,
    token_scale,
    value_loss,
)
from torch import Tensor

pytestmark = pytest.mark.torch
LOG = math.log


def row(*values: float) -> Tensor:
    return torch.tensor([values], dtype=torch.float64)


def loss(
    ratio: float,
    advantage: float,
    *,
    importance: float = 1,
    dual: float | None = None,
    high: float = 0.2,
    cap: float = 2,
) -> float:
    """The loss of one token at this ratio to pi_prox, with pi_prox / pi_behaviour = importance."""
    terms = policy_loss(
        logprobs=row(LOG(ratio)),
        prox_logprobs=row(0.0),
        behaviour_logprobs=row(-LOG(importance)),
        advantages=row(advantage),
        clip_low=0.2,
        clip_high=high,
        dual_clip=dual,
        importance_cap=cap,
    )
    return float(terms.losses)


def test_two_tokens_by_hand():
    """Token 1: r = .5/.4 = 1.25, A = 2: min(2.5, 1.2 x 2) = 2.4. Token 2: r = .3/.5 = .6, A = -1:
    min(-.6, -.8) = -.8. Importance .4/.2 = 2 (at the cap) and .5/.5 = 1. Losses -4.8 and .8; mean -2."""
    terms = policy_loss(
        logprobs=row(LOG(0.5), LOG(0.3)),
        prox_logprobs=row(LOG(0.4), LOG(0.5)),
        behaviour_logprobs=row(LOG(0.2), LOG(0.5)),
        advantages=row(2, -1),
        clip_low=0.2,
        clip_high=0.2,
        importance_cap=2,
    )
    assert terms.losses[0].tolist() == pytest.approx([-4.8, 0.8], abs=1e-14)
    assert terms.clipped[0].tolist() == [True, True]
    mean = aggregate(terms.losses, torch.ones(1, 2), kind="TokenMean", max_tokens=2)
    assert float(mean) == pytest.approx(-2.0, abs=1e-14)


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.0, 3.0, -3.0),
        (1.1, 3.0, -3.3),
        (1.5, 3.0, -3.6),
        (0.5, 3.0, -1.5),
        (0.5, -3.0, 2.4),
        (1.5, -3.0, 4.5),
        (0.9, -3.0, 2.7),
    ],
)
def test_clipping_only_ever_makes_the_objective_smaller(ratio, advantage, expected):
    assert loss(ratio, advantage) == pytest.approx(expected, abs=1e-13)


def test_a_higher_upper_clip_lets_good_tokens_rise_further_and_leaves_the_rest():
    assert loss(1.5, 1.0, high=0.28) == pytest.approx(-1.28)
    assert loss(0.5, -1.0, high=0.28) == pytest.approx(0.8)


def test_dual_clip_bounds_the_loss_of_a_bad_token_that_became_likely():
    assert loss(10.0, -1.0) == pytest.approx(10.0)
    assert loss(10.0, -1.0, dual=3.0) == pytest.approx(3.0)
    assert loss(10.0, 1.0, dual=3.0) == pytest.approx(loss(10.0, 1.0))
    assert loss(2.0, -1.0, dual=3.0) == pytest.approx(2.0)


def test_the_importance_weight_is_capped_from_above_only():
    assert loss(1.0, 1.0, importance=1.5) == pytest.approx(-1.5)
    assert loss(1.0, 1.0, importance=50.0) == pytest.approx(-2.0)
    assert loss(1.0, 1.0, importance=0.01) == pytest.approx(-0.01)


def test_truncation_is_reported_where_the_cap_took_effect():
    terms = policy_loss(
        logprobs=row(0, 0, 0),
        prox_logprobs=row(0, 0, 0),
        behaviour_logprobs=row(-3, 3, 0),
        advantages=row(1, 1, 1),
        clip_low=0.2,
        clip_high=0.2,
        importance_cap=2,
    )
    assert terms.truncated[0].tolist() == [True, False, False]
    assert not terms.clipped.any()


def test_a_stale_row_is_not_clipped_for_being_stale():
    """The decoupled objective: pi is still pi_prox, however far pi_behaviour is."""
    parameter = row(0.0).requires_grad_()
    terms = policy_loss(
        logprobs=parameter,
        prox_logprobs=row(0.0),
        behaviour_logprobs=row(-0.5),
        advantages=row(1.0),
        clip_low=0.2,
        clip_high=0.2,
        importance_cap=2,
    )
    terms.losses.sum().backward()
    assert parameter.grad is not None
    assert float(parameter.grad) == pytest.approx(-math.exp(0.5))


def test_absurd_log_ratios_stay_finite():
    assert math.isfinite(loss(1e300, -1.0))
    assert loss(1e300, 1.0) == pytest.approx(-1.2)


@pytest.mark.parametrize("dual", [None, 1.5])
def test_the_policy_gradient_is_that_of_finite_differences(dual):
    generator = torch.Generator().manual_seed(0)
    shape = (3, 7)

    def draw(scale: float = 1.0) -> Tensor:
        return scale * torch.randn(shape, generator=generator, dtype=torch.float64)

    prox = draw() - 3
    fixed = {"prox_logprobs": prox, "behaviour_logprobs": prox + draw(0.5), "advantages": draw()}
    logprobs = (prox + draw(0.4)).requires_grad_()

    def total(x: Tensor) -> Tensor:
        return policy_loss(
            logprobs=x, clip_low=0.2, clip_high=0.25, dual_clip=dual, importance_cap=2, **fixed
        ).losses

    assert torch.autograd.gradcheck(total, (logprobs,), eps=1e-7, atol=1e-6)


def test_the_gradient_at_the_start_is_the_policy_gradient():
    """At r = 1 and on-policy, d loss / d log pi = -A: plain REINFORCE with advantages."""
    logprobs = row(-1.0, -2.0, -3.0).requires_grad_()
    advantages = row(0.5, -1.5, 2.0)
    terms = policy_loss(
        logprobs=logprobs,
        prox_logprobs=logprobs.detach(),
        behaviour_logprobs=logprobs.detach(),
        advantages=advantages,
        clip_low=0.2,
        clip_high=0.2,
        importance_cap=2,
    )
    terms.losses.sum().backward()
    assert logprobs.grad is not None
    assert torch.equal(logprobs.grad, -advantages)


def test_value_loss_is_half_the_squared_error():
    result = value_loss(row(1.0, 2.0), old_values=row(0.0, 0.0), returns=row(3.0, 2.0))
    assert result[0].tolist() == [2.0, 0.0]


def test_clipped_value_loss_takes_the_larger_error():
    """V = 1, old 0, range .5: kept at .5. Return 1: errors 0 and .25 -> .125. Return 0: 1 and .25 -> .5."""
    result = value_loss(row(1.0, 1.0), old_values=row(0.0, 0.0), returns=row(1.0, 0.0), clip_range=0.5)
    assert result[0].tolist() == pytest.approx([0.125, 0.5])


@pytest.mark.parametrize("clip", [None, 0.3])
def test_the_value_gradient_is_that_of_finite_differences(clip):
    generator = torch.Generator().manual_seed(1)
    old, returns, move = (torch.randn((2, 5), generator=generator, dtype=torch.float64) for _ in range(3))
    values = (old + 0.5 * move).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda v: value_loss(v, old_values=old, returns=returns, clip_range=clip),
        (values,),
        eps=1e-7,
        atol=1e-6,
    )


def test_entropy_of_a_uniform_choice_is_the_logarithm_of_its_size():
    assert float(entropy(torch.zeros(1, 8, dtype=torch.float64))) == pytest.approx(math.log(8))


def test_entropy_gradient_is_that_of_finite_differences():
    logits = torch.randn((2, 3, 5), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    assert torch.autograd.gradcheck(entropy, (logits.requires_grad_(),))


MASK = torch.tensor([[1.0, 1.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
VALUES = torch.tensor([[1.0, 1.0, 1.0, 1.0], [6.0, 99.0, 99.0, 99.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("TokenMean", (4 + 6) / 5), ("SequenceMean", (1 + 6) / 2), ("ConstantLength", (4 + 6) / (2 * 8))],
)
def test_the_three_ways_to_aggregate(kind, expected):
    assert float(aggregate(VALUES, MASK, kind=kind, max_tokens=8)) == pytest.approx(expected)


def test_a_token_counts_the_same_in_rows_of_any_length_only_with_token_mean_and_constant_length():
    lengths = torch.tensor([10, 2])
    for kind, same in (("TokenMean", True), ("SequenceMean", False), ("ConstantLength", True)):
        scale = token_scale(lengths, kind=kind, max_tokens=16)
        assert bool(scale[0] == scale[1]) is same


def test_masked_mean_looks_at_trained_tokens_alone():
    assert float(masked_mean(VALUES, MASK)) == pytest.approx(2.0)
    assert float(masked_mean(VALUES, torch.zeros_like(MASK))) == 0.0
