"""Running moments by hand, their decay, and what weighted centring is for."""

from __future__ import annotations

import json
import math

import pytest
import torch
from mlwright_trainer.learning.advantages import Moments, RunningMoments, normalized, whiten
from torch import Tensor

pytestmark = pytest.mark.torch
DRAFT, IMPROVE = ("churn", "draft"), ("churn", "improve")


def matrix(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_the_first_batch_is_normalised_by_its_own_moments():
    values = matrix([1, 3], [5, 7])
    result = RunningMoments().normalize(
        values, torch.ones(2, 2), weights=torch.ones(2).double(), groups=[DRAFT, DRAFT]
    )
    assert result.flatten().tolist() == pytest.approx([x / math.sqrt(5) for x in (-3, -1, 1, 3)], rel=1e-7)


def test_an_older_batch_counts_nine_tenths():
    moments = Moments().observe(matrix([0.0, 0.0]), matrix([1, 1]))
    moments = moments.observe(matrix([1.0, 1.0]), matrix([1, 1]))
    assert moments.mean == pytest.approx(2 / (2 + 0.9 * 2))


def test_a_longer_batch_counts_more():
    moments = Moments().observe(matrix([0.0] * 9), matrix([1.0] * 9)).observe(matrix([1.0]), matrix([1.0]))
    assert moments.mean == pytest.approx(1 / (1 + 0.9 * 9))


def test_weighted_moments_by_hand():
    moments = Moments().observe(matrix([0.0, 4.0]), matrix([3.0, 1.0]))
    assert moments.mean == 1.0
    assert moments.deviation == pytest.approx(math.sqrt(3.0))


def test_groups_have_moments_of_their_own():
    values = matrix([0, 2], [100, 102])
    result = RunningMoments().normalize(
        values, torch.ones(2, 2), weights=torch.ones(2).double(), groups=[DRAFT, IMPROVE]
    )
    assert result.tolist() == [pytest.approx([-1, 1]), pytest.approx([-1, 1])]


def test_a_group_that_is_absent_keeps_its_moments():
    running = RunningMoments({IMPROVE: Moments(2.0, 2.0, 4.0)})
    running.normalize(matrix([1.0]), torch.ones(1, 1), weights=torch.ones(1).double(), groups=[DRAFT])
    assert running.moments[IMPROVE] == Moments(2.0, 2.0, 4.0)


def test_masked_tokens_neither_count_nor_come_out():
    values, mask = matrix([1, 3, 1e9]), matrix([1, 1, 0])
    result = RunningMoments().normalize(values, mask, weights=torch.ones(1).double(), groups=[DRAFT])
    assert result[0].tolist() == pytest.approx([-1, 1, 0], rel=1e-7)


def test_equal_advantages_become_zero_and_not_noise():
    result = RunningMoments().normalize(
        matrix([0.1] * 7), torch.ones(1, 7), weights=torch.ones(1).double(), groups=[DRAFT]
    )
    assert result.abs().max() < 1e-6


@pytest.mark.parametrize("kind", ["Running", "Batch"])
def test_weighted_advantages_sum_to_zero_where_plain_centring_would_not(kind):
    values = matrix([1, 2, 0], [-3, 4, 1], [9, 0, 0])
    mask = matrix([1, 1, 0], [1, 1, 1], [1, 0, 0])
    weights = torch.tensor([0.2, 0.5, 2.3], dtype=torch.float64)
    result = normalized(
        values, mask, weights=weights, groups=[DRAFT] * 3, running=RunningMoments(), kind=kind
    )
    plain = whiten(values, mask, weights=torch.ones(3).double()) * weights[:, None]
    assert float(result.sum()) == pytest.approx(0, abs=1e-12)
    assert abs(float(plain.sum())) > 0.5


def test_none_leaves_advantages_but_for_the_weights():
    values, mask = matrix([1, 2], [3, 4]), matrix([1, 1], [1, 0])
    result = normalized(
        values,
        mask,
        weights=torch.tensor([0.5, 1.5]).double(),
        groups=[DRAFT] * 2,
        running=RunningMoments(),
        kind="None",
    )
    assert result.tolist() == [[0.5, 1.0], [4.5, 0.0]]


def test_batch_ignores_groups_and_history():
    running = RunningMoments({DRAFT: Moments(100.0, 1e4, 1e7)})
    result = normalized(
        matrix([0, 2], [100, 102]),
        torch.ones(2, 2),
        weights=torch.ones(2).double(),
        groups=[DRAFT, IMPROVE],
        running=running,
        kind="Batch",
    )
    assert result[0, 0] < -0.9 < 0.9 < result[1, 1]
    assert running.moments == {DRAFT: Moments(100.0, 1e4, 1e7)}


def test_moments_survive_a_checkpoint_to_the_last_bit():
    running = RunningMoments({DRAFT: Moments(0.1, 1 / 3, 2 / 3), IMPROVE: Moments(1e-300, 7.0, 1e300)})
    restored = RunningMoments.restored(json.loads(json.dumps(running.state())))
    assert restored.moments == running.moments
