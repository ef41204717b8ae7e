"""The lease: one writes at a time, whatever is slow, lost or killed; handed over on a clean stop."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from mlwright_operator.edge.election import Election, LeaseTimes, lease_body
from mlwright_operator.edge.gate import Gate
from mlwright_operator.errors import ApiFailure, LeaseLost

TIMES = LeaseTimes(duration=15, writing=10, retry=2, call=5)


class Lease:
    """The one object, with optimistic locking; `down`: no answer; `deaf`: done, but no answer."""

    def __init__(self) -> None:
        self.raw: dict[str, Any] | None = None
        self.version = 0
        self.down = False
        self.deaf = False

    def respond(self, request: Any) -> Any:
        if self.down:
            return ApiFailure("away", status=0)
        answer = self.do(request)
        return ApiFailure("no answer in time", status=0) if self.deaf else answer

    def do(self, request: Any) -> Any:
        if request.verb == "create":
            return ApiFailure("exists", status=409) if self.raw else self.store(request.body)
        if self.raw is None:
            return ApiFailure("not found", status=404)
        if request.verb == "get":
            return self.raw
        if request.body["metadata"]["resourceVersion"] != self.raw["metadata"]["resourceVersion"]:
            return ApiFailure("conflict", status=409)
        return self.store(request.body)

    def store(self, body: Any) -> dict[str, Any]:
        self.version += 1
        metadata = {**body["metadata"], "uid": "lease", "resourceVersion": str(self.version)}
        self.raw = {**body, "metadata": metadata}
        return self.raw

    @property
    def holder(self) -> str:
        assert self.raw is not None
        return str(self.raw["spec"]["holderIdentity"])


class World:
    """Several candidates, one lease, one clock."""

    def __init__(self, api: Any, clock: Any) -> None:
        self.lease = Lease()
        self.clock = clock
        self.api = api
        api.respond = self.lease.respond

    def candidate(self, name: str) -> tuple[Election, Gate]:
        gate = Gate(clock=self.clock)
        election = Election(
            self.api,
            gate=gate,
            namespace="system",
            name="mlwright-operator",
            identity=name,
            times=TIMES,
            clock=self.clock,
            sleep=self.clock.sleep,
        )
        return election, gate


@pytest.fixture
def world(api: Any, clock: Any) -> World:
    return World(api, clock)


def turns(*elections: Election) -> None:
    async def each() -> None:
        for election in elections:
            await election.turn()

    asyncio.run(each())


def test_the_first_takes_a_lease_that_does_not_exist(world: World) -> None:
    first, gate = world.candidate("first")
    turns(first)
    assert gate.open
    assert first.leading.is_set()
    assert world.lease.holder == "first"


def test_the_second_waits_as_long_as_the_first_renews(world: World) -> None:
    (first, gate), (second, other) = world.candidate("first"), world.candidate("second")
    for _ in range(30):
        turns(first, second)
        world.clock.now += TIMES.retry
    assert gate.remaining > 0
    assert not other.open
    assert world.lease.holder == "first"


def test_a_dead_leaders_lease_is_taken_after_its_duration(world: World) -> None:
    (first, _), (second, gate) = world.candidate("first"), world.candidate("second")
    turns(first, second)
    world.clock.now += TIMES.duration - 0.1
    turns(second)
    assert not gate.open
    world.clock.now += 0.1
    turns(second)
    assert gate.open
    assert world.lease.raw is not None
    assert world.lease.raw["spec"]["leaseTransitions"] == 1


def test_a_leader_without_an_answer_stops_writing_before_another_may_begin(world: World) -> None:
    (first, gate), (second, other) = world.candidate("first"), world.candidate("second")
    turns(first, second)
    began = world.clock.now
    while not other.open:
        world.clock.now += 0.5
        turns(second)
        if other.open:
            break
        assert world.clock.now - began <= TIMES.duration
    assert not gate.open
    assert gate.remaining <= TIMES.writing - TIMES.duration


def test_the_deadline_counts_from_before_the_renewal_was_sent(world: World) -> None:
    first, gate = world.candidate("first")
    answer = world.lease.respond

    def slow(request: Any) -> Any:
        world.clock.now += 4
        return answer(request)

    world.api.respond = slow
    turns(first)
    assert gate.remaining == TIMES.writing - 4


def test_an_api_server_that_is_away_closes_the_gate_and_opens_it_again(world: World) -> None:
    first, gate = world.candidate("first")
    turns(first)
    world.lease.down = True
    for _ in range(30):
        with pytest.raises(ApiFailure):
            turns(first)
        world.clock.now += TIMES.retry
    assert not gate.open
    world.lease.down = False
    turns(first)
    assert gate.open


def test_whoever_finds_another_in_its_place_has_lost(world: World) -> None:
    (first, gate), (second, other) = world.candidate("first"), world.candidate("second")
    turns(first, second)
    world.clock.now += TIMES.duration
    turns(second)
    assert not gate.open
    turns(first)
    with pytest.raises(LeaseLost, match="second"):
        turns(first)
    assert not gate.open
    assert other.open


def test_a_lease_that_was_deleted_under_the_leader_is_lost(world: World) -> None:
    first, _ = world.candidate("first")
    turns(first)
    world.lease.raw = None
    turns(first)
    with pytest.raises(LeaseLost):
        turns(first)


def test_a_renewal_whose_answer_was_lost_does_not_count_and_does_no_harm(world: World) -> None:
    first, gate = world.candidate("first")
    turns(first)
    before = gate.remaining
    world.lease.deaf = True
    with pytest.raises(ApiFailure):
        turns(first)
    assert gate.remaining == before
    world.lease.deaf = False
    turns(first, first)
    assert gate.remaining == TIMES.writing
    assert world.lease.holder == "first"


def test_of_two_who_take_at_once_one_leads(world: World) -> None:
    (first, gate), (second, other) = world.candidate("first"), world.candidate("second")

    async def both() -> None:
        await asyncio.gather(first.turn(), second.turn())

    asyncio.run(both())
    assert [gate.open, other.open].count(True) == 1


def test_a_released_lease_is_taken_at_once(world: World) -> None:
    (first, _), (second, gate) = world.candidate("first"), world.candidate("second")
    turns(first, second)
    asyncio.run(first.release())
    turns(second)
    assert gate.open
    assert world.lease.holder == "second"


def test_only_the_holder_releases(world: World) -> None:
    (first, _), (second, _) = world.candidate("first"), world.candidate("second")
    turns(first, second)
    asyncio.run(second.release())
    assert world.lease.holder == "first"


def test_a_release_that_fails_is_no_failure(world: World) -> None:
    first, _ = world.candidate("first")
    turns(first)
    world.lease.down = True
    asyncio.run(first.release())
    assert world.lease.holder == "first"


def test_every_call_has_a_short_time_limit(world: World) -> None:
    first, _ = world.candidate("first")
    turns(first, first)
    asyncio.run(first.release())
    assert {request.seconds for request in world.api.requests} == {TIMES.call}


def test_a_renewal_is_one_request(world: World) -> None:
    first, _ = world.candidate("first")
    turns(first)
    before = len(world.api.requests)
    turns(first)
    assert [request.verb for request in world.api.requests[before:]] == ["update"]


def test_running_retries_through_failures(world: World) -> None:
    first, gate = world.candidate("first")
    world.lease.down = True

    async def scenario() -> None:
        task = asyncio.create_task(first.run())
        while len(world.clock.slept) < 3:
            await asyncio.sleep(0)
        world.lease.down = False
        await first.leading.wait()
        task.cancel()

    asyncio.run(scenario())
    assert gate.open
    assert set(world.clock.slept) == {TIMES.retry}


def test_the_times_hold_together() -> None:
    times = LeaseTimes()
    assert times.call + times.retry < times.writing < times.duration


def test_a_renewal_keeps_when_it_was_acquired(world: World, clock: Any) -> None:
    first, _ = world.candidate("first")
    turns(first)
    assert world.lease.raw is not None
    acquired = world.lease.raw["spec"]["acquireTime"]
    turns(first)
    assert world.lease.raw["spec"]["acquireTime"] == acquired
    assert world.lease.raw["spec"]["leaseTransitions"] == 0


def test_a_released_lease_says_so(world: World) -> None:
    body = lease_body(None, name="x", holder="", times=TIMES, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert body["spec"]["leaseDurationSeconds"] == 1
    assert body["spec"]["renewTime"] == "2026-01-01T00:00:00.000000Z"
