"""Where collector and learner meet: get batch n, publish weights n+1, current version.

Everything here is plain data, so that a later transport (HTTP) can carry it without touching either side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from mlwright_api.rollout import Outcome

PromptKind = Literal["draft", "improve"]


@dataclass(frozen=True)
class TrainingRow:
    """One rollout as the learner needs it.

    `logprobs` are the sampler's, after temperature, one a response token.
    `execution_seconds` is None for rows that no sandbox ran (their duration weight is 1).
    """

    id: str
    task: str
    prompt_kind: PromptKind
    prompt_tokens: tuple[int, ...]
    response_tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    policy_version: int
    outcome: Outcome
    reward: float
    execution_seconds: float | None


@dataclass(frozen=True)
class Launch:
    """A script start in a window, for inclusion probabilities; seconds.

    `offset` is from the window's start; `seconds` is the execution time, or the time until it was cancelled.
    """

    offset: float
    seconds: float
    finished: bool


@dataclass(frozen=True)
class Window:
    """All launches of one clock-closed window of `seconds`."""

    seconds: float
    launches: tuple[Launch, ...]


@dataclass(frozen=True)
class Batch:
    """Batch n, assigned once and the same at every asking; rows in a fixed order."""

    number: int
    rows: tuple[TrainingRow, ...]
    window: Window | None = None


@dataclass(frozen=True)
class Publication:
    """New weights: a complete Hugging Face folder, its digest, and what the update measured.

    `version` n+1 was made from batch n; version 0 is the initial weights and has no metrics.
    """

    version: int
    folder: Path
    digest: str
    metrics: Mapping[str, float]


class Exchange(Protocol):
    """The collector's side, as the learner sees it."""

    def version(self) -> int:
        """The newest published version; -1 before version 0."""
        ...

    def batch(self, number: int) -> Batch:
        """Batch `number`; blocks until it is assigned; the same rows however often it is asked for."""
        ...

    def publish(self, publication: Publication) -> None:
        """Take over new weights; publishing a version again with the same digest does nothing."""
        ...
