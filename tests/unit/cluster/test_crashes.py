"""A collector that is killed with any of its requests, before or after the server has carried it out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

World = Any
Play = Callable[[Any], None]
IDS = ("a", "b", "c")


async def collector(world: World, committed: list[str]) -> None:
    """What a collector does: take over, ask for what its ledger has open, commit each result, release."""
    open_rows = [rollout for rollout in IDS if rollout not in committed]
    await world.live.adopt(open_rows)
    world.start(*open_rows)
    for number in range(len(open_rows)):
        await world.until(lambda number=number: len(world.given) > number)
        rollout = world.finished(number).rollout
        committed.append(rollout)
        await world.live.release(rollout)


async def outlived(world: World, committed: list[str]) -> bool:
    """Whether the collector came to its end before it died."""
    work = asyncio.ensure_future(collector(world, committed))
    death = asyncio.ensure_future(world.api.died.wait())
    await asyncio.wait({work, death}, return_when=asyncio.FIRST_COMPLETED)
    alive = work.done()
    if alive:
        await work
    world.kill()
    return alive


@pytest.mark.parametrize("carried_out", [False, True])
def test_killed_with_any_request_it_loses_nothing_and_runs_nothing_twice(
    play: Play, carried_out: bool
) -> None:
    deaths = []

    async def scenario(world: World) -> None:
        number, alive = 0, False
        while not alive:
            api = type(world.api)()
            api.on_create = api.finish
            api.dies_at = (number, carried_out)
            committed: list[str] = []
            alive = await outlived(type(world)(api), committed)
            api.dies_at = None
            if not alive:
                deaths.append(api.requests[number])
                api.died.clear()
                assert await outlived(type(world)(api), committed)
            assert sorted(committed) == list(IDS), f"killed with request {number}"
            assert [type for _, type, _ in api.history].count("ADDED") == len(IDS)
            assert api.objects == {}
            number += 1

    play(scenario)
    assert {"create", "delete", "list", "watch"} <= set(deaths)
    assert len(deaths) >= 9
