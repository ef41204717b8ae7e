"""The gate: who may write, and until when."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mlwright_operator.edge.gate import MIN_SECONDS, Gate
from mlwright_operator.errors import WritesClosed


def test_it_is_closed_at_first(clock: Any) -> None:
    gate = Gate(clock=clock)
    assert not gate.open
    with pytest.raises(WritesClosed), gate.writing():
        pass


def test_a_write_is_told_how_long_it_may_take(clock: Any) -> None:
    gate = Gate(clock=clock)
    gate.open_until(clock.now + 7)
    with gate.writing() as seconds:
        assert seconds == 7


def test_it_closes_by_itself_at_the_deadline(clock: Any) -> None:
    gate = Gate(clock=clock)
    gate.open_until(clock.now + 10)
    clock.now += 10 - MIN_SECONDS
    assert not gate.open
    with pytest.raises(WritesClosed, match="lease"), gate.writing():
        pass


def test_a_later_deadline_opens_it_again(clock: Any) -> None:
    gate = Gate(clock=clock)
    gate.open_until(clock.now + 1)
    clock.now += 5
    gate.open_until(clock.now + 10)
    assert gate.open


def test_shut_is_for_good(clock: Any) -> None:
    gate = Gate(clock=clock)
    gate.open_until(clock.now + 10)
    gate.shut()
    gate.open_until(clock.now + 1000)
    assert not gate.open
    with pytest.raises(WritesClosed, match="stopping"), gate.writing():
        pass


def test_draining_waits_for_every_write_in_flight(clock: Any) -> None:
    async def scenario() -> None:
        gate = Gate(clock=clock)
        gate.open_until(clock.now + 10)
        first, second = gate.writing(), gate.writing()
        first.__enter__()
        second.__enter__()
        gate.shut()
        drained = asyncio.create_task(gate.drained())
        first.__exit__(None, None, None)
        await asyncio.sleep(0)
        assert not drained.done()
        second.__exit__(None, None, None)
        await drained

    asyncio.run(scenario())


def test_a_write_that_fails_is_no_longer_in_flight(clock: Any) -> None:
    async def scenario() -> None:
        gate = Gate(clock=clock)
        gate.open_until(clock.now + 10)
        with pytest.raises(ConnectionResetError), gate.writing():
            raise ConnectionResetError
        await gate.drained()

    asyncio.run(scenario())


def test_whoever_waits_is_let_through_when_it_opens(clock: Any) -> None:
    async def scenario() -> None:
        gate = Gate(clock=clock)
        waiting = asyncio.create_task(gate.opened())
        await asyncio.sleep(0)
        assert not waiting.done()
        gate.open_until(clock.now + 10)
        await waiting

    asyncio.run(scenario())
