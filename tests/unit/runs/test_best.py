"""Selection chooses among the top few by Reward."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from mlwright_api.metric_catalog import CATALOG
from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_trainer.ledger import RolloutRow
from mlwright_trainer.runs.best import FINALISTS, best_rollout

AUC, RMSE = CATALOG["roc_auc"], CATALOG["rmse"]


def row(number: int, reward: float, selection: float, **changes: Any) -> RolloutRow:
    status = RolloutStatus(outcome=Outcome.SCORED, scores={Split.REWARD: reward, Split.SELECTION: selection})
    made = RolloutRow(
        id=f"train-{number}",
        purpose="Train",
        round=0,
        position=number,
        task="churn",
        prompt_kind="draft",
        parent=None,
        policy_version=0,
        response_tokens=3,
        response="",
        script=f"print({number})",
        tree=f"tree-{number}",
        sampled_at=float(number),
        launched_at=None,
        window=None,
        window_offset=None,
        status=status,
        reward=1.0,
        closed_at=None,
        batch=None,
    )
    return replace(made, **changes)


def test_without_a_scored_rollout_there_is_no_best() -> None:
    failed = replace(row(0, 0.9, 0.9), status=RolloutStatus(outcome=Outcome.ERROR))
    trivial = replace(row(1, 0.9, 0.9), status=RolloutStatus(outcome=Outcome.TRIVIAL))
    assert best_rollout([failed, trivial], AUC) is None


def test_selection_decides_among_the_finalists() -> None:
    best = best_rollout([row(0, 0.90, 0.85), row(1, 0.89, 0.88)], AUC)
    assert best is not None
    assert best.id == "train-1"


def test_a_script_outside_the_shortlist_cannot_win_by_selection_alone() -> None:
    leaders = [row(number, 0.9 + number / 1000, 0.8) for number in range(FINALISTS)]
    outsider = row(99, 0.5, 0.99)
    best = best_rollout([outsider, *leaders], AUC)
    assert best is not None
    assert best.id != "train-99"


def test_copies_of_one_script_take_one_place_on_the_shortlist() -> None:
    copies = [row(number, 0.95, 0.80, tree="same") for number in range(20)]
    best = best_rollout([*copies, row(50, 0.90, 0.85)], AUC)
    assert best is not None
    assert best.id == "train-50"


@pytest.mark.parametrize(("metric", "winner"), [(AUC, "train-1"), (RMSE, "train-0")])
def test_the_direction_of_the_metric_is_followed(metric: Any, winner: str) -> None:
    best = best_rollout([row(0, 0.2, 0.2), row(1, 0.9, 0.9)], metric)
    assert best is not None
    assert best.id == winner


def test_ties_go_to_the_earliest_whatever_the_order() -> None:
    rows = [row(3, 0.9, 0.8), row(1, 0.9, 0.8), row(2, 0.9, 0.8)]
    assert best_rollout(rows, AUC) == best_rollout(reversed(rows), AUC) == rows[1]
