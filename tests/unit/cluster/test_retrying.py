"""How patiently something is tried again."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_trainer.cluster.errors import ApiFailure
from mlwright_trainer.cluster.retrying import FIRST_SECONDS, MOST_SECONDS, Pause, persist

LOST = ApiFailure("lost", status=0)


@given(draws=st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_pauses_grow_to_a_bound_and_never_vanish(draws: list[float]) -> None:
    left = iter(draws)
    pause = Pause(draw=lambda: next(left))
    for number in range(len(draws)):
        full = min(FIRST_SECONDS * 2**number, MOST_SECONDS)
        assert full / 2 <= pause.after(LOST) <= full


def test_a_server_that_asks_for_more_patience_gets_it() -> None:
    assert Pause().after(ApiFailure("busy", status=429, retry_after=40.0)) == 40


def test_success_makes_impatient_again() -> None:
    pause = Pause(draw=lambda: 1.0)
    assert [pause.after(LOST) for _ in range(3)] == [0.2, 0.4, 0.8]
    pause.reset()
    assert pause.after(LOST) == 0.2


def test_what_will_not_pass_is_raised_at_once_and_what_may_is_heard_of() -> None:
    answers = [LOST, LOST, ApiFailure("forbidden", status=403)]
    heard: list[ApiFailure] = []
    slept: list[float] = []

    async def request() -> None:
        raise answers.pop(0)

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    with pytest.raises(ApiFailure, match="forbidden"):
        asyncio.run(persist(request, sleep=sleep, trouble=heard.append))
    assert heard == [LOST, LOST]
    assert len(slept) == 2
