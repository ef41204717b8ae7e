"""Actions as requests: what is sent, what an answer means, and that twice does no harm."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from mlwright_operator.actions import Apply, Delete, Emit, Kind, Ref, WriteStatus
from mlwright_operator.edge.gate import Gate
from mlwright_operator.edge.kube import KubeCluster, event_body
from mlwright_operator.edge.store import Store
from mlwright_operator.errors import ApiFailure, WritesClosed

JOB = Ref(Kind.JOB, "lab", "job-1", "uid-job")
ROLLOUT = Ref(Kind.ROLLOUT, "lab", "rollout-1", "uid-rollout")
APPLY = Apply(Kind.JOB, {"metadata": {"name": "job-1", "namespace": "lab"}, "spec": {"parallelism": 1}})
STATUS = WriteStatus(ROLLOUT, {"attempt": 1}, "41")
EMIT = Emit(ROLLOUT, "Normal", "Finished", "Scored")


def stored(uid: str, version: int = 50, **metadata: str) -> dict[str, Any]:
    return {
        "metadata": {"uid": uid, "name": uid, "namespace": "lab", "resourceVersion": str(version), **metadata}
    }


class Setting:
    """A cluster that writes to a FakeApi."""

    def __init__(self, api: Any, clock: Any) -> None:
        self.api = api
        self.gate = Gate(clock=clock)
        self.gate.open_until(math.inf)
        self.store: Store[Mapping[str, Any]] = Store(lambda _, raw: raw)
        self.cluster = KubeCluster(api, gate=self.gate, memory=self.store, instance="me")

    def do(self, action: Any) -> Mapping[str, Any] | None:
        return asyncio.run(self.cluster.carry_out(action))

    @property
    def known(self) -> set[str]:
        return {str(raw["metadata"]["uid"]) for raw in self.store.values()}


@pytest.fixture
def setting(api: Any, clock: Any) -> Setting:
    return Setting(api, clock)


def test_an_apply_is_a_forced_server_side_apply_with_one_field_manager(setting: Setting) -> None:
    setting.api.answers = [stored("uid-job")]
    assert setting.do(APPLY) == stored("uid-job")
    (request,) = setting.api.requests
    assert (request.verb, request.path) == ("apply", "/apis/batch/v1/namespaces/lab/jobs/job-1")
    assert request.query == {"fieldManager": "mlwright-operator", "force": "true"}
    assert request.body == APPLY.body


def test_what_was_applied_is_known_before_any_watch_says_so(setting: Setting) -> None:
    setting.api.answers = [stored("uid-job")]
    setting.do(APPLY)
    assert setting.known == {"uid-job"}


def test_a_status_is_written_over_the_version_and_the_object_that_was_read(setting: Setting) -> None:
    setting.api.answers = [stored("uid-rollout")]
    setting.do(STATUS)
    (request,) = setting.api.requests
    assert request.path == "/apis/mlwright.dev/v1alpha1/namespaces/lab/rollouts/rollout-1/status"
    assert request.body["metadata"] == {
        "name": "rollout-1",
        "namespace": "lab",
        "uid": "uid-rollout",
        "resourceVersion": "41",
    }
    assert request.body["status"] == {"attempt": 1}
    assert "spec" not in request.body


def test_a_status_of_what_is_gone_forgets_it_and_says_so(
    setting: Setting, failing: Callable[..., ApiFailure]
) -> None:
    setting.store.put(Kind.ROLLOUT, stored("uid-rollout"))
    setting.api.answers = [failing(404)]
    with pytest.raises(ApiFailure):
        setting.do(STATUS)
    assert setting.known == set()


def test_a_stale_status_is_a_conflict_for_the_planner(
    setting: Setting, failing: Callable[..., ApiFailure]
) -> None:
    setting.api.answers = [failing(409)]
    with pytest.raises(ApiFailure) as caught:
        setting.do(STATUS)
    assert caught.value.conflict


def test_a_deletion_names_the_one_object_that_is_meant(setting: Setting) -> None:
    setting.store.put(Kind.JOB, stored("uid-job"))
    setting.api.answers = [{"kind": "Status", "metadata": {}}]
    assert setting.do(Delete(JOB)) is None
    (request,) = setting.api.requests
    assert (request.verb, request.path) == ("delete", "/apis/batch/v1/namespaces/lab/jobs/job-1")
    assert request.body["preconditions"] == {"uid": "uid-job"}
    assert request.body["propagationPolicy"] == "Background"
    assert setting.known == set()


def test_what_is_deleted_but_still_there_is_not_forgotten(setting: Setting) -> None:
    """Something holds it with a finalizer."""
    setting.api.answers = [stored("uid-job", deletionTimestamp="2026-01-01T00:00:00Z")]
    setting.do(Delete(JOB))
    assert setting.known == {"uid-job"}


@pytest.mark.parametrize("code", [404, 409])
def test_a_deletion_of_what_is_gone_already_is_done(
    setting: Setting, failing: Callable[..., ApiFailure], code: int
) -> None:
    setting.store.put(Kind.JOB, stored("uid-job"))
    setting.api.answers = [failing(code)]
    setting.do(Delete(JOB))
    assert setting.known == set()


@pytest.mark.parametrize("code", [0, 403, 429, 500, 503])
def test_a_deletion_that_failed_is_not_taken_for_done(
    setting: Setting, failing: Callable[..., ApiFailure], code: int
) -> None:
    setting.store.put(Kind.JOB, stored("uid-job"))
    setting.api.answers = [failing(code)]
    with pytest.raises(ApiFailure):
        setting.do(Delete(JOB))
    assert setting.known == {"uid-job"}


def test_an_event_is_created_beside_its_object(setting: Setting) -> None:
    setting.api.answers = [{}]
    setting.do(EMIT)
    (request,) = setting.api.requests
    assert (request.verb, request.path) == ("create", "/apis/events.k8s.io/v1/namespaces/lab/events")
    assert request.body["regarding"]["uid"] == "uid-rollout"


@pytest.mark.parametrize("code", [404, 409])
def test_an_event_that_was_said_before_or_has_no_place_is_done(
    setting: Setting, failing: Callable[..., ApiFailure], code: int
) -> None:
    setting.api.answers = [failing(code)]
    setting.do(EMIT)
    assert len(setting.api.requests) == 1


@pytest.mark.parametrize("action", [APPLY, STATUS, Delete(JOB), EMIT])
def test_nothing_is_sent_when_this_process_may_not_write(setting: Setting, action: Any) -> None:
    setting.gate.shut()
    with pytest.raises(WritesClosed):
        setting.do(action)
    assert setting.api.requests == []


@pytest.mark.parametrize("action", [APPLY, STATUS, Delete(JOB), EMIT])
def test_a_write_may_not_take_longer_than_the_lease(setting: Setting, clock: Any, action: Any) -> None:
    setting.gate.open_until(clock.now + 3)
    setting.api.answers = [stored("uid-job")]
    setting.do(action)
    assert setting.api.requests[0].seconds == 3


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_words_are_one_event_and_others_another() -> None:
    first = event_body(EMIT, now=NOW, instance="me")
    later = event_body(EMIT, now=NOW.replace(hour=5), instance="another")
    other = event_body(Emit(ROLLOUT, "Normal", "Finished", "Error"), now=NOW, instance="me")
    assert first["metadata"]["name"] == later["metadata"]["name"]
    assert first["metadata"]["name"] != other["metadata"]["name"]


def test_an_event_fits_whatever_is_said() -> None:
    about = Ref(Kind.ROLLOUT, "lab", "x" * 199 + "." + "y" * 53, "u")
    body = event_body(Emit(about, "Warning", "R" * 500, "ä" * 5000), now=NOW, instance="i" * 500)
    assert len(body["metadata"]["name"]) <= 253
    assert ".." not in body["metadata"]["name"]
    assert len(body["note"].encode()) <= 1024
    assert len(body["reason"]) <= 128
    assert len(body["reportingInstance"]) <= 128
