"""Generalised advantage estimation against hand-made numbers and its two closed forms."""

from __future__ import annotations

import pytest
import torch
from mlwright_trainer.learning.gae import gae, terminal_rewards
from torch import Tensor

pytestmark = pytest.mark.torch


def rows(*lists: list[float]) -> Tensor:
    return torch.tensor(lists, dtype=torch.float64)


def test_two_tokens_by_hand():
    """gamma .9, lambda .5, values .5 and 1, reward 2 at the end.
    delta_1 = 2 - 1 = 1; delta_0 = .9 x 1 - .5 = .4; A_1 = 1; A_0 = .4 + .45 x 1 = .85."""
    advantages, returns = gae(rows([0, 2]), rows([0.5, 1]), rows([1, 1]), gamma=0.9, lam=0.5)
    assert advantages[0].tolist() == pytest.approx([0.85, 1.0], abs=1e-15)
    assert returns[0].tolist() == pytest.approx([1.35, 2.0], abs=1e-15)


def test_with_lambda_one_the_return_is_the_discounted_sum_of_rewards():
    advantages, returns = gae(rows([1, 2, 4]), rows([7, 8, 9]), rows([1, 1, 1]), gamma=0.5, lam=1)
    assert returns[0].tolist() == pytest.approx([1 + 1 + 1, 2 + 2, 4])
    assert advantages[0].tolist() == pytest.approx([3 - 7, 4 - 8, 4 - 9])


def test_with_lambda_zero_the_advantage_is_the_temporal_difference():
    advantages, _ = gae(rows([1, 2, 4]), rows([7, 8, 9]), rows([1, 1, 1]), gamma=0.5, lam=0)
    assert advantages[0].tolist() == pytest.approx([1 + 4 - 7, 2 + 4.5 - 8, 4 - 9])


def test_padding_changes_nothing_and_gets_nothing():
    short = gae(rows([0, 1]), rows([0.3, 0.2]), rows([1, 1]), gamma=0.9, lam=0.9)
    long = gae(rows([0, 1, 50, 50]), rows([0.3, 0.2, 50, 50]), rows([1, 1, 0, 0]), gamma=0.9, lam=0.9)
    for a, b in zip(short, long, strict=True):
        assert torch.equal(a, b[:, :2])
        assert torch.equal(b[:, 2:], torch.zeros(1, 2, dtype=torch.float64))


def test_an_observation_inside_a_response_is_stepped_over():
    plain = gae(rows([0, 1]), rows([0.3, 0.2]), rows([1, 1]), gamma=0.9, lam=0.8)
    holed = gae(rows([0, 7, 1]), rows([0.3, 9, 0.2]), rows([1, 0, 1]), gamma=0.9, lam=0.8)
    for a, b in zip(plain, holed, strict=True):
        assert torch.equal(a, b[:, [0, 2]])


def test_rows_do_not_touch_each_other():
    both = gae(rows([0, 1], [3, 4]), rows([1, 2], [5, 6]), rows([1, 1], [1, 1]), gamma=0.9, lam=0.7)[0]
    one = gae(rows([3, 4]), rows([5, 6]), rows([1, 1]), gamma=0.9, lam=0.7)[0]
    assert torch.equal(both[1:], one)


def test_the_result_is_float64_from_float32():
    advantages, returns = gae(torch.ones(1, 3), torch.ones(1, 3), torch.ones(1, 3), gamma=1, lam=1)
    assert advantages.dtype == returns.dtype == torch.float64


def test_the_reward_sits_on_the_last_trained_token():
    mask = rows([1, 1, 0], [1, 1, 1], [1, 0, 0])
    result = terminal_rewards(torch.tensor([2.0, 3.0, 4.0]), mask)
    assert result.tolist() == [[0, 2, 0], [0, 0, 3], [4, 0, 0]]
