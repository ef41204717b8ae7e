"""What goes into the ledger and what comes out, as plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutStatus

from mlwright_trainer.exchange import PromptKind
from mlwright_trainer.inference.engine import VersionSpan

Purpose = Literal["Train", "Before", "After", "Evaluation"]
"""Train rows may carry a gradient; the others are fresh, awaited samples that only measure."""
CLOSED = "closed"
"""The fact that says that the sealed grading is done."""
Phase = Literal["fineTuning", "sampling", "execution", "learning", "sealed"]


@dataclass(frozen=True)
class Result:
    """How a rollout ended; `reward` is None where it is never trained."""

    status: RolloutStatus
    reward: float | None
    started_at: float | None = None
    """Unix time of the script's start; None where nothing ran."""
    window_offset: float | None = None
    """Seconds from the window's start to the script's, where there was a window."""
    submission: bytes | None = None


@dataclass(frozen=True)
class Sampled:
    """A sample as it is committed, before anything runs; `result` where no sandbox is needed."""

    id: str
    purpose: Purpose
    round: int
    position: int
    task: str
    prompt_kind: PromptKind
    parent: str | None
    prompt_tokens: tuple[int, ...]
    response_tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    spans: tuple[VersionSpan, ...]
    response: str
    script: str | None
    tree: str | None
    result: Result | None = None

    @property
    def policy_version(self) -> int:
        """The version that the first token came from."""
        return self.spans[0].version


@dataclass(frozen=True)
class RolloutRow:
    """A rollout without its tokens: for report, parent pool and `show`. Times are Unix seconds."""

    id: str
    purpose: Purpose
    round: int
    position: int
    task: str
    prompt_kind: PromptKind
    parent: str | None
    policy_version: int
    response_tokens: int
    """How many."""
    response: str
    script: str | None
    tree: str | None
    sampled_at: float
    launched_at: float | None
    window: int | None
    window_offset: float | None
    status: RolloutStatus
    """`status.outcome` is None while the rollout is open."""
    reward: float | None
    closed_at: float | None
    batch: int | None

    @property
    def outcome(self) -> Outcome | None:
        return self.status.outcome

    def score(self, split: Split = Split.REWARD) -> float | None:
        """The score on a split, if it was graded."""
        return self.status.scores.get(split)


@dataclass(frozen=True)
class UpdateRow:
    """Published weights and what the update that made them measured."""

    version: int
    digest: str
    metrics: Mapping[str, float]
    published_at: float


@dataclass(frozen=True)
class WindowRow:
    """A clock-closed window; seconds."""

    number: int
    seconds: float
    elapsed: float
    closed: bool
    missing_mass: float | None = None


@dataclass(frozen=True)
class SealedScore:
    """One read of Final. `subject` is a rollout's id, or "best" for the best script's submission."""

    subject: str
    rollout: str
    digest: str
    verdict: str
    reason: str = ""
    score: float | None = None
    interval: tuple[float, float] | None = field(default=None)
    """95 %, bootstrap over the split's rows."""
