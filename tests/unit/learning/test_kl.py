"""KL estimators: values, and which divergence each one's gradient belongs to."""

from __future__ import annotations

import math

import pytest
import torch
from mlwright_trainer.learning.kl import kl_estimate, next_coefficient
from torch import Tensor

pytestmark = pytest.mark.torch


@pytest.fixture
def logits() -> Tensor:
    return torch.randn(6, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()


@pytest.fixture
def ref() -> Tensor:
    drawn = torch.randn(6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    return torch.log_softmax(drawn, dim=-1)


def gradient_of_expected_estimate(logits: Tensor, ref: Tensor, estimator: str) -> Tensor:
    """E over samples of pi (fixed while sampling) of the estimator's gradient: what a KL loss really follows."""
    log_pi = torch.log_softmax(logits, dim=-1)
    expected = (log_pi.exp().detach() * kl_estimate(log_pi, ref, estimator=estimator)).sum()
    return torch.autograd.grad(expected, logits)[0]


def reverse_kl(logits: Tensor, ref: Tensor) -> Tensor:
    log_pi = torch.log_softmax(logits, dim=-1)
    return (log_pi.exp() * (log_pi - ref)).sum()


def forward_kl(logits: Tensor, ref: Tensor) -> Tensor:
    return (ref.exp() * (ref - torch.log_softmax(logits, dim=-1))).sum()


def test_k2_as_a_loss_follows_the_reverse_kl(logits, ref):
    expected = torch.autograd.grad(reverse_kl(logits, ref), logits)[0]
    actual = gradient_of_expected_estimate(logits, ref, "K2")
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


def test_k3_as_a_loss_follows_the_forward_kl(logits, ref):
    expected = torch.autograd.grad(forward_kl(logits, ref), logits)[0]
    actual = gradient_of_expected_estimate(logits, ref, "K3")
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


def test_k1_as_a_loss_goes_nowhere(logits, ref):
    actual = gradient_of_expected_estimate(logits, ref, "K1")
    torch.testing.assert_close(actual, torch.zeros_like(actual), rtol=0, atol=1e-15)


@pytest.mark.parametrize("estimator", ["K1", "K3"])
def test_k1_and_k3_are_unbiased_as_values(logits, ref, estimator):
    log_pi = torch.log_softmax(logits, dim=-1).detach()
    mean = (log_pi.exp() * kl_estimate(log_pi, ref, estimator=estimator)).sum()
    assert float(mean) == pytest.approx(float(reverse_kl(logits.detach(), ref)), rel=1e-12)


def test_values_by_hand():
    pi, ref = torch.tensor([math.log(0.5)]).double(), torch.tensor([math.log(0.25)]).double()
    assert float(kl_estimate(pi, ref, estimator="K1")) == pytest.approx(math.log(2))
    assert float(kl_estimate(pi, ref, estimator="K2")) == pytest.approx(math.log(2) ** 2 / 2)
    assert float(kl_estimate(pi, ref, estimator="K3")) == pytest.approx(0.5 - 1 + math.log(2))


@pytest.mark.parametrize("estimator", ["K1", "K2", "K3"])
def test_the_gradient_is_that_of_finite_differences(estimator):
    drawn = torch.randn((2, 9), generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda x: kl_estimate(x, drawn.flip(1), estimator=estimator), (drawn.clone().requires_grad_(),)
    )


def test_equal_policies_have_no_kl():
    pi = torch.tensor([-1.0, -20.0])
    for estimator in ("K1", "K2", "K3"):
        assert torch.equal(kl_estimate(pi, pi, estimator=estimator), torch.zeros(2))


def test_a_token_that_the_reference_finds_certain_and_the_policy_impossible_stays_finite():
    assert torch.isfinite(kl_estimate(torch.tensor(-500.0), torch.tensor(0.0), estimator="K3"))


@pytest.mark.parametrize(
    ("measured", "factor"), [(0.1, 1.0), (0.11, 1.01), (0.09, 0.99), (5.0, 1.02), (0.0, 0.98), (-1.0, 0.98)]
)
def test_the_coefficient_moves_towards_the_target_by_two_percent_at_most(measured, factor):
    assert next_coefficient(0.5, measured=measured, target=0.1) == pytest.approx(0.5 * factor)


def test_without_a_target_the_coefficient_stays():
    assert next_coefficient(0.5, measured=9.0, target=None) == 0.5
