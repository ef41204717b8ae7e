"""Prompts within the token budget: what may be shortened is, in a fixed order; the rest never silently."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mlwright_trainer.collection.parents import Parent
from mlwright_trainer.collection.prompts import (
    Detail,
    Message,
    TaskPrompt,
    draft_messages,
    improve_messages,
)
from mlwright_trainer.collection.templating import Templates
from mlwright_trainer.errors import UserError

Encode = Callable[[Sequence[Message]], tuple[int, ...]]
"""`Codec.encode`: messages through the chat template into tokens."""

STEPS = (
    Detail(),
    Detail(output_characters=1024),
    Detail(output_characters=512),
    Detail(output_characters=256),
    Detail(output_characters=0),
    Detail(output_characters=0, head_lines=3),
    Detail(output_characters=0, head_lines=2),
    Detail(output_characters=0, head_lines=1),
    Detail(output_characters=0, head_lines=0),
)
"""The parent's output goes first, then the heads of the data files; code and description stay whole."""


@dataclass(frozen=True)
class FittedPrompt:
    """A prompt within its budget, its tokens, and how much of it is shown."""

    messages: list[Message]
    tokens: tuple[int, ...]
    detail: Detail


def fit_prompt(
    encode: Encode, build: Callable[[Detail], list[Message]], *, max_prompt_tokens: int
) -> FittedPrompt | None:
    """The fullest prompt of at most `max_prompt_tokens`; None where even the barest is longer."""
    earlier: list[Message] = []
    for detail in STEPS:
        messages = build(detail)
        if messages == earlier:
            continue
        tokens = encode(messages)
        if len(tokens) <= max_prompt_tokens:
            return FittedPrompt(messages, tokens, detail)
        earlier = messages
    return None


def fit_draft(
    encode: Encode, task: TaskPrompt, templates: Templates, *, max_prompt_tokens: int
) -> FittedPrompt:
    """The draft prompt of `task`; UserError naming the task where it does not fit."""
    fitted = fit_prompt(
        encode, lambda detail: draft_messages(task, templates, detail), max_prompt_tokens=max_prompt_tokens
    )
    if fitted is None:
        barest = len(encode(draft_messages(task, templates, STEPS[-1])))
        raise UserError(
            f"task {task.name!r}: its prompt has {barest} tokens without the data's first lines, more than "
            f"prompts.maxPromptTokens ({max_prompt_tokens}): raise that, or shorten the "
            "description or the template"
        )
    return fitted


def fit_improve(
    encode: Encode, task: TaskPrompt, parent: Parent, templates: Templates, *, max_prompt_tokens: int
) -> FittedPrompt | None:
    """The improve prompt; None where the parent's code is too long for it, and a draft is to be asked for."""
    return fit_prompt(
        encode,
        lambda detail: improve_messages(task, parent, templates, detail),
        max_prompt_tokens=max_prompt_tokens,
    )
