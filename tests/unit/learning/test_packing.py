"""Padding, positions, micro-batches and mini-batches."""

from __future__ import annotations

import pytest
import torch
from mlwright_api.rollout import Outcome
from mlwright_trainer.exchange import TrainingRow
from mlwright_trainer.learning.packing import microbatches, minibatches, pack, padded, row_tokens, seeded

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


def row(prompt: int, response: int) -> TrainingRow:
    return TrainingRow(
        id=f"{prompt}-{response}",
        task="t",
        prompt_kind="draft",
        prompt_tokens=tuple(range(10, 10 + prompt)),
        response_tokens=tuple(range(50, 50 + response)),
        logprobs=(-1.0,) * response,
        policy_version=0,
        outcome=Outcome.SCORED,
        reward=0.0,
        execution_seconds=None,
    )


def test_each_response_token_is_predicted_from_the_position_before_it():
    packed = pack([row(3, 2), row(1, 4)], [0, 1], device=CPU)
    assert packed.tokens.tolist() == [[10, 11, 12, 50, 51], [10, 50, 51, 52, 53]]
    assert packed.positions.tolist() == [[2, 3, 3, 3], [0, 1, 2, 3]]
    assert packed.mask.tolist() == [[1, 1, 0, 0], [1, 1, 1, 1]]


def test_only_the_chosen_rows_are_packed_in_the_order_asked_for():
    packed = pack([row(1, 1), row(2, 2), row(3, 3)], [2, 0], device=CPU)
    assert packed.rows.tolist() == [2, 0]
    assert packed.tokens.shape == (2, 6)


def test_positions_of_padding_stay_inside_the_row():
    packed = pack([row(1, 1), row(1, 9)], [0, 1], device=CPU)
    assert packed.positions[0].tolist() == [0] * 9


def test_microbatches_count_padding():
    """10 + 9 would be 19 tokens, but padded they are 20."""
    assert microbatches([9, 10], budget=19) == [[1], [0]]
    assert microbatches([9, 10], budget=20) == [[1, 0]]


def test_a_row_above_the_budget_goes_alone():
    assert microbatches([100, 5, 5], budget=10) == [[0], [1, 2]]


def test_minibatches_are_even():
    parts = minibatches(10, size=4, generator=seeded(1))
    assert sorted(map(len, parts)) == [3, 3, 4]
    assert sorted(i for part in parts for i in part) == list(range(10))


def test_without_a_size_there_is_one_minibatch():
    assert [sorted(part) for part in minibatches(3, size=None, generator=seeded(1))] == [[0, 1, 2]]


def test_a_batch_smaller_than_a_minibatch_is_one():
    assert len(minibatches(3, size=24, generator=seeded(1))) == 1


def test_the_order_depends_on_seed_update_and_epoch_alone():
    def order(*key: int) -> list[list[int]]:
        return minibatches(24, size=6, generator=seeded(*key))

    assert order(1, 2, 3) == order(1, 2, 3)
    assert len({str(order(*key)) for key in [(1, 2, 3), (0, 2, 3), (1, 0, 3), (1, 2, 0), (12, 3)]}) == 5


def test_lists_are_padded_with_zeros():
    assert padded([[1.0], [2.0, 3.0]], device=CPU).tolist() == [[1, 0], [2, 3]]


def test_a_rows_length_counts_its_prompt():
    assert row_tokens([row(3, 2), row(1, 4)]) == [5, 5]
