"""Errors that say what, where and what to do."""

from __future__ import annotations

import pytest
from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused, ClusterUnavailable
from mlwright_trainer.cluster.explaining import explained, no_answer


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        (ApiFailure("Unauthorized", status=401), "log in to the cluster again"),
        (ApiFailure("User x cannot create", status=403), "ask whoever runs the cluster"),
        (ApiFailure("404 page not found", status=404), "mlwright is not installed there"),
        (ApiFailure('namespaces "n" not found', status=404), "make the namespace"),
        (ApiFailure('mltasks "t" not found', status=404), "see what there is"),
        (ApiFailure("unknown field spec.x", status=400), "another version"),
        (ApiFailure("spec.seed: Invalid value", status=422), "another version"),
    ],
)
def test_what_the_user_can_mend_says_how(failure: ApiFailure, advice: str) -> None:
    error = explained(failure, doing="create Rollout r", place="namespace n at https://api")
    assert isinstance(error, ClusterRefused)
    assert error.exit_code == 2
    assert str(error).startswith(f"namespace n at https://api: cannot create Rollout r: {failure}; ")
    assert advice in str(error)


@pytest.mark.parametrize("status", [0, 418, 500])
def test_what_the_user_cannot_mend_is_ours(status: int) -> None:
    error = explained(ApiFailure("broken\n pipe", status=status), doing="watch", place="here")
    assert isinstance(error, ClusterUnavailable)
    assert (error.exit_code, str(error)) == (1, "here: no answer when asked to watch: broken pipe")


@pytest.mark.parametrize(
    ("failure", "passing"),
    [
        (ApiFailure("reset", status=0), True),
        (ApiFailure("slow down", status=429), True),
        (ApiFailure("etcd is away", status=500), True),
        (ApiFailure("exceeded quota: objects", status=403), True),
        (ApiFailure("forbidden", status=403), False),
        (ApiFailure("taken", status=409), False),
        (ApiFailure("invalid", status=422), False),
        (ApiFailure("too old", status=410), False),
    ],
)
def test_only_what_may_pass_is_tried_again(failure: ApiFailure, passing: bool) -> None:
    assert failure.passing is passing


def test_a_line_of_progress_is_short() -> None:
    assert len(no_answer(ApiFailure("x" * 5000, status=500))) < 300
