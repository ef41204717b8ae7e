"""What must stop a run before anything is learnt, and what the message says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from mlwright_api.rollout import Outcome
from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import TrainingRow
from mlwright_trainer.learning.guards import (
    logprob_difference,
    require_agreement,
    require_finite_gradient,
    require_finite_rows,
    require_sound_rows,
)

pytestmark = pytest.mark.torch
ROW = TrainingRow(
    id="good",
    task="t",
    prompt_kind="draft",
    prompt_tokens=(1, 2),
    response_tokens=(3, 4),
    logprobs=(-1.0, -2.0),
    policy_version=3,
    outcome=Outcome.SCORED,
    reward=0.5,
    execution_seconds=1.0,
)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"outcome": Outcome.CANCELLED}, "outcome Cancelled has no reward"),
        ({"outcome": Outcome.INFRASTRUCTURE_FAILED}, "outcome InfrastructureFailed has no reward"),
        ({"response_tokens": (), "logprobs": ()}, "no prompt or no response tokens"),
        ({"prompt_tokens": ()}, "no prompt or no response tokens"),
        ({"logprobs": (-1.0,)}, "1 log-probabilities for 2 tokens"),
        ({"reward": float("nan")}, "not finite"),
        ({"logprobs": (-1.0, float("-inf"))}, "not finite"),
    ],
)
def test_a_row_that_must_not_be_trained_is_named(change, problem):
    with pytest.raises(InternalError, match=f"bad: .*{problem}"):
        require_sound_rows([ROW, replace(ROW, id="bad", **change)])


def test_a_timeout_is_trained():
    require_sound_rows([replace(ROW, outcome=Outcome.TIMEOUT)])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_rows_that_are_not_finite_are_named_and_the_others_are_not(value):
    values = torch.zeros(3, 2)
    values[1, 1] = value
    rows = [replace(ROW, id=f"row-{i}") for i in range(3)]
    with pytest.raises(InternalError, match=r"rows row-1$"):
        require_finite_rows(values, rows, what="the loss")


def test_many_offenders_are_counted_rather_than_listed():
    rows = [replace(ROW, id=f"row-{i}") for i in range(20)]
    with pytest.raises(InternalError, match="row-7 and 12 more"):
        require_finite_rows(torch.full((20, 1), float("nan")), rows, what="the loss")


def test_a_gradient_that_is_not_finite_names_its_minibatch():
    with pytest.raises(InternalError, match=r"critic's gradient .* rows good"):
        require_finite_gradient(torch.tensor(float("nan")), [ROW], network="critic")
    require_finite_gradient(torch.tensor(1e30), [ROW], network="critic")


def test_the_difference_is_taken_over_rows_of_the_current_version_alone():
    prox, behaviour = torch.tensor([[-1.0, -2.0], [-9.0, -9.0]]), torch.tensor([[-1.1, -2.3], [0.0, 0.0]])
    rows = [ROW, replace(ROW, policy_version=2)]
    mask = torch.ones(2, 2)
    assert logprob_difference(prox, behaviour, mask, rows=rows, version=3) == pytest.approx(0.2)
    assert logprob_difference(prox, behaviour, mask, rows=rows, version=4) is None


def test_padding_does_not_dilute_the_difference():
    prox, behaviour = torch.tensor([[-1.0, 0.0]]), torch.tensor([[-1.5, 0.0]])
    mask = torch.tensor([[1.0, 0.0]])
    assert logprob_difference(prox, behaviour, mask, rows=[ROW], version=3) == pytest.approx(0.5)


def test_disagreement_is_judged_by_dtype():
    require_agreement(0.01, dtype=torch.bfloat16, version=0)
    with pytest.raises(InternalError, match=r"0\.01 nats per token, allowed 0\.0001 for float32"):
        require_agreement(0.01, dtype=torch.float32, version=0)


def test_a_difference_that_is_not_a_number_is_disagreement():
    with pytest.raises(InternalError, match="disagree"):
        require_agreement(float("nan"), dtype=torch.float32, version=0)
