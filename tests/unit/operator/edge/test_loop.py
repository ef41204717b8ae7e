"""The worker: wakes become passes, one at a time; failures are waited out, and never the end."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from mlwright_operator.edge.gate import Gate
from mlwright_operator.edge.health import Health
from mlwright_operator.edge.loop import LONGEST_BACKOFF, Passed, Worker, backoff, first_cause
from mlwright_operator.errors import ApiFailure, WritesClosed


class Setting:
    """A worker whose passes and waits are scripted."""

    def __init__(self, clock: Any) -> None:
        self.results: list[Passed | Exception] = []
        self.passes = 0
        self.running = 0
        self.waited: list[float | None] = []
        self.failures: list[str] = []
        self.gate = Gate(clock=clock)
        self.gate.open_until(clock.now + 1000)
        self.health = Health(resync_seconds=60, clock=clock)
        self.worker = Worker(
            self.one, gate=self.gate, health=self.health, failed=self.failures.append, wait=self.wait
        )

    async def one(self) -> Passed:
        self.passes += 1
        self.running += 1
        assert self.running == 1
        await asyncio.sleep(0)
        self.running -= 1
        result = self.results.pop(0) if self.results else Passed(wrote=False)
        if isinstance(result, Exception):
            raise result
        return result

    async def wait(self, event: asyncio.Event, seconds: float | None) -> bool:
        self.waited.append(seconds)
        if seconds is None:
            await event.wait()
        await asyncio.sleep(0)
        return event.is_set()


@pytest.fixture
def setting(clock: Any) -> Setting:
    return Setting(clock)


def run(setting: Setting, *, until: int) -> None:
    """Run the worker until it has made so many passes and waits again."""

    async def scenario() -> None:
        task = asyncio.create_task(setting.worker.run())
        setting.worker.wake()
        while setting.passes < until or not setting.waited or setting.waited[-1] is not None:
            await asyncio.sleep(0)
            assert not task.done()
        task.cancel()

    asyncio.run(scenario())


def test_many_wakes_before_a_pass_are_one_pass(setting: Setting) -> None:
    async def scenario() -> None:
        for _ in range(100):
            setting.worker.wake()
        task = asyncio.create_task(setting.worker.run())
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(scenario())
    assert setting.passes == 1


def test_a_wake_during_a_pass_is_another_pass(setting: Setting) -> None:
    async def scenario() -> None:
        setting.worker.wake()
        task = asyncio.create_task(setting.worker.run())
        while not setting.running:
            await asyncio.sleep(0)
        setting.worker.wake()
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(scenario())
    assert setting.passes == 2


def test_passes_follow_until_one_writes_nothing(setting: Setting) -> None:
    setting.results = [Passed(wrote=True), Passed(wrote=True), Passed(wrote=False)]
    run(setting, until=3)
    assert setting.passes == 3
    assert setting.waited == [None, 0, 0, None]


def test_what_is_due_by_the_clock_needs_no_wake(setting: Setting) -> None:
    setting.results = [Passed(wrote=False, due=7), Passed(wrote=False)]
    run(setting, until=2)
    assert setting.waited == [None, 7, None]


def test_nothing_happens_while_the_gate_is_closed(setting: Setting, clock: Any) -> None:
    async def scenario() -> None:
        setting.gate.open_until(clock.now)
        setting.worker.wake()
        task = asyncio.create_task(setting.worker.run())
        for _ in range(20):
            await asyncio.sleep(0)
        assert setting.passes == 0
        setting.gate.open_until(clock.now + 10)
        for _ in range(20):
            await asyncio.sleep(0)
        task.cancel()

    asyncio.run(scenario())
    assert setting.passes == 1


@pytest.mark.parametrize(
    ("error", "what"), [(ApiFailure("away", status=0), "pass"), (KeyError("a bug"), "bug")]
)
def test_a_failed_pass_is_counted_logged_and_tried_again_later(
    setting: Setting, error: Exception, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    setting.results = [error, error, Passed(wrote=False)]
    with caplog.at_level(logging.ERROR):
        run(setting, until=3)
    assert setting.failures == [what, what]
    assert setting.waited == [None, backoff(1), 0, backoff(2), 0, None]
    assert caplog.records[0].exc_info is not None
    assert setting.health.alive().ok


def test_a_pass_whose_lease_ran_out_is_no_failure(setting: Setting) -> None:
    setting.results = [ExceptionGroup("writes", [WritesClosed("the lease is not held")]), Passed(wrote=False)]
    run(setting, until=2)
    assert setting.failures == []


def test_a_success_makes_the_next_failure_the_first(setting: Setting) -> None:
    error = ApiFailure("away", status=0)
    setting.results = [error, error, Passed(wrote=True), error, Passed(wrote=False)]
    run(setting, until=5)
    assert [seconds for seconds in setting.waited if seconds] == [backoff(1), backoff(2), backoff(1)]


def test_backoff_doubles_up_to_a_bound() -> None:
    assert [backoff(n) for n in (1, 2, 3)] == [0.5, 1, 2]
    assert backoff(1000) == LONGEST_BACKOFF


def test_the_cause_of_a_group_is_its_first_error_unless_we_may_not_write() -> None:
    away, closed = ApiFailure("away", status=0), WritesClosed("stopping")
    assert first_cause(ExceptionGroup("", [ExceptionGroup("", [away]), closed])) is closed
    assert first_cause(ExceptionGroup("", [ExceptionGroup("", [away]), KeyError()])) is away
    assert first_cause(away) is away
