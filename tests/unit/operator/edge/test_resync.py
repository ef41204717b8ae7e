"""Lists: before anything else, when a watch began anew, and every so often."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mlwright_operator.edge.health import Health
from mlwright_operator.edge.resync import SETTLE_SECONDS, Resync
from mlwright_operator.errors import ApiFailure


class Setting:
    def __init__(self, clock: Any) -> None:
        self.results: list[bool | Exception] = []
        self.lists = 0
        self.wakes = 0
        self.failures: list[str] = []
        self.wanted = asyncio.Event()
        self.health = Health(resync_seconds=60, clock=clock)
        self.clock = clock
        self.resync = Resync(
            self.refresh,
            wanted=self.wanted,
            wake=self.wake,
            failed=self.failures.append,
            health=self.health,
            seconds=3600,
            sleep=clock.sleep,
        )

    async def refresh(self) -> bool:
        self.lists += 1
        result = self.results.pop(0) if self.results else False
        if isinstance(result, Exception):
            raise result
        return result

    def wake(self) -> None:
        self.wakes += 1


@pytest.fixture
def setting(clock: Any) -> Setting:
    return Setting(clock)


def test_the_first_list_is_tried_until_it_succeeds(setting: Setting) -> None:
    setting.results = [ApiFailure("away", status=0), ApiFailure("away", status=503), True]
    asyncio.run(setting.resync.first())
    assert setting.lists == 3
    assert setting.clock.slept == [0.5, 1]
    assert setting.failures == ["list", "list"]
    assert setting.health.ready(leading=False).ok


def test_a_list_without_news_wakes_too(setting: Setting) -> None:
    """What only time changes is noticed then, and that we can work is shown."""
    asyncio.run(setting.resync.first())
    assert setting.wakes == 1


@pytest.mark.parametrize(
    ("status", "hint"), [(404, "CRDs"), (403, "rbac.yaml"), (0, "away"), (401, "rbac.yaml")]
)
def test_what_to_do_about_a_failure_is_said(setting: Setting, status: int, hint: str) -> None:
    setting.results = [ApiFailure("away", status=status)]

    async def scenario() -> str:
        task = asyncio.create_task(setting.resync.first())
        await asyncio.sleep(0)
        why = setting.health.ready(leading=False).why
        await task
        return why

    assert hint in asyncio.run(scenario())


def test_many_wishes_at_once_are_one_list_after_they_settled(setting: Setting) -> None:
    async def scenario() -> None:
        task = asyncio.create_task(setting.resync.run())
        for _ in range(50):
            setting.wanted.set()
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(scenario())
    assert setting.lists == 1
    assert setting.clock.slept == [SETTLE_SECONDS]


def test_time_alone_is_reason_enough(setting: Setting) -> None:
    async def scenario() -> None:
        setting.resync._seconds = 0.0
        task = asyncio.create_task(setting.resync.run())
        while setting.lists < 3:
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(scenario())
    assert setting.wakes >= 2
