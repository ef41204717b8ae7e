"""Rows, batches and records as the benchmark meets them; `benchmarks` is imported from the checkout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from mlwright_api.mltask import Split  # noqa: E402  # the path comes first
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus  # noqa: E402
from mlwright_trainer.exchange import TrainingRow  # noqa: E402
from mlwright_trainer.ledger import RolloutRow  # noqa: E402


def rollout_row(
    position: int, outcome: Outcome, reward: float | None = None, seconds: float = 1.0
) -> RolloutRow:
    """A closed row of round 0."""
    scores = {Split.REWARD: 0.8, Split.SELECTION: 0.8} if outcome is Outcome.SCORED else {}
    status = RolloutStatus(outcome=outcome, scores=scores, seconds=RolloutSeconds(execution=seconds))
    return RolloutRow(
        id=f"train-{position}",
        purpose="Train",
        round=0,
        position=position,
        task="churn",
        prompt_kind="draft",
        parent=None,
        policy_version=0,
        response_tokens=3,
        response="pass",
        script="pass",
        tree=f"tree-{position}",
        sampled_at=float(position),
        launched_at=None,
        window=None,
        window_offset=None,
        status=status,
        reward=reward,
        closed_at=None,
        batch=None,
    )


def training_row(position: int, reward: float, **changes: Any) -> TrainingRow:
    """A row of a batch."""
    values: dict[str, Any] = {
        "id": f"train-{position}",
        "task": "churn",
        "prompt_kind": "draft",
        "prompt_tokens": (1, position),
        "response_tokens": (2, position),
        "logprobs": (-0.5, -float(position)),
        "policy_version": 0,
        "outcome": Outcome.SCORED,
        "reward": reward,
        "execution_seconds": 0.1 * position,
    }
    return TrainingRow(**{**values, **changes})


@pytest.fixture
def row() -> Any:
    return rollout_row


@pytest.fixture
def trained() -> Any:
    return training_row
