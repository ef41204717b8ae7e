"""The synchronous port: submit, collect, cancel, release, adopt, close, from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.cluster.backend import ClusterBackend
from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused, ClusterUnavailable
from mlwright_trainer.cluster.owner import one_call

Api = Any
Requested = Callable[..., Any]


class Opened:
    """A backend on an API in memory whose operator ends everything at once, unless told otherwise."""

    def __init__(self, make_api: Callable[[], Api]) -> None:
        self.make_api = make_api
        self.api: Api = None
        self.told: list[tuple[str, str]] = []
        self.prepare: Callable[[Api], None] = lambda api: setattr(api, "on_create", api.finish)
        self.backend = ClusterBackend(self._open, one_call("churn"), slots=3, told=self._tell)

    async def _open(self) -> Api:
        self.api = self.make_api()
        self.prepare(self.api)
        return self.api

    def _tell(self, rollout: str, line: str) -> None:
        self.told.append((rollout, line))


@pytest.fixture
def opened(memory_api: Callable[[], Api]) -> Iterator[Opened]:
    made = Opened(memory_api)
    yield made
    made.backend.close()


def test_what_is_submitted_is_collected_with_its_result(opened: Opened, requested: Requested) -> None:
    for number in range(5):
        opened.backend.submit(requested(f"r{number}"))
    found: dict[str, Any] = {}
    while len(found) < 5:
        found |= {each.rollout: each.status.outcome for each in opened.backend.collect(10)}
    assert found == {f"r{number}": Outcome.SCORED for number in range(5)}
    assert opened.backend.slots == 3


def test_nothing_is_collected_in_vain_for_longer_than_asked(opened: Opened) -> None:
    assert opened.backend.collect(0) == []


def test_a_rollout_in_flight_cannot_be_submitted_twice(opened: Opened, requested: Requested) -> None:
    opened.api.on_create = lambda _name: None
    opened.backend.submit(requested("r"))
    with pytest.raises(ValueError, match="in flight already"):
        opened.backend.submit(requested("r"))


def test_a_submission_cannot_be_kept_and_nothing_is_created(opened: Opened, requested: Requested) -> None:
    with pytest.raises(ClusterRefused, match="bytes cannot be had from a cluster"):
        opened.backend.submit(requested("r", keep_submission=True))
    opened.backend.close()
    assert "create" not in opened.api.requests


def test_closing_deletes_what_runs_and_what_was_not_released(opened: Opened, requested: Requested) -> None:
    opened.backend.submit(requested("finished"))
    assert [each.rollout for each in opened.backend.collect(10)] == ["finished"]
    opened.api.on_create = lambda _name: None
    opened.backend.submit(requested("running"))
    opened.backend.close()
    assert opened.api.objects == {}
    assert [each.status.outcome for each in opened.backend.collect(10)] == [Outcome.CANCELLED]
    opened.backend.close()


def test_releasing_deletes_exactly_that_object(opened: Opened, requested: Requested) -> None:
    opened.backend.submit(requested("one"))
    opened.backend.submit(requested("two"))
    count = 0
    while count < 2:
        count += len(opened.backend.collect(10))
    deleted = threading.Event()
    opened.api.then["delete"] = deleted.set
    opened.backend.release("never heard of")
    opened.backend.release("one")
    assert deleted.wait(10)
    assert list(opened.api.objects) == [opened.backend.object_name("two")]


def test_detaching_leaves_everything_where_it_is(opened: Opened, requested: Requested) -> None:
    opened.backend.submit(requested("r"))
    opened.backend.collect(10)
    opened.backend.detach()
    assert list(opened.api.objects) == [opened.backend.object_name("r")]


def test_a_closed_backend_says_so(opened: Opened, requested: Requested) -> None:
    opened.backend.close()
    with pytest.raises(ClusterUnavailable, match="the backend is closed"):
        opened.backend.submit(requested("r"))
    with pytest.raises(ClusterUnavailable, match="the backend is closed"):
        opened.backend.collect(10)
    with pytest.raises(ClusterUnavailable, match="the backend is closed"):
        opened.backend.adopt(["r"])
    opened.backend.cancel("r")
    opened.backend.release("r")


def test_a_backend_that_has_failed_stays_failed(opened: Opened, requested: Requested) -> None:
    opened.api.before["create"] = [ApiFailure("may not", status=403)]
    opened.backend.submit(requested("r"))
    for _ in range(2):
        with pytest.raises(ClusterRefused, match="may not"):
            opened.backend.collect(10)


def test_a_cancelled_rollout_is_collected(opened: Opened, requested: Requested) -> None:
    opened.api.on_create = lambda _name: None
    opened.backend.submit(requested("r"))
    opened.backend.cancel("r")
    (finished,) = opened.backend.collect(10)
    assert finished.status.outcome is Outcome.CANCELLED


def test_a_cluster_that_cannot_be_opened_is_an_error_at_once() -> None:
    async def refuse() -> Any:
        raise ClusterRefused("no kubeconfig")

    with pytest.raises(ClusterRefused, match="no kubeconfig"):
        ClusterBackend(refuse, one_call("churn"), slots=1)


def test_what_cannot_be_deleted_in_time_is_named(
    opened: Opened, requested: Requested, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlwright_trainer.cluster.backend.CLOSE_SECONDS", 0.05)
    opened.backend.submit(requested("r"))
    opened.backend.collect(10)
    opened.api.before["delete"] = [ApiFailure("away", status=0)] * 50
    opened.backend.close()
    assert any(opened.backend.object_name("r") in line for _, line in opened.told)
    assert any("could not delete" in line for _, line in opened.told)
