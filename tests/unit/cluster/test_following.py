"""The watch: lost events, forgotten versions, dead connections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mlwright_api.rollout import Outcome
from mlwright_trainer.cluster.errors import ApiFailure

World = Any
Play = Callable[[Any], None]
LOST = ApiFailure("connection reset", status=0)


async def running(world: World) -> str:
    """One rollout, created and heard of."""
    (name,) = world.start("r")
    await world.until(lambda: name in world.api.objects)
    await world.quiet()
    return str(name)


def test_a_broken_watch_goes_on_from_the_last_version_without_a_new_list(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        world.api.end_watch(LOST)
        world.api.finish(name)
        await world.results(1)
        assert world.api.requests.count("list") == 1
        assert world.api.requests.count("watch") == 2

    play(scenario)


def test_a_forgotten_version_means_a_new_list(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        world.api.unheard = lambda _type, _live: True
        world.api.finish(name)
        world.api.forgotten = world.api.version + 1
        world.api.before["list"] = [ApiFailure("busy", status=429)]
        world.api.end_watch(LOST)
        await world.until(lambda: world.api.requests.count("list") == 3)
        world.api.forgotten = 0
        await world.results(1)

    play(scenario)


def test_a_410_in_the_middle_of_a_watch_means_a_new_list(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        world.api.unheard = lambda what, _live: what == "MODIFIED"
        world.api.finish(name)
        world.api.end_watch(ApiFailure("too old", status=410, reason="Expired"))
        await world.results(1)
        assert world.api.requests.count("list") == 2

    play(scenario)


def test_an_end_that_no_event_told_is_found_by_the_next_list(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        world.api.unheard = lambda _type, _live: True
        world.api.finish(name)
        await world.quiet()
        assert world.given == []
        world.api.end_watch()
        await world.results(1)

    play(scenario)


def test_a_deletion_that_no_event_told_is_found_by_the_next_list(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        world.api.unheard = lambda _type, _live: True
        world.api.drop(name)
        world.api.end_watch()
        (finished,) = await world.results(1)
        assert finished.status.outcome is Outcome.INFRASTRUCTURE_FAILED

    play(scenario)


def test_an_object_that_no_event_ever_told_of_is_missed_by_the_next_list(play: Play) -> None:
    """Created and deleted in the dark: the answer to its creation is all that was ever heard."""

    async def scenario(world: World) -> None:
        world.api.unheard = lambda _type, _live: True
        name = await running(world)
        world.api.drop(name)
        world.api.end_watch()
        await world.results(1)

    play(scenario)


def test_a_list_that_was_asked_for_before_a_creation_does_not_take_it_for_deleted(play: Play) -> None:
    async def scenario(world: World) -> None:
        await running(world)
        late = world.owner.object_name("late")
        world.api.then["list"] = lambda: world.start("late")
        world.api.end_watch()
        await world.until(lambda: late in world.api.objects)
        await world.quiet()
        assert world.given == []

    play(scenario)


def test_an_api_server_that_is_away_is_waited_for_ever_more_patiently_and_said_once(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        world.api.before["watch"] = [LOST] * 12
        world.api.end_watch(LOST)
        await world.until(lambda: world.api.before["watch"] == [])
        pauses = world.slept[-12:]
        assert max(pauses) <= 15
        assert pauses[-1] > 5 > 1 > pauses[0]
        assert [line for rollout, line in world.told if not rollout] == [
            "the API server does not answer as it should (connection reset); trying again"
        ]
        world.api.finish(name)
        await world.results(1)

    play(scenario)


def test_a_bookmark_moves_the_version_on(play: Play) -> None:
    async def scenario(world: World) -> None:
        name = await running(world)
        bookmark = {"metadata": {"resourceVersion": str(world.api.version + 50), "labels": {}}}
        bookmark["metadata"]["labels"] = {world.owner.label: world.owner.uid}
        world.api.version += 50
        world.api.history.append((world.api.version, "BOOKMARK", bookmark))
        world.api.end_watch(LOST)
        await world.quiet()
        world.api.forgotten = world.api.version
        world.api.end_watch(LOST)
        await world.quiet()
        world.api.finish(name)
        await world.results(1)
        assert world.api.requests.count("list") == 1

    play(scenario)
