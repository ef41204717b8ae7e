"""Micro-batches and the room that a prompt leaves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.batching import BatchBudget, micro_batches, room_for_answer
from mlwright_trainer.inference.engine import GenerationRequest


def _request(prompt: int, room: int = 10) -> GenerationRequest:
    return GenerationRequest(id="a", prompt_tokens=(1,) * prompt, seed=0, temperature=1.0, max_tokens=room)


lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=30)


@given(lengths, st.integers(1, 8), st.integers(1, 200))
def test_every_request_is_in_exactly_one_batch(sizes: list[tuple[int, int]], rows: int, tokens: int) -> None:
    requests = [_request(*size) for size in sizes]
    batches = list(micro_batches(requests, [room for _, room in sizes], BatchBudget(rows, tokens)))
    assert sorted(index for batch in batches for index in batch) == list(range(len(sizes)))


@given(lengths, st.integers(1, 8), st.integers(1, 200))
def test_no_batch_of_several_exceeds_the_budget(sizes: list[tuple[int, int]], rows: int, tokens: int) -> None:
    requests = [_request(*size) for size in sizes]
    for batch in micro_batches(requests, [room for _, room in sizes], BatchBudget(rows, tokens)):
        longest = max(sum(sizes[index]) for index in batch)
        assert len(batch) <= rows
        assert len(batch) == 1 or len(batch) * longest <= tokens


def test_prompts_of_like_length_go_together() -> None:
    requests = [_request(length) for length in (9, 1, 8, 2)]
    assert list(micro_batches(requests, [10] * 4, BatchBudget(rows=2))) == [[1, 3], [2, 0]]


def test_no_requests_make_no_batches() -> None:
    assert list(micro_batches([], [], BatchBudget())) == []


@pytest.mark.parametrize(("context", "room"), [(None, 10), (100, 10), (15, 10), (14, 9), (6, 1)])
def test_an_answer_may_be_as_long_as_asked_or_as_the_context_leaves(context: int | None, room: int) -> None:
    assert room_for_answer(_request(5), context) == room


def test_a_prompt_that_fills_the_context_is_refused_with_the_field_to_change() -> None:
    with pytest.raises(UserError, match=r"5 tokens.*ends at 5.*prompts\.maxPromptTokens"):
        room_for_answer(_request(5), 5)


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(UserError, match="no tokens"):
        room_for_answer(_request(0), None)
