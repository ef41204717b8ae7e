"""The whole operator against an API server over HTTP that refuses, resets, stalls and goes away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from mlwright_operator.edge.election import LeaseTimes
from mlwright_operator.edge.process import LEASE, LOST_LEASE, Operator, Options
from operator_objects import config, ready_status, rollout, task

Server = Any  # the conftest's ApiServer; importlib mode gives its module no importable name
PATIENCE = 30
USUAL = LeaseTimes()
QUICK = LeaseTimes(duration=3, writing=2, retry=0.2, call=1)
"""For tests in which somebody waits for a lease; a starved machine may lose one that is as short."""


async def until(holds: Callable[[], Any]) -> None:
    """Until something holds that other tasks bring about."""
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.01)


class Running:
    """An operator in this loop."""

    def __init__(
        self, server: Server, *, election: bool = True, times: LeaseTimes = USUAL, **fields: Any
    ) -> None:
        options = Options(
            election=election, lease_namespace="system", listen=("127.0.0.1", 0), lease_times=times
        )
        self.server = server
        self.operator = Operator(config(**fields), options, server.configuration())
        self.task = asyncio.create_task(self.operator.run())

    async def stop(self) -> int:
        self.operator.stop()
        async with asyncio.timeout(PATIENCE):
            return await self.task


def jobs(server: Server) -> list[str]:
    return sorted(key[2] for key in server.objects if key[0] == "jobs")


def statuses(server: Server) -> list[dict[str, Any]]:
    found = [raw.get("status", {}) for key, raw in server.objects.items() if key[0] == "rollouts"]
    return [status for status in found if status.get("attempt")]


async def prepare(server: Server, rollouts: int = 1) -> None:
    await server.put("namespaces", {"metadata": {"name": "lab"}})
    await server.put("mltasks", {**task("lab"), "status": ready_status()})
    for number in range(rollouts):
        await server.put("rollouts", rollout("lab", f"r{number}"))


Scenario = Callable[[Server], Awaitable[None]]


@pytest.fixture
def against(api_server: Callable[[], Any]) -> Callable[[Scenario], None]:
    def run(scenario: Scenario) -> None:
        async def main() -> None:
            async with api_server() as server:
                await scenario(server)

        asyncio.run(main())

    return run


def test_a_rollout_gets_its_policy_its_job_and_its_status_in_this_order(against: Any) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server)
        running = Running(server)
        await until(lambda: statuses(server))
        writes = [call.plural for call in server.writes() if call.plural not in ("leases", "events")]
        assert writes[:3] == ["networkpolicies", "jobs", "rollouts"]
        assert await running.stop() == 0

    against(scenario)


def test_once_it_is_quiet_lists_and_watches_cause_no_write(against: Any) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server, rollouts=5)
        running = Running(server, election=False, resync_seconds=0.2)
        await until(lambda: len(statuses(server)) == 5)
        await lists(server, 2)
        before = len(server.writes())
        await lists(server, 3)
        assert len(server.writes()) == before
        assert await running.stop() == 0

    against(scenario)


async def lists(server: Server, more: int) -> None:
    """So many further lists, each of which makes a pass."""

    def done() -> int:
        return len([call for call in server.calls if call.plural == "rollouts" and call.method == "GET"])

    enough = done() + more
    await until(lambda: done() >= enough)


@pytest.mark.parametrize("code", [0, 409, 422, 429, 500, 503])
@pytest.mark.parametrize("plural", ["networkpolicies", "jobs", "rollouts"])
def test_one_failure_of_any_write_delays_it_and_no_more(
    against: Any, answer: Any, reset: Any, code: int, plural: str
) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server, rollouts=3)
        server.fail("PATCH", plural, answer(code, headers={"Retry-After": "1"}) if code else reset)
        running = Running(server)
        await until(lambda: len(statuses(server)) == 3)
        assert len(jobs(server)) == 3
        assert await running.stop() == 0

    against(scenario)


def test_an_answer_that_is_lost_is_a_write_that_is_done_twice_to_one_effect(against: Any) -> None:
    async def scenario(server: Server) -> None:
        async def deaf(request: web.Request) -> web.StreamResponse:
            await server._answer(
                request, ("jobs", "lab", request.path.split("/")[-1]), "", server.calls[-1].body
            )
            assert request.transport is not None
            request.transport.abort()
            return web.Response()

        await prepare(server)
        server.fail("PATCH", "jobs", deaf)
        running = Running(server)
        await until(lambda: statuses(server))
        assert len(jobs(server)) == 1
        assert await running.stop() == 0

    against(scenario)


async def applied(server: Server, request: web.Request) -> web.StreamResponse:
    """What a Job's apply comes to when nothing is in its way."""
    name = request.path.split("/")[-1]
    response: web.StreamResponse = await server.answer(
        request, ("jobs", "lab", name), "", await request.json()
    )
    return response


async def probe(running: Running, path: str) -> tuple[int, str]:
    host, port = "127.0.0.1", running.operator.probes.port
    async with aiohttp.ClientSession() as session, session.get(f"http://{host}:{port}{path}") as response:
        return response.status, await response.text()


async def until_probe(running: Running, path: str, code: int, *, says: str = "") -> None:
    async with asyncio.timeout(PATIENCE):
        await until(lambda: running.operator.probes.port)
        while True:
            found, text = await probe(running, path)
            if found == code and says in text:
                return
            await asyncio.sleep(0.02)


def test_an_api_server_that_goes_away_is_not_ready_and_comes_back_by_itself(against: Any) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server)
        running = Running(server, times=QUICK)
        await until(lambda: statuses(server))
        await until_probe(running, "/readyz", 200)
        await server.break_watches()
        await server.stop()
        await until_probe(running, "/readyz", 503, says="API server: does not answer")
        assert (await probe(running, "/healthz"))[0] == 200
        await until(lambda: not running.operator.gate.open)
        await server.put("rollouts", rollout("lab", "while-away"))
        await server.start()
        await until(lambda: len(statuses(server)) == 2)
        await until_probe(running, "/readyz", 200)
        assert await running.stop() == 0

    against(scenario)


def test_kinds_that_do_not_exist_yet_are_waited_for_and_named(against: Any) -> None:
    async def scenario(server: Server) -> None:
        server.served -= {"rollouts", "mltasks", "trainingruns"}
        running = Running(server)
        await until_probe(running, "/readyz", 503, says="CRDs")
        server.served |= {"rollouts", "mltasks", "trainingruns"}
        await prepare(server)
        await until(lambda: statuses(server))
        assert await running.stop() == 0

    against(scenario)


def test_stopping_finishes_the_write_in_flight_and_begins_no_other(against: Any) -> None:
    async def scenario(server: Server) -> None:
        arrived, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request: web.Request) -> web.StreamResponse:
            arrived.set()
            await go_on.wait()
            return await applied(server, request)

        await prepare(server)
        server.fail("PATCH", "jobs", slow)
        running = Running(server)
        await arrived.wait()
        running.operator.stop()
        await asyncio.sleep(0.05)
        assert not running.task.done()
        go_on.set()
        assert await running.stop() == 0
        assert len(jobs(server)) == 1
        assert statuses(server) == []
        assert server.objects["leases", "system", LEASE]["spec"]["holderIdentity"] == ""

    against(scenario)


def test_a_second_operator_takes_over_at_once_when_the_first_stops(against: Any) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server)
        first = Running(server)
        await until(lambda: statuses(server))
        second = Running(server)
        await until_probe(second, "/readyz", 200)
        assert not second.operator.gate.open
        assert await first.stop() == 0
        await server.put("rollouts", rollout("lab", "later"))
        async with asyncio.timeout(USUAL.duration):
            await until(lambda: len(statuses(server)) == 2)
        assert len(jobs(server)) == 2
        assert await second.stop() == 0

    against(scenario)


def test_whoever_lost_the_lease_ends_with_a_code_of_its_own(
    against: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server)
        running = Running(server)
        await until(lambda: statuses(server))
        lease = server.objects["leases", "system", LEASE]
        await server.put("leases", {**lease, "spec": {**lease["spec"], "holderIdentity": "another"}})
        async with asyncio.timeout(PATIENCE):
            assert await running.task == LOST_LEASE

    with caplog.at_level(logging.ERROR):
        against(scenario)
    assert "another" in caplog.text


def test_a_rollout_is_answered_for_within_a_moment(against: Any) -> None:
    """Loose: this machine is shared. The benchmark measures."""

    async def scenario(server: Server) -> None:
        await prepare(server)
        running = Running(server)
        await until(lambda: statuses(server))
        began = asyncio.get_running_loop().time()
        await server.put("rollouts", rollout("lab", "another"))
        await until(lambda: len(jobs(server)) == 2)
        assert asyncio.get_running_loop().time() - began < 5
        assert await running.stop() == 0

    against(scenario)


def test_metrics_are_served(against: Any) -> None:
    async def scenario(server: Server) -> None:
        await prepare(server)
        running = Running(server)
        await until(lambda: statuses(server))
        status, text = await probe(running, "/metrics")
        assert status == 200
        assert "mlwright_operator_leader 1.0" in text
        assert 'mlwright_live_objects{kind="Rollout"} 1.0' in text
        assert 'verb="apply"' in text
        assert await running.stop() == 0

    against(scenario)


def test_an_address_that_is_taken_is_the_users_mistake(against: Any) -> None:
    async def scenario(server: Server) -> None:
        options = Options(election=False, listen=("127.0.0.1", server.port))
        operator = Operator(config(), options, server.configuration())
        with pytest.raises(Exception, match="--listen"):
            await operator.run()

    against(scenario)
