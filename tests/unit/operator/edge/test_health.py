"""Probes say what is so: ready only while lists and passes succeed, alive unless one hangs."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_operator.edge.health import Health


@pytest.fixture
def health(clock: Any) -> Health:
    return Health(resync_seconds=60, clock=clock)


def worked(health: Health) -> Health:
    health.listed()
    health.began()
    health.passed()
    return health


def test_nothing_is_ready_before_the_cluster_was_listed(health: Health) -> None:
    assert not health.ready(leading=True).ok
    assert "listed" in health.ready(leading=True).why


def test_a_leader_is_ready_after_its_first_pass_and_a_standby_before(health: Health) -> None:
    health.listed()
    assert health.ready(leading=False).ok
    assert not health.ready(leading=True).ok
    worked(health)
    assert health.ready(leading=True).ok


@pytest.mark.parametrize("what", ["list", "pass"])
def test_a_failure_is_not_ready_until_the_same_succeeds(health: Health, what: str) -> None:
    worked(health)
    health.failed(what, "the API server is away")
    assert not health.ready(leading=True).ok
    assert "away" in health.ready(leading=True).why
    worked(health)
    assert health.ready(leading=True).ok


def test_a_good_list_does_not_make_up_for_a_bad_pass(health: Health) -> None:
    worked(health)
    health.failed("pass", "a bug")
    health.listed()
    assert not health.ready(leading=True).ok


@pytest.mark.parametrize(
    ("code", "ready"), [(0, False), (500, False), (503, False), (200, True), (409, True), (429, True)]
)
def test_an_api_server_without_an_answer_is_not_ready(health: Health, code: int, ready: bool) -> None:
    worked(health)
    health.answered(code)
    assert health.ready(leading=True).ok is ready


def test_the_next_answer_makes_it_ready_again(health: Health) -> None:
    worked(health)
    health.answered(0)
    health.answered(200)
    assert health.ready(leading=True).ok


def test_an_old_success_is_none(health: Health, clock: Any) -> None:
    worked(health)
    clock.now += 60
    assert health.ready(leading=True).ok
    clock.now += 600
    assert not health.ready(leading=True).ok
    assert not health.ready(leading=False).ok


def test_a_pass_that_hangs_is_not_alive(health: Health, clock: Any) -> None:
    health.began()
    assert health.alive().ok
    clock.now += 600
    assert not health.alive().ok
    health.passed()
    assert health.alive().ok


def test_failing_is_no_reason_to_be_restarted(health: Health, clock: Any) -> None:
    health.began()
    health.failed("pass", "the API server is away")
    clock.now += 6000
    assert health.alive().ok


def test_a_pass_that_ended_because_it_may_not_write_is_no_trouble(health: Health, clock: Any) -> None:
    worked(health)
    health.began()
    health.stood_by()
    clock.now += 10
    assert health.alive().ok
    assert health.ready(leading=False).ok
