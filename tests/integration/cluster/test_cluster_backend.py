"""The cluster backend over a real connection: resets, delays, conflicts, 410s, and a process that is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import Outcome
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_trainer.cluster.backend import ClusterBackend
from mlwright_trainer.cluster.errors import ClusterRefused
from mlwright_trainer.cluster.kube import KubeRollouts
from mlwright_trainer.cluster.kubeconfig import Place
from mlwright_trainer.cluster.owner import Owner

Server = Any
FaultType = Any
RUN = Owner("churn-run", "uid-of-the-run")
Opener = Callable[[], ClusterBackend]


def request(spec: MLTaskSpec, rollout: str, script: str = "print(1)") -> SandboxRequest:
    task = TaskMounts(name="churn", spec=spec, public=Path(), private=Path())
    return SandboxRequest(rollout=rollout, task=task, script=script, seed=1)


def collect(backend: ClusterBackend, count: int) -> list[Finished]:
    found: list[Finished] = []
    while len(found) < count:
        got = backend.collect(120)
        assert got, f"only {len(found)} of {count}"
        found += got
    return found


@pytest.fixture
def open_backend(kubeconfig: Path) -> Iterator[Opener]:
    opened: list[ClusterBackend] = []

    def open_one() -> ClusterBackend:
        opened.append(ClusterBackend(lambda: KubeRollouts.open(Place()), RUN, slots=8))
        return opened[-1]

    yield open_one
    for backend in opened:
        backend.close()


def test_scripts_run_to_results_and_are_released(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec
) -> None:
    backend = open_backend()
    for number in range(20):
        backend.submit(request(spec, f"r{number}"))
    found = collect(backend, 20)
    assert {each.status.outcome for each in found} == {Outcome.SCORED}
    assert {each.status.scores[split] for each in found for split in each.status.scores} == {0.8}
    for each in found:
        backend.release(each.rollout)
    api_server.wait_for(lambda: not api_server.objects)
    assert api_server.most_watchers == 1


@pytest.mark.parametrize("verb", ["create", "get", "list", "watch", "delete"])
@pytest.mark.parametrize("code", [0, 429, 500, 503])
@pytest.mark.parametrize("late", [False, True])
def test_a_request_of_any_kind_may_fail_in_any_way(
    api_server: Server,
    open_backend: Opener,
    spec: MLTaskSpec,
    fault: FaultType,
    verb: str,
    code: int,
    late: bool,
) -> None:
    if verb == "watch" and late:
        late = False  # a watch is its answer
    api_server.faults[verb] = fault(code=code, times=2, late=late)
    if verb == "get":
        api_server.faults["create"] = fault(code=0, late=True)  # so that there is something to get
    backend = open_backend()
    backend.submit(request(spec, "r"))
    (finished,) = collect(backend, 1)
    assert finished.status.outcome is Outcome.SCORED
    backend.release("r")
    api_server.wait_for(lambda: not api_server.objects)


def test_a_server_that_says_when_to_come_back_is_obeyed(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec, fault: FaultType
) -> None:
    api_server.faults["create"] = fault(code=429, times=1, retry_after="1")
    backend = open_backend()
    backend.submit(request(spec, "r"))
    assert backend.collect(0.8) == []
    collect(backend, 1)
    assert api_server.requests["create"] == 2


@pytest.mark.parametrize("forget", [False, True])
def test_a_watch_that_is_cut_misses_nothing(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec, forget: bool
) -> None:
    api_server.statuses = []
    backend = open_backend()
    backend.submit(request(spec, "r"))
    name = backend.object_name("r")
    api_server.wait_for(lambda: name in api_server.objects and api_server.watchers == 1)
    api_server.cut_watches(forget=forget)
    api_server.say(name, {"outcome": "Timeout", "attempt": 1})
    (finished,) = collect(backend, 1)
    assert finished.status.outcome is Outcome.TIMEOUT


def test_a_bookmark_saves_a_list_after_a_compaction(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec
) -> None:
    api_server.statuses = []
    backend = open_backend()
    backend.submit(request(spec, "r"))
    name = backend.object_name("r")
    api_server.wait_for(lambda: name in api_server.objects and api_server.watchers == 1)
    api_server.bookmark()
    api_server.say(name, {"attempt": 1})
    lists = api_server.requests["list"]
    api_server.cut_watches()
    api_server.wait_for(lambda: api_server.requests["watch"] >= 2)
    api_server.say(name, {"outcome": "Error", "attempt": 1})
    collect(backend, 1)
    assert api_server.requests["list"] == lists


def test_an_object_deleted_by_hand_is_told_as_that(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec
) -> None:
    api_server.statuses = []
    backend = open_backend()
    backend.submit(request(spec, "r"))
    name = backend.object_name("r")
    api_server.wait_for(lambda: name in api_server.objects and api_server.watchers == 1)
    api_server.drop(name)
    (finished,) = collect(backend, 1)
    assert finished.status.outcome is Outcome.INFRASTRUCTURE_FAILED
    assert "deleted by somebody else" in finished.status.reason


def test_a_list_of_many_pages_is_read_to_its_end(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec
) -> None:
    backend = open_backend()
    for number in range(450):
        backend.submit(request(spec, f"r{number}"))
    collect(backend, 450)
    backend.detach()
    second = open_backend()
    assert len(second.adopt([f"r{number}" for number in range(440)])) == 440
    assert len(api_server.objects) == 440


def test_credentials_that_have_run_out_are_read_again(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec, kubeconfig: Path
) -> None:
    backend = open_backend()
    backend.submit(request(spec, "before"))
    collect(backend, 1)
    (kubeconfig.parent / "token").write_text("second")
    api_server.do(lambda: setattr(api_server, "token", "second"))
    backend.submit(request(spec, "after"))
    collect(backend, 1)


def test_credentials_that_are_no_good_are_an_error_of_the_user(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec
) -> None:
    api_server.token = "another"
    backend = open_backend()
    backend.submit(request(spec, "r"))
    with pytest.raises(ClusterRefused, match="Unauthorized; log in to the cluster again"):
        backend.collect(120)


KILLED = """
import sys
from pathlib import Path
from mlwright_api.mltask import MLTaskSpec
from mlwright_sandbox.backend import SandboxRequest, TaskMounts
from mlwright_trainer.cluster.backend import ClusterBackend
from mlwright_trainer.cluster.kube import KubeRollouts
from mlwright_trainer.cluster.kubeconfig import Place
from mlwright_trainer.cluster.owner import Owner

spec = MLTaskSpec.model_validate_json(sys.argv[1])
task = TaskMounts(name="churn", spec=spec, public=Path(), private=Path())
backend = ClusterBackend(lambda: KubeRollouts.open(Place()), Owner("churn-run", "uid-of-the-run"), slots=8)
for number in range(5):
    backend.submit(SandboxRequest(rollout=f"r{number}", task=task, script="print(1)", seed=1))
backend.collect()
"""


def test_a_killed_process_loses_nothing_and_runs_nothing_twice(
    api_server: Server, open_backend: Opener, spec: MLTaskSpec, kubeconfig: Path
) -> None:
    """Killed for real while its five run: one ends meanwhile, and one had been committed, but not released."""
    api_server.statuses = []
    process = subprocess.Popen([sys.executable, "-c", KILLED, spec.model_dump_json()])
    try:
        api_server.wait_for(lambda: len(api_server.objects) == 5)
    finally:
        process.kill()
        process.wait()
    backend = open_backend()
    api_server.say(backend.object_name("r1"), {"outcome": "Error", "attempt": 1})
    assert backend.adopt(["r1", "r2", "r3", "r4"]) == ["r1", "r2", "r3", "r4"]
    assert backend.object_name("r0") not in api_server.objects
    for number in range(1, 5):
        backend.submit(request(spec, f"r{number}"))
    first = collect(backend, 1)
    for number in range(2, 5):
        api_server.say(backend.object_name(f"r{number}"), {"outcome": "Scored", "attempt": 1})
    found = first + collect(backend, 3)
    assert sorted(each.rollout for each in found) == ["r1", "r2", "r3", "r4"]
    assert first[0].rollout == "r1"
    assert sorted(api_server.objects) == sorted(backend.object_name(f"r{number}") for number in range(1, 5))
    assert {live["metadata"]["uid"] for live in api_server.objects.values()} <= {
        f"uid-{n}" for n in range(1, 6)
    }
