"""What a live Rollout says."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.cluster.errors import ClusterUnavailable
from mlwright_trainer.cluster.reading import ended, finished, refusal, running_since, unix_time, waits_for


def live(**status: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "r",
            "uid": "u",
            "resourceVersion": "5",
            "creationTimestamp": "2027-01-15T08:00:00Z",
        },
        "status": status,
    }


def says(
    type: str, status: str, reason: str, message: str = "", at: str = "2027-01-15T08:00:07Z"
) -> dict[str, Any]:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": at}


def test_nobody_has_said_anything_of_a_new_object() -> None:
    new = {"metadata": live()["metadata"]}
    assert (ended(new), waits_for(new), refusal(new), running_since(new)) == (False, "", None, None)


@pytest.mark.parametrize(
    ("conditions", "line"),
    [
        (
            [says("Accepted", "True", "Accepted"), says("Started", "False", "Queued", "3 before it")],
            "Queued: 3 before it",
        ),
        ([says("Accepted", "True", "Accepted")], ""),
        ([says("Started", "False", "ImagePullFailed", "no\nsuch  image")], "ImagePullFailed: no such image"),
        (
            [says("Accepted", "False", "TaskNotReady", "wait"), says("Started", "False", "Queued")],
            "TaskNotReady: wait",
        ),
        ([says("Started", "True", "Running")], "Running"),
    ],
)
def test_it_says_in_one_line_what_it_waits_for(conditions: list[dict[str, Any]], line: str) -> None:
    assert waits_for(live(conditions=conditions)) == line


def test_a_further_attempt_is_mentioned() -> None:
    assert (
        waits_for(live(attempt=2, conditions=[says("Started", "True", "Running")])) == "Running (attempt 2)"
    )
    assert waits_for(live(attempt=1, conditions=[says("Started", "True", "Running")])) == "Running"


@pytest.mark.parametrize(
    "reason", ["TaskNotFound", "TaskChanged", "LimitsAboveTask", "UnknownSandbox", "InvalidSpec"]
)
def test_what_stays_refused_until_somebody_acts(reason: str) -> None:
    assert refusal(live(conditions=[says("Accepted", "False", reason, "why")])) == f"{reason}: why"


def test_a_task_that_is_not_ready_yet_is_waited_for() -> None:
    assert refusal(live(conditions=[says("Accepted", "False", "TaskNotReady")])) is None


def test_a_result_has_the_scores_and_the_start_of_the_script() -> None:
    """Of the attempt that counts: Started has been True since the first."""
    one = live(
        attempt=2,
        outcome="Scored",
        scores={"Reward": 0.9},
        seconds={"queued": 31, "starting": 2.5, "execution": 4},
        conditions=[says("Started", "True", "Running"), says("Finished", "True", "Scored")],
    )
    result = finished("id", one)
    assert ended(one)
    assert (result.rollout, result.status.outcome, result.submission) == ("id", Outcome.SCORED, None)
    assert result.started_at == unix_time("2027-01-15T08:00:00Z") + 33.5


def test_where_no_seconds_are_known_the_condition_tells_the_start() -> None:
    result = finished("id", live(attempt=1, outcome="Error", conditions=[says("Started", "True", "Running")]))
    assert result.started_at == unix_time("2027-01-15T08:00:07Z") == unix_time("2027-01-15T08:00:00Z") + 7


def test_a_script_that_never_started_started_when_it_was_given_up() -> None:
    result = finished("id", live(attempt=1, outcome="InfrastructureFailed", seconds={"queued": 4}))
    assert result.started_at == unix_time("2027-01-15T08:00:00Z") + 4


def test_fields_of_a_later_operator_are_passed_over() -> None:
    result = finished("id", live(attempt=1, outcome="Scored", news=1, seconds={"execution": 2, "warping": 3}))
    assert result.status.seconds.execution == 2


def test_an_outcome_of_another_version_is_an_error_that_says_so() -> None:
    with pytest.raises(ClusterUnavailable, match=r"Rollout r: status\.outcome: .*do not fit together"):
        finished("id", live(outcome="Splendid"))
