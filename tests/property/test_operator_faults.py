"""The operator's fault table: whatever is killed, lost, refused or done by hand, it ends where it would have ended.

At every moment of every scenario: no sandbox without its policy, never more sandboxes than allowed, never two results.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlwright_operator.actions import Action, Apply, Delete, Emit, Kind, WriteStatus
from mlwright_operator.errors import ApiFailure, WritesClosed
from operator_world.controllers import DEADLINE, DRAINED, FAILING
from operator_world.objects import NAMESPACE, config, rollout, run, task
from operator_world.operators import Fault, Killed, Lossy, Operator
from operator_world.world import World

Scenario = Callable[[], World]


def burst() -> World:
    """More scripts than slots, of two runs and of nobody."""
    world = World(config(sandboxes=3, sandboxes_per_run=2))
    world.api.create(task())
    for number in range(3):
        world.api.create(rollout(f"one-{number}", run_uid="one"))
        world.api.create(rollout(f"two-{number}", run_uid="two"))
    world.api.create(rollout("alone"))
    world.controllers.fates["two-1"] = [FAILING]
    return world


def retry() -> World:
    """Drained once, drained for ever, out of time once."""
    world = World(config(sandboxes=2))
    world.api.create(task())
    world.controllers.fates |= {
        "once": [DRAINED],
        "ever": [DRAINED] * 9,
        "late": [DEADLINE],
    }
    for name in ("once", "ever", "late"):
        world.api.create(rollout(name, retries=1))
    return world


def deletion() -> World:
    """A Rollout is deleted while it waits, one while it runs, one when it has ended; a name is used again."""
    world = World(config(sandboxes=2))
    world.api.create(task())
    for name in ("running", "ended", "waiting", "kept"):
        world.api.create(rollout(name))
    world.at(2, lambda world: world.api.delete(Kind.ROLLOUT, "running"))
    world.at(3, lambda world: world.api.delete(Kind.ROLLOUT, "waiting"))
    world.at(9, lambda world: world.api.delete(Kind.ROLLOUT, "ended"))
    world.at(10, lambda world: world.make(rollout("running")))
    return world


def checking() -> World:
    """The task has to be checked first, and a script comes before that."""
    world = World(config(sandboxes=2))
    world.api.create(rollout("early"))
    world.at(2, lambda world: world.make(task(ready=False)))
    world.controllers.fates["digits"] = [DRAINED]
    return world


SCENARIOS: dict[str, Scenario] = {each.__name__: each for each in (burst, retry, deletion, checking)}


Ends = dict[str, tuple[str | None, int]]
"""Outcome and attempt, by name of the Rollout."""


@cache
def undisturbed(name: str) -> tuple[Ends, int]:
    """What a scenario comes to when nothing goes wrong, and the writes that it takes."""
    world = SCENARIOS[name]()
    operator = world.settle(Operator(world.api, world.config))
    world.assert_sound(operator)
    return ends(world), operator.writes


def outcomes(expected: Ends) -> dict[str, str | None]:
    return {name: outcome for name, (outcome, _) in expected.items()}


def ends(world: World) -> Ends:
    attempts = world.attempts()
    return {name: (outcome, attempts[name]) for name, outcome in world.outcomes().items()}


WRITES = {name: undisturbed(name)[1] for name in SCENARIOS}


@pytest.mark.parametrize("name", SCENARIOS)
def test_undisturbed_everything_ends_as_it_must(name: str) -> None:
    found = outcomes(undisturbed(name)[0])
    expected = {
        "burst": {name: "Error" if name == "two-1" else "Scored" for name in found},
        "retry": {"once": "Scored", "ever": "InfrastructureFailed", "late": "Scored"},
        "deletion": {"kept": "Scored", "running": "Scored"},
        "checking": {"early": "Scored"},
    }
    assert found == expected[name]


@pytest.mark.parametrize(
    ("name", "count"), [(name, k) for name in SCENARIOS for k in range(1, WRITES[name] + 1)]
)
def test_an_operator_killed_after_any_write_is_taken_over_from(name: str, count: int) -> None:
    """The write is made, its answer is never heard; a new process begins with a list of what there is."""
    expected, _ = undisturbed(name)
    world = SCENARIOS[name]()
    operator = world.settle(Operator(world.api, world.config, dies_after=count))
    world.assert_sound(operator)
    assert ends(world) == expected


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_operator_that_is_killed_after_every_few_writes_gets_there_all_the_same(name: str) -> None:
    expected, _ = undisturbed(name)
    world = SCENARIOS[name]()
    for life in range(1, 60):
        operator = Operator(world.api, world.config, dies_after=1 + life % 3)
        try:
            for _ in range(3):
                operator.hear()
                operator.one_pass()
                world.tick()
        except Killed:
            world.tick()
    operator = world.settle(Operator(world.api, world.config))
    world.assert_sound(operator)
    assert ends(world) == expected


# What the API server answers.

FAILURES = {
    "conflict": ApiFailure("the object has been modified", status=409, reason="Conflict"),
    "invalid": ApiFailure("admission webhook denied it", status=422, reason="Invalid"),
    "too many requests": ApiFailure("slow down", status=429, reason="TooManyRequests", retry_after=2),
    "server error": ApiFailure("etcdserver: request timed out", status=500, reason="InternalError"),
    "reset": ApiFailure("connection reset by peer", status=0),
}


def failing_at(number: int, failure: ApiFailure) -> Fault:
    def fault(action: Action, now: int) -> None:
        if now == number:
            raise failure

    return fault


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_call_that_fails_is_made_again_later(name: str, failure: ApiFailure) -> None:
    expected, _ = undisturbed(name)
    for number in range(WRITES[name]):
        world = SCENARIOS[name]()
        operator = world.settle(Operator(world.api, world.config, fault=failing_at(number, failure)))
        world.assert_sound(operator)
        assert ends(world) == expected


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_write_that_was_made_although_its_answer_was_an_error_is_not_made_twice(name: str) -> None:
    """A reset comes after the API server has done what it was asked."""
    expected, _ = undisturbed(name)
    for number in range(WRITES[name]):
        world = SCENARIOS[name]()

        def fault(action: Action, now: int, number: int = number, world: World = world) -> None:
            if now == number:
                world.api.carry_out(action)
                raise ApiFailure("connection reset by peer", status=0)

        operator = world.settle(Operator(world.api, world.config, fault=fault))
        world.assert_sound(operator)
        assert ends(world) == expected


def test_an_api_server_that_is_away_for_a_minute_is_waited_for() -> None:
    world = burst()
    gone_until = world.api.now + timedelta(seconds=60)

    def away(action: Action, number: int) -> None:
        if number > 5 and world.api.now < gone_until:
            raise ApiFailure("connection refused", status=0)

    operator = world.settle(Operator(world.api, world.config, fault=away))
    world.assert_sound(operator)
    assert set(world.outcomes().values()) == {"Scored", "Error"}
    assert operator.writes < 400, "it hammers on an API server that does not answer"


def test_a_process_that_may_not_write_any_more_ends_its_pass_and_says_so() -> None:
    world = burst()

    def closed(action: Action, number: int) -> None:
        if number >= 2:
            raise WritesClosed("the lease is not held")

    operator = Operator(world.api, world.config, fault=closed)
    with pytest.raises(WritesClosed):
        operator.one_pass()
    assert world.api.get(Kind.NETWORK_POLICY, "mlwright-sandbox") is not None
    assert len(world.api.listed(Kind.JOB)) == 1


# What the watches say.


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    name=st.sampled_from(sorted(SCENARIOS)),
    lose=st.sampled_from([0.0, 0.3, 0.9]),
    double=st.sampled_from([0.0, 0.5]),
    reorder=st.sampled_from([0.0, 0.5]),
)
def test_events_that_are_lost_doubled_or_out_of_order_change_nothing_in_the_end(
    seed: int, name: str, lose: float, double: float, reorder: float
) -> None:
    expected, _ = undisturbed(name)
    world = SCENARIOS[name]()
    watch = Lossy(random.Random(seed), lose=lose, double=double, reorder=reorder)
    operator = world.settle(Operator(world.api, world.config, watch=watch), resync_every=10)
    operator.resync()
    world.assert_sound(operator)
    assert world.outcomes() == outcomes(expected)


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("deaf_from", range(0, 12, 2))
def test_a_stale_operator_beside_the_leader_does_no_lasting_harm(name: str, deaf_from: int) -> None:
    """It hears nothing from some moment on, holds itself to be the leader, and writes what it thinks is needed."""
    expected, _ = undisturbed(name)
    world = SCENARIOS[name]()
    world.strict = False
    stale, leader = Operator(world.api, world.config), Operator(world.api, world.config)
    for second in range(30):
        if second <= deaf_from:
            stale.hear()
        leader.hear()
        stale.one_pass()
        leader.one_pass()
        world.tick()
    leader.resync()
    leader = world.settle(leader)
    world.assert_sound(leader)
    assert world.outcomes() == outcomes(expected)


@settings(max_examples=40)
@given(
    jumps=st.lists(st.integers(-100_000, 100_000), min_size=1, max_size=4),
    name=st.sampled_from(sorted(SCENARIOS)),
)
def test_a_clock_that_jumps_does_not_change_what_becomes_of_anything(jumps: list[int], name: str) -> None:
    expected, _ = undisturbed(name)
    world = SCENARIOS[name]()
    # A jump past the time to live of what has ended would delete it, rightly.
    world.config = world.config.model_copy(update={"ttl_seconds": 10**7})
    operator = Operator(world.api, world.config)
    for jump in jumps:
        operator.clock_error = timedelta(seconds=jump)
        for _ in range(3):
            operator.hear()
            operator.one_pass()
            world.tick()
    operator.clock_error = timedelta(0)
    operator = world.settle(operator)
    world.assert_sound(operator)
    assert ends(world) == expected


# What people do.


@pytest.mark.parametrize("second", range(1, 8))
@pytest.mark.parametrize("kind", [Kind.JOB, Kind.POD])
def test_a_child_that_is_deleted_by_hand_is_a_failure_of_the_infrastructure(kind: Kind, second: int) -> None:
    world = World(config(sandboxes=2))
    world.api.create(task())
    world.api.create(rollout("hit", retries=1))

    def delete_all(world: World) -> None:
        for raw in world.api.listed(kind):
            world.api.delete(kind, raw["metadata"]["name"])

    world.at(second, delete_all)
    operator = world.settle(Operator(world.api, world.config))
    world.assert_sound(operator)
    assert world.outcomes() == {"hit": "Scored"}
    assert world.attempts()["hit"] <= 2


def test_a_job_that_is_always_deleted_by_hand_uses_up_the_attempts() -> None:
    world = World(config())
    world.api.create(task())
    world.api.create(rollout("hit", retries=2))

    def delete_all(world: World) -> None:
        for raw in world.api.listed(Kind.JOB):
            world.api.delete(Kind.JOB, raw["metadata"]["name"])

    for second in range(1, 40):
        world.at(second, delete_all)
    operator = world.settle(Operator(world.api, world.config))
    world.assert_sound(operator)
    assert world.outcomes() == {"hit": "InfrastructureFailed"}
    status = world.api.get(Kind.ROLLOUT, "hit")
    assert status is not None
    assert status["status"]["reason"].startswith("JobDeleted: the Job of attempt 3")


@pytest.mark.parametrize("second", range(1, 8))
def test_a_name_that_is_used_again_is_another_rollout(second: int) -> None:
    """What ran for the old one neither counts for the new one nor stays."""
    world = World(config(sandboxes=1))
    world.api.create(task())
    world.api.create(rollout("same"))
    world.controllers.fates["same"] = [FAILING]

    def replace(world: World) -> None:
        world.api.delete(Kind.ROLLOUT, "same")
        world.controllers.fates["same"] = []
        world.api.create(rollout("same"))

    world.at(second, replace)
    operator = world.settle(Operator(world.api, world.config))
    world.assert_sound(operator)
    assert world.outcomes() == {"same": "Scored"}


@pytest.mark.parametrize("quota", [0, 1, 2])
def test_a_quota_is_a_clear_condition_and_not_a_storm_of_requests(quota: int) -> None:
    world = World(config())
    world.api.quotas[NAMESPACE] = quota
    world.api.create(task())
    for number in range(5):
        world.api.create(rollout(f"r{number}"))
    operator = Operator(world.api, world.config)
    for _ in range(3):
        operator.hear()
        operator.one_pass()
    reasons = [started(raw) for raw in world.api.listed(Kind.ROLLOUT)]
    assert reasons.count("QuotaExceeded") == 5 - quota
    for _ in range(60):
        operator.hear()
        operator.one_pass()
        world.tick()
    if quota == 0:
        assert operator.writes < 150, "refused requests are repeated too often"
    world.api.quotas.clear()
    operator = world.settle(operator)
    world.assert_sound(operator)
    assert set(world.outcomes().values()) == {"Scored"}


def started(raw: dict[str, object]) -> str | None:
    status = raw.get("status")
    assert isinstance(status, dict)
    return next((each["reason"] for each in status["conditions"] if each["type"] == "Started"), None)


def test_in_a_namespace_that_is_going_away_nothing_is_made_and_it_does_go_away() -> None:
    world = World(config(sandboxes=2))
    world.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    world.api.create(task())
    for number in range(5):
        world.api.create(rollout(f"r{number}"))

    def go(world: World) -> None:
        namespace = world.api.get(Kind.NAMESPACE, NAMESPACE)
        assert namespace is not None
        world.api.terminate(namespace)

    world.at(2, go)
    operator = world.settle(Operator(world.api, world.config))
    assert world.violations == []
    assert world.api.objects == {}
    assert operator.one_pass().writes == 0


def test_a_namespace_of_whose_end_the_operator_has_not_heard_is_a_condition() -> None:
    """An operator that may not watch namespaces learns of it from the refusal."""
    world = World(config())
    namespace = world.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    world.api.create(task())
    world.api.create(rollout("late"))
    operator = Operator(world.api, world.config)
    there = world.api.get(Kind.NAMESPACE, NAMESPACE)
    assert there is not None
    world.api.terminate(there)
    for _ in range(3):
        operator.one_pass()
    late = world.api.get(Kind.ROLLOUT, "late")
    assert late is not None
    assert started(late) == "NamespaceTerminating"
    assert namespace["metadata"]["name"] == NAMESPACE


@pytest.mark.parametrize("kind", [Apply, WriteStatus, Delete, Emit])
def test_rights_that_are_missing_are_waited_for(kind: type[Action]) -> None:
    """Until somebody grants them."""
    world = burst()
    until = world.api.now + timedelta(seconds=40)

    def forbidden(action: Action, number: int) -> None:
        if isinstance(action, kind) and world.api.now < until:
            raise ApiFailure("forbidden: User cannot do that", status=403, reason="Forbidden")

    operator = world.settle(Operator(world.api, world.config, fault=forbidden))
    world.assert_sound(operator)
    assert None not in world.outcomes().values()


def test_a_policy_that_is_refused_keeps_every_sandbox_from_being_made() -> None:
    world = burst()
    until = world.api.now + timedelta(seconds=30)

    def forbidden(action: Action, number: int) -> None:
        if isinstance(action, Apply) and action.kind is Kind.NETWORK_POLICY and world.api.now < until:
            raise ApiFailure("forbidden", status=403, reason="Forbidden")

    operator = Operator(world.api, world.config, fault=forbidden)
    for _ in range(20):
        operator.hear()
        operator.one_pass()
        world.tick()
    assert world.api.listed(Kind.JOB) == []
    assert {started(raw) for raw in world.api.listed(Kind.ROLLOUT)} == {"Forbidden"}
    operator = world.settle(operator)
    world.assert_sound(operator)
    assert None not in world.outcomes().values()


def test_while_a_run_is_suspended_nothing_of_it_begins_and_afterwards_everything_does() -> None:
    world = World(config())
    world.api.create(task())
    world.api.create(run("run", "one", suspend=True))
    world.api.create(rollout("waits", run_uid="one"))
    operator = world.settle(Operator(world.api, world.config))
    world.assert_sound(operator)
    assert world.outcomes() == {"waits": None}
    waiting = world.api.get(Kind.ROLLOUT, "waits")
    assert waiting is not None
    assert started(waiting) == "Suspended"
    there = world.api.get(Kind.TRAINING_RUN, "run")
    assert there is not None
    there["spec"]["suspend"] = False
    world.api.update(there)
    operator = world.settle(operator)
    world.assert_sound(operator)
    assert world.outcomes() == {"waits": "Scored"}
