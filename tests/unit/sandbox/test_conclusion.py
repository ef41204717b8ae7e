"""From the reports of runner and grader to the status of a rollout."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_api.classify import Classification
from mlwright_api.conclusion import concluded
from mlwright_api.mltask import Split, TaskLimits
from mlwright_api.results import GraderResult, Limit, Receipt, ReceiptCheck, RunnerResult, Verdict
from mlwright_api.rollout import Outcome
from mlwright_sandbox.conclusion import Attempt, classified, gradable, runner_result
from mlwright_sandbox.wire import Report

RECEIPT = Receipt(
    backend="Namespaces",
    user_namespace=True,
    seccomp=True,
    landlock_abi=7,
    checks=[ReceiptCheck(name="AnswersAbsent", locked=True)],
)
LIMITS = TaskLimits(timeout_seconds=10)
VALID = GraderResult(verdict=Verdict.VALID, scores={Split.REWARD: 0.9}, grading_seconds=0.1)


def result(*, out_of_memory: bool = False, **report: Any) -> RunnerResult:
    made = Report(**{"execution_seconds": 1.0, **report})
    return runner_result(made, RECEIPT, starting_seconds=0.02, out_of_memory=out_of_memory)


def outcome(attempt: Attempt, *, grade_partial: bool = False) -> Outcome:
    return classified(attempt, LIMITS, grade_partial=grade_partial).outcome


def test_milestones_get_their_names() -> None:
    assert result(exit_code=0, milestones=[0, 2]).milestones == ["imports", "model_built"]


def test_a_start_before_the_request_is_no_negative_time() -> None:
    made = runner_result(Report(exit_code=0), RECEIPT, starting_seconds=-0.1, out_of_memory=False)
    assert made.starting_seconds == 0


def test_a_process_ended_by_the_kernel_for_memory_is_the_limit() -> None:
    assert result(signal=9, out_of_memory=True).limit is Limit.MEMORY


def test_a_script_that_survives_such_a_loss_is_judged_by_its_end() -> None:
    assert result(exit_code=0, out_of_memory=True).limit is None


@pytest.mark.parametrize(
    ("report", "grader", "expected"),
    [
        ({"exit_code": 0}, VALID, Outcome.SCORED),
        (
            {"exit_code": 0},
            GraderResult(verdict=Verdict.TRIVIAL, scores={Split.REWARD: 0.5}),
            Outcome.TRIVIAL,
        ),
        ({"exit_code": 0}, GraderResult(verdict=Verdict.MISSING), Outcome.NO_SUBMISSION),
        ({"exit_code": 0}, GraderResult(verdict=Verdict.INVALID), Outcome.INVALID_SUBMISSION),
        ({"exit_code": 0}, None, Outcome.INVALID_SUBMISSION),
        ({"exit_code": 1}, None, Outcome.ERROR),
        ({"signal": 11}, None, Outcome.ERROR),
        ({"exit_code": 1, "limit": "Memory"}, None, Outcome.OUT_OF_MEMORY),
        ({"limit": "Output"}, None, Outcome.OVER_LIMIT),
        ({"timed_out": True, "execution_seconds": 10.0}, None, Outcome.TIMEOUT),
    ],
)
def test_an_attempt_has_the_outcome_of_the_table(
    report: dict[str, Any], grader: GraderResult | None, expected: Outcome
) -> None:
    assert outcome(Attempt(result=result(**report), grader=grader)) is expected


def test_what_the_sandbox_broke_is_the_infrastructures_failure() -> None:
    verdict = classified(Attempt(failure="bwrap is missing"), LIMITS, grade_partial=False)
    assert verdict.outcome is Outcome.INFRASTRUCTURE_FAILED
    assert verdict.rerun
    assert "bwrap is missing" in verdict.reason


def test_what_was_cancelled_is_cancelled_even_if_it_also_broke() -> None:
    assert outcome(Attempt(cancelled=True, failure="broken pipe")) is Outcome.CANCELLED


def test_only_a_finished_script_is_graded_unless_partial_ones_count() -> None:
    late = result(timed_out=True, execution_seconds=10.0)
    assert gradable(result(exit_code=0), grade_partial=False)
    assert not gradable(late, grade_partial=False)
    assert gradable(late, grade_partial=True)
    assert not gradable(result(limit="Disk"), grade_partial=True)


def test_a_status_carries_the_scores_only_of_a_valid_submission() -> None:
    ran = result(exit_code=1)
    failed = concluded(Classification(Outcome.ERROR, "x"), ran, VALID, attempt=2, queued_seconds=3)
    scored = concluded(Classification(Outcome.SCORED, ""), ran, VALID, attempt=2, queued_seconds=3)
    assert failed.scores == {}
    assert scored.scores == {Split.REWARD: 0.9}
    assert (scored.attempt, scored.seconds.queued, scored.seconds.grading) == (2, 3, 0.1)
    assert scored.isolation == RECEIPT


def test_a_status_without_a_result_has_only_waited() -> None:
    cancelled = Classification(Outcome.CANCELLED, "Cancelled")
    status = concluded(cancelled, None, None, attempt=1, queued_seconds=2)
    assert (status.outcome, status.seconds.queued, status.seconds.execution) == (Outcome.CANCELLED, 2, 0)
