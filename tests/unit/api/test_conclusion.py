"""What a rollout's status keeps of what runner and grader said."""

from __future__ import annotations

import pytest
from mlwright_api.classify import Classification
from mlwright_api.conclusion import concluded
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Receipt, RunnerResult, Unfinished, Unreadable, Verdict
from mlwright_api.rollout import Outcome, RolloutStatus

RECEIPT = Receipt(backend="Pod", user_namespace=True, seccomp=True, landlock_abi=7)
RUNNER = RunnerResult(
    exit_code=0,
    execution_seconds=2.0,
    cpu_seconds=1.5,
    starting_seconds=0.5,
    milestones=["imports"],
    output_tail="hello",
    isolation=RECEIPT,
)
GRADER = GraderResult(verdict=Verdict.VALID, scores={Split.REWARD: 0.9}, grading_seconds=0.25)


def verdict(outcome: Outcome, reason: str = "") -> Classification:
    return Classification(outcome, reason)


def test_of_a_valid_submission_everything_is_kept() -> None:
    status = concluded(verdict(Outcome.SCORED), RUNNER, GRADER, attempt=2, queued_seconds=3.0)
    assert (status.attempt, status.outcome, status.scores) == (2, Outcome.SCORED, {Split.REWARD: 0.9})
    assert (status.milestones, status.output_tail, status.exit_code) == (["imports"], "hello", 0)
    assert status.isolation == RECEIPT
    seconds = status.seconds
    assert (seconds.queued, seconds.starting, seconds.execution, seconds.cpu) == (3.0, 0.5, 2.0, 1.5)
    assert seconds.grading == 0.25


@pytest.mark.parametrize("outcome", [each for each in Outcome if not each.valid])
def test_there_are_no_scores_of_what_is_not_valid(outcome: Outcome) -> None:
    assert concluded(verdict(outcome), RUNNER, GRADER, attempt=1).scores == {}


def test_a_runner_that_died_leaves_what_it_had_said() -> None:
    runner = Unfinished(unfinished=True, milestones=["imports", "data_loaded"], output_tail="so far")
    status = concluded(verdict(Outcome.INFRASTRUCTURE_FAILED, "RunnerDied"), runner, None, attempt=1)
    assert (status.milestones, status.output_tail) == (["imports", "data_loaded"], "so far")
    assert (status.exit_code, status.isolation, status.seconds.execution) == (None, None, 0)


@pytest.mark.parametrize("runner", [None, Unreadable("is no JSON")])
def test_of_a_runner_that_said_nothing_readable_there_is_only_the_verdict(runner: Unreadable | None) -> None:
    status = concluded(verdict(Outcome.TAMPERED, "why"), runner, GRADER, attempt=1, queued_seconds=1.0)
    assert status.model_dump(exclude={"seconds"}, exclude_defaults=True) == {
        "attempt": 1,
        "outcome": Outcome.TAMPERED,
        "reason": "why",
    }
    assert status.seconds.model_dump(exclude_defaults=True) == {"queued": 1.0}


def test_what_was_set_is_known_as_set() -> None:
    """So that it can be laid over another status."""
    status = concluded(verdict(Outcome.SCORED), RUNNER, GRADER, attempt=1)
    assert "output_tail" in status.model_fields_set
    assert "conditions" not in status.model_fields_set
    assert isinstance(status, RolloutStatus)
