"""What a generator makes: a prompt and the completion that a model is to learn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Example:
    """One fine-tuning example; `prompt` is the content of the only user message ("" for none)."""

    prompt: str
    completion: str
