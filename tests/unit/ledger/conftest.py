"""Samples and ledgers for the ledger's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger import Ledger, Result, Sampled

MakeSample = Callable[..., Sampled]
MakeResult = Callable[..., Result]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    with Ledger.create(path, {"name": "demo"}) as ledger:
        yield ledger


@pytest.fixture
def make_sample() -> MakeSample:
    """A sample of round 0, named by its position."""

    def make(position: int, **changes: Any) -> Sampled:
        values: dict[str, Any] = {
            "id": f"r-{position}",
            "purpose": "Train",
            "round": 0,
            "position": position,
            "task": "churn",
            "prompt_kind": "draft",
            "parent": None,
            "prompt_tokens": (1, 2),
            "response_tokens": (3, 4, 5),
            "logprobs": (-0.1, -0.2, -0.3),
            "spans": (VersionSpan(0, 0, 3),),
            "response": "print(1)",
            "script": "print(1)",
            "tree": "t",
        }
        return Sampled(**{**values, **changes})

    return make


@pytest.fixture
def make_result() -> MakeResult:
    def make(
        outcome: Outcome = Outcome.SCORED, reward: float | None = 0.5, seconds: float = 1.0, **changes: Any
    ) -> Result:
        status = RolloutStatus(
            outcome=outcome,
            reason="why",
            scores={Split.REWARD: 0.9} if outcome is Outcome.SCORED else {},
            seconds=RolloutSeconds(execution=seconds),
        )
        return Result(status=status, reward=reward, **changes)

    return make
