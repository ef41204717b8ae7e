"""Drawing tokens by inverse CDF."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mlwright_trainer.inference.sampling import draw, request_noise

pytestmark = pytest.mark.torch


def _one(logits: list[float], uniform: float, temperature: float = 1.0) -> tuple[int, float]:
    tokens, logprobs = draw(
        torch.tensor([logits]), torch.tensor([temperature]).double(), torch.tensor([uniform]).double()
    )
    return int(tokens[0]), float(logprobs[0])


def test_a_uniform_number_picks_the_token_whose_share_it_falls_into() -> None:
    logits = torch.tensor([0.2, 0.5, 0.3]).log().tolist()
    assert [_one(logits, u)[0] for u in (0.0, 0.19, 0.21, 0.69, 0.71, 0.999)] == [0, 0, 1, 1, 2, 2]


@given(st.floats(0, 1, exclude_max=True), st.integers(0, 4))
def test_a_token_of_probability_zero_is_never_drawn(uniform: float, allowed: int) -> None:
    logits = [-float("inf")] * 5
    logits[allowed] = 1.0
    assert _one(logits, uniform) == (allowed, 0.0)


def test_the_largest_uniform_number_draws_the_last_token_with_a_share() -> None:
    assert _one([0.1, 0.3, 0.7, -float("inf")], float(np.nextafter(1.0, 0.0)))[0] == 2


@given(st.floats(0.1, 5), st.floats(0, 1, exclude_max=True))
def test_log_probabilities_are_those_after_temperature(temperature: float, uniform: float) -> None:
    logits = [1.0, -2.0, 0.5, 3.0]
    token, logprob = _one(logits, uniform, temperature)
    expected = torch.log_softmax(torch.tensor(logits).double() / temperature, dim=0)[token]
    assert logprob == pytest.approx(float(expected), abs=1e-6)


def test_shares_of_draws_are_the_softmax() -> None:
    count = 20_000
    logits = torch.tensor([0.0, 1.0, 2.0]).expand(count, 3)
    uniform = torch.from_numpy(request_noise(7, count))
    tokens, _ = draw(logits, torch.full((count,), 2.0).double(), uniform)
    shares = torch.bincount(tokens, minlength=3) / count
    expected = torch.softmax(torch.tensor([0.0, 0.5, 1.0]), dim=0)
    assert torch.allclose(shares, expected, atol=4 * 0.5 / count**0.5)


def test_each_row_has_its_own_temperature() -> None:
    logits = torch.tensor([[0.0, 4.0], [0.0, 4.0]])
    _, logprobs = draw(logits, torch.tensor([1.0, 100.0]).double(), torch.tensor([0.9, 0.9]).double())
    assert float(logprobs[0]) > -0.02
    assert float(logprobs[1]) < -0.6


def test_noise_depends_on_the_seed_alone() -> None:
    assert (request_noise(3, 10) == request_noise(3, 10)).all()
    assert (request_noise(3, 10) != request_noise(4, 10)).all()


def test_noise_for_a_token_does_not_depend_on_how_many_follow() -> None:
    assert (request_noise(3, 100)[:10] == request_noise(3, 10)).all()


@given(st.integers(-(2**80), 2**140))
def test_any_integer_is_a_seed(seed: int) -> None:
    noise = request_noise(seed, 4)
    assert ((noise >= 0) & (noise < 1)).all()
