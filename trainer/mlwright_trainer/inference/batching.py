"""How requests are cut into micro-batches: by a budget of rows and of cached tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.engine import GenerationRequest


@dataclass(frozen=True)
class BatchBudget:
    """Upper bounds of one micro-batch; a request larger than `cached_tokens` still gets a batch of its own."""

    rows: int = 256
    cached_tokens: int = 65_536
    """Rows times the longest prompt and answer together: what the KV cache may have to hold."""


def room_for_answer(request: GenerationRequest, context_length: int | None) -> int:
    """Tokens that may be sampled: the request's limit, or what the model's context leaves.

    Raises UserError for an empty prompt and for one that fills the context.
    """
    used = len(request.prompt_tokens)
    if used == 0:
        raise UserError(f"request {request.id!r}: the prompt has no tokens")
    if context_length is None:
        return request.max_tokens
    if used >= context_length:
        raise UserError(
            f"request {request.id!r}: the prompt has {used} tokens, and the model's context ends at {context_length}: "
            "lower prompts.maxPromptTokens"
        )
    return min(request.max_tokens, context_length - used)


def micro_batches(
    requests: Sequence[GenerationRequest], rooms: Sequence[int], budget: BatchBudget
) -> Iterator[list[int]]:
    """Indices of the requests of each micro-batch, prompts of like length together."""
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(requests)), key=lambda i: (len(requests[i].prompt_tokens), rooms[i], i)):
        length = len(requests[index].prompt_tokens) + rooms[index]
        longest = max(longest, length)
        if batch and (len(batch) == budget.rows or (len(batch) + 1) * longest > budget.cached_tokens):
            yield batch
            batch, longest = [], length
        batch.append(index)
    if batch:
        yield batch
