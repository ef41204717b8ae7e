"""One pass: what was planned is carried out in order, what fails stops only its own chain, and all is reported."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from mlwright_operator.actions import Action, Apply, Emit, Kind, WriteStatus
from mlwright_operator.errors import ApiFailure, WritesClosed
from mlwright_operator.failures import Failures
from mlwright_operator.observing import observed
from mlwright_operator.reconcile import PassReport, reconcile
from operator_world.objects import config, rollout, task
from operator_world.scene import Scene, run_one


class Recorder:
    """Carries everything out, and remembers it in order; `refuse` may raise."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.done: list[Action] = []
        self.failing: dict[type[Action], Exception] = {}
        self.at_once = self.most_at_once = 0

    async def carry_out(self, action: Action) -> Mapping[str, Any] | None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if (failure := self.failing.get(type(action))) is not None:
            raise failure
        self.done.append(action)
        return self.scene.api.carry_out(action)

    def run(self, failures: Failures | None = None) -> PassReport:
        seen = observed(self.scene.api.objects.values())
        return asyncio.run(
            reconcile(seen, self, self.scene.config, now=self.scene.api.now, failures=failures or {})
        )


@pytest.fixture
def scene() -> Scene:
    made = Scene(config())
    made.api.create(task())
    for number in range(3):
        made.api.create(rollout(f"r{number}"))
    return made


def test_the_policy_comes_before_every_job(scene: Scene) -> None:
    cluster = Recorder(scene)
    cluster.run()
    first, *rest = cluster.done
    assert isinstance(first, Apply)
    assert first.kind is Kind.NETWORK_POLICY
    assert len(rest) == 6


def test_a_pass_reports_what_it_wrote_and_a_second_one_writes_nothing(scene: Scene) -> None:
    cluster = Recorder(scene)
    assert cluster.run().writes == 7
    assert cluster.run().writes == 0


def test_without_the_policy_no_job_is_made(scene: Scene) -> None:
    cluster = Recorder(scene)
    cluster.failing[Apply] = ApiFailure("no", status=500)
    report = cluster.run()
    assert cluster.done == []
    assert [ref.kind for ref in report.failures] == [Kind.NETWORK_POLICY]
    assert report.look_again is not None


def test_what_fails_stops_its_own_chain_only(scene: Scene) -> None:
    cluster = Recorder(scene)
    cluster.run()
    scene.wait()
    scene.wait()
    cluster.failing[WriteStatus] = ApiFailure("conflict", status=409)
    report = cluster.run()
    assert len(report.failed) == 3
    assert {failure.verb for failure in report.failed} == {"status"}
    assert report.writes == 3


def test_a_result_is_reported_once_and_only_if_it_was_written() -> None:
    scene = run_one(seconds=0)
    scene.go_until(WriteStatus)
    cluster = Recorder(scene)
    finished: list[str] = []
    for second in range(12):
        cluster.failing = {WriteStatus: ApiFailure("no", status=500)} if second == 5 else {}
        report = cluster.run()
        finished += [str(status.outcome) for status in report.finished]
        scene.wait()
    assert finished == ["Scored"]


def test_a_failure_is_remembered_until_it_is_made_good(scene: Scene) -> None:
    cluster = Recorder(scene)
    cluster.failing[Apply] = ApiFailure("exceeded quota", status=403)
    first = cluster.run()
    held = cluster.run(first.failures)
    assert held.failures == first.failures
    scene.wait(2)
    cluster.failing = {}
    assert cluster.run(held.failures).failures == {}


def test_an_event_that_cannot_be_written_costs_nothing_else() -> None:
    scene = Scene()
    scene.api.create(rollout("r"))
    cluster = Recorder(scene)
    cluster.failing[Emit] = ApiFailure("no", status=500)
    report = cluster.run()
    assert [failure.verb for failure in report.failed] == ["emit"]
    assert scene.reason("Accepted") == "TaskNotFound"
    assert cluster.run(report.failures).writes == 0


def test_when_writes_are_closed_the_pass_ends_and_says_so(scene: Scene) -> None:
    cluster = Recorder(scene)
    cluster.run()
    scene.wait()
    scene.wait()
    cluster.failing[WriteStatus] = WritesClosed("the lease is not held")
    with pytest.raises(WritesClosed):
        cluster.run()


def test_no_more_than_a_few_dozen_requests_are_in_flight() -> None:
    scene = Scene()
    scene.api.create(task())
    for number in range(100):
        scene.api.create(rollout(f"r{number}"))
    cluster = Recorder(scene)
    cluster.run()
    assert 10 < cluster.most_at_once <= 32


def test_it_says_how_many_objects_there_are(scene: Scene) -> None:
    live = Recorder(scene).run().live
    assert (live[Kind.ROLLOUT], live[Kind.TASK], live[Kind.JOB]) == (3, 1, 0)
