"""The port through which the collector samples; free of torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol


@dataclass(frozen=True)
class VersionSpan:
    """Response tokens [start, end) that one policy version produced."""

    version: int
    start: int
    end: int


@dataclass(frozen=True)
class GenerationRequest:
    """A prompt in tokens; the seed alone (with weights and temperature) decides what comes out."""

    id: str
    prompt_tokens: tuple[int, ...]
    seed: int
    temperature: float
    max_tokens: int


@dataclass(frozen=True)
class Generation:
    """What came out; the end-of-text token is included where the model produced it (finish "stop").

    `logprobs` are natural logarithms after temperature, one a token.
    """

    id: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Literal["stop", "length"]
    spans: tuple[VersionSpan, ...]


class Engine(Protocol):
    """Samples from the newest weights that it has been given."""

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """One generation a request, in order."""
        ...

    def load(self, version: int, folder: Path) -> None:
        """Move to the weights in `folder` (a Hugging Face folder) and stamp later tokens with `version`."""
        ...

    @property
    def version(self) -> int:
        """The version that the next token comes from."""
        ...


class Codec(Protocol):
    """Turns chat messages into prompt tokens and response tokens into text; nothing is re-tokenised later."""

    def encode(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """Tokens of `[{role, content}, ...]` through the chat template, ready for the answer."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of response tokens, special tokens left out."""
        ...
