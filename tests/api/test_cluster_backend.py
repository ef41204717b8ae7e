"""The trainer's cluster backend against a real API server with the real CRDs; the tests write an operator's part."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_server import API, ApiServer
from mlwright_api.rollout import Outcome
from mlwright_cluster.cluster import Cluster
from mlwright_sandbox.backend import Finished, SandboxRequest
from mlwright_trainer.cluster.backend import ClusterBackend
from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused
from mlwright_trainer.cluster.kube import KubeRollouts
from mlwright_trainer.cluster.kubeconfig import Place
from mlwright_trainer.cluster.manifest import rollout_object
from mlwright_trainer.cluster.owner import Owner, one_call
from mlwright_trainer.cluster.port import Event
from mlwright_trainer.cluster.tasks import ClusterTask, find_task
from operator_process import KUBECONFIG, get, install, namespace_with_task, operating, until

pytestmark = pytest.mark.control_plane

NUMBERS = itertools.count(1)
RUN = Owner("churn-run", "3c0c6f3e-9d0a-4f0e-8a52-6f2f8a8b1c11")
STARTED = {"type": "Started", "status": "True", "reason": "Running", "message": "", "observedGeneration": 1}


@pytest.fixture(scope="module")
def cluster(control_plane: Cluster) -> Cluster:
    install(control_plane)
    return control_plane


@pytest.fixture
def lab(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """A namespace of this test's own, with a task that is ready; $KUBECONFIG leads there."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    namespace = f"backend-{next(NUMBERS)}"
    namespace_with_task(cluster, namespace)
    return namespace


@pytest.fixture
def task(lab: str) -> ClusterTask:
    async def found() -> ClusterTask:
        api = await KubeRollouts.open(Place(namespace=lab))
        try:
            return await find_task(api, "churn")
        finally:
            await api.close()

    return asyncio.run(found())


@pytest.fixture
def open_backend(lab: str) -> Iterator[Callable[..., ClusterBackend]]:
    opened: list[ClusterBackend] = []

    def open_one(owner: Owner = RUN) -> ClusterBackend:
        opened.append(ClusterBackend(lambda: KubeRollouts.open(Place(namespace=lab)), owner, slots=8))
        return opened[-1]

    yield open_one
    for backend in opened:
        backend.close()


def request(task: ClusterTask, rollout: str, script: str = "print(1)") -> SandboxRequest:
    return SandboxRequest(rollout=rollout, task=task.mounts(), script=script, seed=1)


def say(cluster: Cluster, lab: str, name: str, outcome: str | None = None, **status: Any) -> None:
    """What the operator writes of a Rollout."""
    started = {**STARTED, "lastTransitionTime": "2027-01-15T08:00:05Z"}
    whole = {"attempt": 1, "conditions": [started], **({"outcome": outcome} if outcome else {}), **status}
    server = ApiServer(cluster.url, cluster.token, cluster.ca)
    path = f"{API}/namespaces/{lab}/rollouts/{name}/status"
    answer = server.send("PATCH", path, {"status": whole}, content="application/merge-patch+json")
    assert answer.code == 200, answer.body


def names(cluster: Cluster, lab: str) -> list[str]:
    return sorted(each["metadata"]["name"] for each in get(cluster, "rollouts", lab))


def collect(backend: ClusterBackend, count: int) -> dict[str, Finished]:
    found: dict[str, Finished] = {}
    while len(found) < count:
        got = backend.collect(180)
        assert got, f"only {len(found)} of {count}"
        found |= {each.rollout: each for each in got}
    return found


def test_a_rollout_goes_from_creation_to_release(
    cluster: Cluster, lab: str, task: ClusterTask, open_backend: Callable[..., ClusterBackend]
) -> None:
    backend = open_backend()
    backend.submit(request(task, "r", "print('é')"))
    name = backend.object_name("r")
    until(lambda: names(cluster, lab) == [name], what="the Rollout")
    spec = get(cluster, "rollout", lab, name)["spec"]
    assert spec["files"] == [{"path": "script.py", "content": "print('é')"}]
    assert spec["runRef"] == {"name": RUN.name, "uid": RUN.uid}
    say(cluster, lab, name, "Scored", scores={"Reward": 0.75}, seconds={"execution": 2.5})
    finished = collect(backend, 1)["r"]
    assert finished.status.outcome is Outcome.SCORED
    assert finished.status.seconds.execution == 2.5
    backend.release("r")
    until(lambda: names(cluster, lab) == [], what="the Rollout's deletion")


def test_after_a_restart_what_is_there_is_taken_over_with_the_defaults_of_the_server(
    cluster: Cluster, lab: str, task: ClusterTask, open_backend: Callable[..., ClusterBackend]
) -> None:
    first = open_backend()
    for rollout in ("goes-on", "committed"):
        first.submit(request(task, rollout))
    until(lambda: len(names(cluster, lab)) == 2, what="both Rollouts")
    other = open_backend(one_call("churn"))
    other.submit(request(task, "somebody-elses"))
    until(lambda: len(names(cluster, lab)) == 3, what="the other's Rollout")
    name = first.object_name("goes-on")
    uid = get(cluster, "rollout", lab, name)["metadata"]["uid"]
    first.detach()
    second = open_backend()
    assert second.adopt(["goes-on"]) == ["goes-on"]
    assert names(cluster, lab) == sorted([name, other.object_name("somebody-elses")])
    second.submit(request(task, "goes-on"))
    say(cluster, lab, name, "Timeout")
    assert collect(second, 1)["goes-on"].status.outcome is Outcome.TIMEOUT
    assert get(cluster, "rollout", lab, name)["metadata"]["uid"] == uid


def test_the_same_name_with_another_script_is_refused(
    cluster: Cluster, lab: str, task: ClusterTask, open_backend: Callable[..., ClusterBackend]
) -> None:
    first = open_backend()
    first.submit(request(task, "r", "print(1)"))
    until(lambda: len(names(cluster, lab)) == 1, what="the Rollout")
    first.detach()
    second = open_backend()
    second.submit(request(task, "r", "print(2)"))
    with pytest.raises(ClusterRefused, match=r"is another one \(spec.files differ\)"):
        collect(second, 1)
    second.close()
    assert len(names(cluster, lab)) == 1


def test_cancelling_deletes_and_what_had_ended_stays_what_it_was(
    cluster: Cluster, lab: str, task: ClusterTask, open_backend: Callable[..., ClusterBackend]
) -> None:
    backend = open_backend()
    backend.submit(request(task, "runs"))
    until(lambda: len(names(cluster, lab)) == 1, what="the Rollout")
    backend.cancel("runs")
    assert collect(backend, 1)["runs"].status.outcome is Outcome.CANCELLED
    assert names(cluster, lab) == []


def test_an_object_is_deleted_only_in_the_state_that_was_looked_at(
    cluster: Cluster, lab: str, task: ClusterTask
) -> None:
    async def scenario() -> None:
        api = await KubeRollouts.open(Place(namespace=lab))
        made = await api.create(rollout_object(request(task, "r"), RUN, sandbox="default"))
        name, uid, version = (made["metadata"][key] for key in ("name", "uid", "resourceVersion"))
        await asyncio.to_thread(say, cluster, lab, name, "Scored")
        for wrong in ({"uid": uid, "version": version}, {"uid": "another", "version": None}):
            with pytest.raises(ApiFailure) as caught:
                await api.delete(name, **wrong)
            assert caught.value.conflict
        now = (await api.get(name))["metadata"]["resourceVersion"]
        await api.delete(name, uid=uid, version=now)
        with pytest.raises(ApiFailure) as missing:
            await api.get(name)
        assert missing.value.gone
        await api.close()

    asyncio.run(scenario())


def test_a_version_of_long_ago_cannot_be_watched_from(lab: str) -> None:
    async def watched() -> list[Event]:
        api = await KubeRollouts.open(Place(namespace=lab))
        try:
            return [event async for event in api.watch(RUN.selector, version="1", seconds=1)]
        finally:
            await api.close()

    with pytest.raises(ApiFailure) as caught:
        asyncio.run(watched())
    assert caught.value.expired


def test_a_watch_ends_when_it_was_asked_to_and_the_next_list_goes_on(
    cluster: Cluster,
    lab: str,
    task: ClusterTask,
    open_backend: Callable[..., ClusterBackend],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mlwright_trainer.cluster.following.WATCH_SECONDS", 1.0)
    backend = open_backend()
    backend.submit(request(task, "r"))
    assert backend.collect(3) == []  # and so through two or three watches
    say(cluster, lab, backend.object_name("r"), "Error", reason="NameError")
    assert collect(backend, 1)["r"].status.reason == "NameError"


def test_an_api_server_that_goes_away_and_comes_back_costs_nothing(
    cluster: Cluster, lab: str, task: ClusterTask, open_backend: Callable[..., ClusterBackend]
) -> None:
    backend = open_backend()
    backend.submit(request(task, "before"))
    until(lambda: len(names(cluster, lab)) == 1, what="the Rollout")
    with cluster.without("kube-apiserver"):
        backend.submit(request(task, "meanwhile"))
        assert backend.collect(1) == []
    until(lambda: len(names(cluster, lab)) == 2, what="the second Rollout")
    for rollout in ("before", "meanwhile"):
        say(cluster, lab, backend.object_name(rollout), "Scored")
    assert len(collect(backend, 2)) == 2


def test_hundreds_of_live_rollouts_come_through_one_watch(
    cluster: Cluster, lab: str, task: ClusterTask, open_backend: Callable[..., ClusterBackend]
) -> None:
    backend = open_backend()
    ids = [f"r{number:04d}" for number in range(300)]
    for rollout in ids:
        backend.submit(request(task, rollout))
    until(lambda: len(names(cluster, lab)) == 300, what="300 Rollouts")
    for rollout in ids:
        say(cluster, lab, backend.object_name(rollout), "Scored")
    assert sorted(collect(backend, 300)) == ids
    for rollout in ids:
        backend.release(rollout)
    until(lambda: names(cluster, lab) == [], what="300 deletions")


def test_who_may_not_create_rollouts_is_told_so(
    cluster: Cluster,
    lab: str,
    task: ClusterTask,
    open_backend: Callable[..., ClusterBackend],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.kubectl("create", "serviceaccount", "nobody", "-n", lab)
    token = cluster.kubectl("create", "token", "nobody", "-n", lab).strip()
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG.format(url=cluster.url, ca=cluster.ca, token=token))
    monkeypatch.setenv("KUBECONFIG", str(path))
    backend = open_backend()
    backend.submit(request(task, "r"))
    with pytest.raises(ClusterRefused, match=r"forbidden.*ask whoever runs the cluster for that right"):
        collect(backend, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing", "--namespace", "LAB"], "there is no MLTask 'nothing'"),
        (["churn", "--namespace", "no-such-namespace"], "there is no such namespace"),
    ],
)
def test_what_is_not_there_is_said_by_the_command(
    lab: str, tmp_path: Path, arguments: list[str], said: str
) -> None:
    with task_run(tmp_path, *(lab if each == "LAB" else each for each in arguments)) as ran:
        _, error = ran.communicate(timeout=120)
    assert ran.returncode == 2
    assert said in error


@contextmanager
def task_run(folder: Path, task: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`mlwright task run --cluster`, begun; and ended, whatever a test makes of it."""
    script = folder / "script.py"
    script.write_text("print('hello')\n")
    command = [sys.executable, "-m", "mlwright_trainer.command.main", "task", "run", task, str(script)]
    process = subprocess.Popen(
        [*command, "--cluster", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_command_shows_what_the_operator_says_and_ctrl_c_leaves_nothing(
    cluster: Cluster, lab: str, tmp_path: Path
) -> None:
    """With the real operator, but no node: the Job is made, and stays without a pod."""
    with (
        operating(cluster, tmp_path / "operator", "--namespace", lab, "--no-election"),
        task_run(tmp_path, "churn", "--namespace", lab) as ran,
    ):
        until(lambda: len(get(cluster, "jobs", lab)) == 1, what="the Job")
        assert ran.stderr is not None
        lines: list[str] = []
        while "Creating" not in (line := ran.stderr.readline()):
            assert line, lines
            lines.append(line)
        ran.send_signal(signal.SIGINT)
        ran.communicate(timeout=120)
        assert ran.returncode == 130
        assert names(cluster, lab) == []


def test_the_command_gives_the_result(cluster: Cluster, lab: str, tmp_path: Path) -> None:
    with task_run(tmp_path, "churn", "--namespace", lab) as ran:
        until(lambda: len(names(cluster, lab)) == 1, what="the Rollout")
        say(cluster, lab, names(cluster, lab)[0], "Scored", scores={"Reward": 0.75})
        output, _ = ran.communicate(timeout=120)
    assert ran.returncode == 0
    assert "outcome     Scored" in output
    assert names(cluster, lab) == []
