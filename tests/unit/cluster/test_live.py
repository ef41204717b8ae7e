"""Rollouts from creation to result: whatever is killed, lost, doubled or taken away meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused, ClusterUnavailable
from mlwright_trainer.errors import InternalError

World = Any
Play = Callable[[Any], None]
LOST = ApiFailure("connection reset", status=0)
REFUSED = {"type": "Accepted", "status": "False", "reason": "LimitsAboveTask", "message": "memory 4Gi > 2Gi"}


def test_a_rollout_is_created_ends_and_is_deleted_when_its_result_is_safe(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.finish(name, scores={"Reward": 0.8})
        (finished,) = await world.results(1)
        assert (finished.rollout, finished.status.outcome) == ("r", Outcome.SCORED)
        assert finished.status.scores == {"Reward": 0.8}
        assert name in world.api.objects
        await world.live.release("r")
        assert world.api.objects == {}

    play(scenario)


def test_what_it_waits_for_is_told_once_each_time_it_changes(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        waiting = {
            "type": "Started",
            "status": "False",
            "reason": "ImagePullFailed",
            "message": "no such image",
        }
        for _ in range(3):
            world.api.say(name, conditions=[waiting])
            await world.quiet()
        world.api.say(name, conditions=[{**waiting, "status": "True", "reason": "Running", "message": ""}])
        await world.quiet()
        assert world.told == [("r", "ImagePullFailed: no such image"), ("r", "Running")]

    play(scenario)


def test_an_answer_lost_after_the_creation_makes_no_second_object(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.after["create"] = [LOST]
        (name,) = world.start("r")
        await world.until(lambda: "get" in world.api.requests)
        world.api.finish(name)
        await world.results(1)
        assert world.api.requests.count("create") == 2
        assert list(world.api.objects) == [name]

    play(scenario)


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_what_passes_is_tried_again_until_it_works(play: Play, status: int) -> None:
    async def scenario(world: World) -> None:
        world.api.before["create"] = [ApiFailure("later", status=status, retry_after=3.0)] * 5
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        assert world.api.requests.count("create") == 6
        assert world.slept.count(3.0) >= 4

    play(scenario)


def test_a_used_up_quota_is_waited_for_and_said(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.before["create"] = [
            ApiFailure("exceeded quota: rollouts", status=403, reason="Forbidden")
        ] * 3
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        assert world.told == [("", "waiting for quota: exceeded quota: rollouts")]

    play(scenario)


def test_a_refused_creation_says_what_where_and_what_to_do(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.before["create"] = [
            ApiFailure("rollouts is forbidden: User x", status=403, reason="Forbidden")
        ]
        world.start("r")
        await world.until(lambda: bool(world.given))
        (error,) = world.given
        assert isinstance(error, ClusterRefused)
        assert "namespace test: cannot create" in str(error)
        assert "User x; ask whoever runs the cluster" in str(error)

    play(scenario)


def test_a_process_killed_between_creation_and_commit_runs_nothing_twice(play: Play) -> None:
    """The first process creates and dies; the second asks for the same rollout and finds it as it stands by then."""

    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.kill()
        world.api.finish(name)
        second = type(world)(world.api)
        second.start("r")
        (finished,) = await second.results(1)
        assert finished.status.outcome is Outcome.SCORED
        assert [type for _, type, _ in world.api.history].count("ADDED") == 1

    play(scenario)


def test_a_process_killed_between_result_and_release_gets_the_same_result_again(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.finish(name, Outcome.ERROR, reason="NameError")
        before = (await world.results(1))[0]
        world.kill()
        second = type(world)(world.api)
        assert await second.live.adopt(["r"]) == ["r"]
        second.start("r")
        assert (await second.results(1))[0] == before
        await second.live.release("r")
        assert world.api.objects == {}

    play(scenario)


def test_what_nobody_asks_for_after_a_restart_is_deleted_and_nobody_elses(play: Play) -> None:
    async def scenario(world: World) -> None:
        names = world.start("kept", "committed")
        await world.until(lambda: len(world.api.objects) == 2)
        world.kill()
        kept = dict(world.api.objects[names[0]])
        other = {**kept, "metadata": {"name": "another-runs", "labels": {"mlwright.dev/run-uid": "other"}}}
        liar = {
            **kept,
            "metadata": {"name": "only-labelled-so", "labels": {"mlwright.dev/run-uid": world.owner.uid}},
            "spec": {**kept["spec"], "runRef": {"name": "other-run", "uid": "other"}},
        }
        world.api.put(other)
        world.api.put(liar)
        second = type(world)(world.api)
        assert await second.live.adopt(["kept"]) == ["kept"]
        assert sorted(world.api.objects) == sorted([names[0], "another-runs", "only-labelled-so"])

    play(scenario)


@pytest.mark.parametrize("field", ["files", "seed", "runRef"])
def test_a_name_that_another_object_has_is_a_clear_error_and_that_object_stays(
    play: Play, field: str
) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.kill()
        world.api.objects[name]["spec"][field] = {"name": "churn-run", "uid": "an-earlier-run"}
        second = type(world)(world.api)
        second.start("r")
        await second.until(lambda: bool(second.given))
        assert isinstance(second.given[0], ClusterRefused)
        assert f"exists already and is another one (spec.{field} differ)" in str(second.given[0])
        second.live.cancel_all()
        await second.live.release_all()
        assert name in world.api.objects

    play(scenario)


def test_an_object_that_is_still_being_deleted_is_waited_for(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.kill()
        world.api.objects[name]["metadata"]["deletionTimestamp"] = "2027-01-15T08:00:09Z"
        second = type(world)(world.api)
        second.start("r")
        await second.until(lambda: second.api.requests.count("create") > 4)
        world.api.drop(name)
        await second.until(lambda: name in world.api.objects)
        assert "deletionTimestamp" not in world.api.objects[name]["metadata"]

    play(scenario)


def test_an_object_deleted_by_hand_is_a_failure_of_the_infrastructure_that_says_so(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        world.api.drop(name)
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.INFRASTRUCTURE_FAILED
        assert "deleted by somebody else" in finished.status.reason
        await world.live.release("r")
        assert "delete" not in world.api.requests

    play(scenario)


def test_an_object_that_ended_and_went_at_once_is_what_it_was(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        world.api.unheard = lambda what, _live: what == "MODIFIED"
        world.api.finish(name, Outcome.TIMEOUT)
        world.api.drop(name)
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.TIMEOUT

    play(scenario)


def test_a_later_object_of_the_same_name_is_not_taken_for_ours(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        body = dict(world.api.objects[name])
        world.api.unheard = lambda what, _live: what == "DELETED"
        world.api.drop(name)
        world.api.put(body)
        world.api.finish(name)
        await world.quiet()
        assert world.given == []
        world.api.end_watch()  # and so to a new list, in which ours is missing
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.INFRASTRUCTURE_FAILED

    play(scenario)


def test_the_deletion_of_an_earlier_object_of_the_same_name_is_not_taken_for_ours(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        world.live.lost(name, "uid-of-an-earlier-one", None)
        world.api.finish(name)
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.SCORED

    play(scenario)


def test_what_is_told_before_the_creation_is_answered_is_not_lost(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = world.owner.object_name("r")
        world.api.on_create = lambda created: world.api.finish(created)
        world.api.after["create"] = [LOST]
        world.start("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.SCORED
        assert name in world.api.objects

    play(scenario)


def test_doubled_events_give_one_result(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.doubled = True
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.finish(name)
        await world.results(1)
        world.api.say(name, reason="touched")
        await world.quiet()
        assert len(world.given) == 1

    play(scenario)


def test_a_cancelled_rollout_is_deleted_and_collected_as_cancelled(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        world.live.cancel("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.CANCELLED
        assert world.api.objects == {}

    play(scenario)


def test_a_cancellation_that_comes_too_late_gives_what_the_rollout_was(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.unheard = lambda what, _live: what == "MODIFIED"
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        world.api.finish(name)
        world.live.cancel("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.SCORED
        assert name in world.api.objects
        await world.live.release("r")
        assert world.api.objects == {}

    play(scenario)


def test_a_rollout_that_ends_while_it_is_being_cancelled_is_what_it_was(play: Play) -> None:
    """It ends after it was looked at and before it is deleted: the deletion is of another state, and refused."""

    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        await world.quiet()
        world.api.then["get"] = lambda: world.api.finish(name, Outcome.ERROR)
        world.live.cancel("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.ERROR
        assert name in world.api.objects

    play(scenario)


def test_a_rollout_cancelled_before_its_creation_succeeds_leaves_no_object(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.after["create"] = [LOST]
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.live.cancel("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.CANCELLED
        assert world.api.objects == {}

    play(scenario)


def test_a_rollout_cancelled_before_its_creation_succeeds_leaves_others_alone(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.before["create"] = [LOST]
        name = world.owner.object_name("r")
        world.start("r", script="print('ours')")
        await world.until(lambda: world.api.before["create"] == [])
        world.api.put({"metadata": {"name": name, "labels": {}}, "spec": {}})
        world.live.cancel("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.CANCELLED
        assert name in world.api.objects

    play(scenario)


def test_a_conflict_that_is_none_of_the_name_is_tried_again(play: Play) -> None:
    async def scenario(world: World) -> None:
        conflict = "Operation cannot be fulfilled on resourcequotas: the object has been modified"
        world.api.before["create"] = [ApiFailure(conflict, status=409, reason="Conflict")]
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        assert world.given == []
        assert "get" not in world.api.requests

    play(scenario)


def test_a_rollout_cancelled_at_once_asks_the_server_for_nothing(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.start("r")
        world.live.cancel("r")
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.CANCELLED
        assert {"create", "get", "delete"}.isdisjoint(world.api.requests)

    play(scenario)


def test_a_refusal_that_passes_is_forgiven(play: Play) -> None:
    """An operator that has not seen the task yet says TaskNotFound for a moment."""

    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.say(name, conditions=[{**REFUSED, "reason": "TaskNotFound"}])
        await world.quiet()
        world.api.say(name, conditions=[{**REFUSED, "status": "True", "reason": "Accepted"}])
        await world.quiet()
        world.grace.set()
        await world.quiet()
        assert world.given == []

    play(scenario)


def test_a_refusal_that_lasts_is_an_error_of_the_user(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.say(name, conditions=[REFUSED])
        await world.quiet()
        assert world.given == []
        world.grace.set()
        await world.until(lambda: bool(world.given))
        assert "not accepted: LimitsAboveTask: memory 4Gi > 2Gi" in str(world.given[0])
        assert isinstance(world.given[0], ClusterRefused)
        await world.live.release_all()
        assert world.api.objects == {}

    play(scenario)


def test_a_status_that_is_not_understood_is_our_fault_and_said(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.say(name, outcome="Brilliant")
        await world.until(lambda: bool(world.given))
        assert isinstance(world.given[0], ClusterUnavailable)
        assert "status.outcome" in str(world.given[0])

    play(scenario)


def test_a_watch_that_is_forbidden_is_said_to_whoever_collects(play: Play) -> None:
    async def scenario(world: World) -> None:
        world.api.before["list"] = [ApiFailure("rollouts is forbidden", status=403)]
        await world.until(lambda: bool(world.given))
        assert "cannot watch Rollouts: rollouts is forbidden" in str(world.given[0])

    play(scenario)


def test_a_watch_that_speaks_nonsense_is_said_to_whoever_collects(play: Play) -> None:
    async def scenario(world: World) -> None:
        await world.until(lambda: "watch" in world.api.requests)
        world.api.history.append((world.api.version + 1, "ADDED", {"metadata": {"labels": {}}}))
        world.api.history[-1][2]["metadata"]["labels"][world.owner.label] = world.owner.uid
        world.api.end_watch()
        await world.until(lambda: bool(world.given))
        assert isinstance(world.given[0], InternalError)

    play(scenario)


def test_a_deletion_that_is_forbidden_is_said(play: Play) -> None:
    async def scenario(world: World) -> None:
        (name,) = world.start("r")
        await world.until(lambda: name in world.api.objects)
        world.api.finish(name)
        await world.results(1)
        world.api.before["delete"] = [ApiFailure("may not delete", status=403)]
        await world.live.release("r")
        assert f"cannot delete Rollout {name}: may not delete" in str(world.given[1])

    play(scenario)


def test_a_thousand_rollouts_go_through_one_watch(play: Play) -> None:
    async def scenario(world: World) -> None:
        names = world.start(*(f"train-{number:05d}" for number in range(1000)))
        await world.until(lambda: len(world.api.objects) == 1000, steps=100_000)
        for name in names:
            world.api.finish(name)
        await world.until(lambda: len(world.given) == 1000, steps=100_000)
        await world.live.release_all()
        assert world.api.objects == {}
        assert world.api.requests.count("watch") == 1
        assert world.api.requests.count("create") == world.api.requests.count("delete") == 1000

    play(scenario)
