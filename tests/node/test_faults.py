"""Whatever is killed, taken away or wrong on a real node: every script comes to one result, and nothing is left."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from local_pod import SUBMIT
from mlwright_api.rollout import Outcome
from mlwright_cluster.cluster import Cluster
from mlwright_cluster.volumes import host_volume
from mlwright_sandbox.backend import TaskMounts
from node_lab import Lab, mltask, open_lab, rollout, with_config_maps
from operator_process import OperatorProcess, create, get, operating, until
from pod_watch import PodWatch, watched

pytestmark = [pytest.mark.node, pytest.mark.own_node, pytest.mark.timeout(900)]

NUMBERS = itertools.count(1)
LIMITS = {"timeoutSeconds": 120, "cpu": "200m", "memory": "256Mi", "workSize": "32Mi"}
SECONDS = 30.0
"""For a condition to be said."""
LOST = 75
"""Exit code of an operator whose Lease is another's, or ran out."""
Ask = Callable[..., None]


def submit_after(seconds: float) -> str:
    """A script that takes its time."""
    return f"import time\ntime.sleep({seconds})\n{SUBMIT}"


def fresh(cluster: Cluster, namespace: str, small: TaskMounts) -> Lab:
    """A namespace with the task `small`, which nobody has checked as yet."""
    lab = open_lab(cluster, namespace)
    lab.apply(*with_config_maps(namespace, "small", small, limits=LIMITS))
    return lab


@pytest.fixture
def alone(installed: Cluster, small: TaskMounts) -> Iterator[Lab]:
    """A namespace of this test's own, without an operator."""
    lab = fresh(installed, f"alone-{next(NUMBERS)}", small)
    yield lab
    installed.kubectl("delete", "namespace", lab.namespace, "--wait=false")


@pytest.fixture(scope="module")
def field(installed: Cluster, small: TaskMounts) -> Iterator[Lab]:
    """The namespace of all tests that need nothing but an operator."""
    yield fresh(installed, "field", small)
    installed.kubectl("delete", "namespace", "field", "--wait=false")


def options(profile: dict[str, Any], **profiles: dict[str, Any]) -> dict[str, Any]:
    """Of an operator."""
    return {"profiles": {"default": profile, **profiles}, "config": "resyncSeconds: 5\n"}


def pods_of(watch: PodWatch, field: Lab) -> dict[str, set[str]]:
    """How many pods there have ever been, by Job."""
    return {job: {state["metadata"]["uid"] for state in watch.states(job)} for job in watch.jobs()}


def check_each_ended_once(field: Lab, watch: PodWatch, names: list[str]) -> None:
    """Scored in the first attempt, in one pod each, and nothing is left of them."""
    for name in names:
        status = field.ended(name, seconds=400)
        assert (status.outcome, status.attempt) == (Outcome.SCORED, 1), status
    until(lambda: field.left() == [], what="the end of every Job and pod")
    made = {job: uids for job, uids in pods_of(watch, field).items() if job.startswith("r")}
    assert len(made) == len(names)
    assert all(len(uids) == 1 for uids in made.values()), made


def test_an_operator_killed_again_and_again_runs_every_script_once(
    alone: Lab, profile: dict[str, Any], tmp_path: Path
) -> None:
    field, names = alone, [f"r{number}" for number in range(10)]
    operator = OperatorProcess(
        field.cluster, tmp_path, "--namespace", field.namespace, "--no-election", **options(profile)
    )
    with gone_afterwards(operator), watched(field.cluster, field.namespace) as watch:
        operator.start()
        field.ready("small")
        digest = field.digest("small")
        create(
            field.cluster,
            *(
                rollout(field.namespace, name, task="small", digest=digest, script=submit_after(1))
                for name in names
            ),
        )
        for ended in (0, 2, 5):
            until(partial(moved, field, watch, ended), what="some progress", seconds=200)
            operator.kill()
            operator.start()
        check_each_ended_once(field, watch, names)
        assert operator.errors() == []
        assert operator.stop() == 0


@contextmanager
def gone_afterwards(*operators: OperatorProcess) -> Iterator[None]:
    """However the test ends."""
    try:
        yield
    finally:
        for operator in operators:
            if operator.began and operator.ended is None:
                operator.kill()


def moved(field: Lab, watch: PodWatch, ended: int) -> bool:
    """Whether some more have ended or begun."""
    return outcomes(field) > ended or len(watch.jobs()) > 3 + ended


def outcomes(field: Lab) -> int:
    """How many Rollouts have ended."""
    found = get(field.cluster, "rollouts", field.namespace)
    return sum("outcome" in each.get("status", {}) for each in found)


def test_two_operators_and_an_api_server_that_is_away_for_a_minute(
    alone: Lab, profile: dict[str, Any], tmp_path: Path
) -> None:
    """Scripts end while nobody can hear of it; an operator that lost its Lease ends and is started again."""
    field, names = alone, [f"r{number}" for number in range(6)]
    operators = [
        OperatorProcess(field.cluster, tmp_path / name, "--namespace", field.namespace, **options(profile))
        for name in ("a", "b")
    ]
    with gone_afterwards(*operators):
        for operator in operators:
            operator.start()
        until(lambda: any(each.log("leading") for each in operators), what="a leader")
        field.ready("small")
        with watched(field.cluster, field.namespace) as watch:
            for name in names:
                field.start(name, "small", submit_after(10))
            until(lambda: len(watch.jobs()) >= 4, what="four pods")
            before = dict(pods_of(watch, field))
        began = time.monotonic()
        assert isinstance(field.cluster, Cluster)
        with field.cluster.without("kube-apiserver"):
            while time.monotonic() < began + 60:
                again = [each for each in operators if each.ended is not None]
                assert all(each.ended == LOST for each in again)
                time.sleep(1)
        for operator in operators:
            if operator.ended is not None:
                operator.start()
        for name in names:
            status = field.ended(name, seconds=400)
            assert (status.outcome, status.attempt) == (Outcome.SCORED, 1), status
        until(lambda: field.left() == [], what="the end of every Job and pod")
        assert all(len(uids) == 1 for uids in before.values())
        # The former leader may find the other in its place only by now.
        assert {each.ended for each in operators} in ({None}, {None, LOST})
        for operator in operators:
            assert (operator.ended or operator.stop()) in (0, LOST)


@pytest.fixture(scope="module")
def ask(field: Lab, profile: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Creates a Rollout in the field, where an operator is at work; `small` is ready."""
    missing = {**profile, "image": "localhost/mlwright-not-yet:1", "imagePullPolicy": "IfNotPresent"}
    arguments = ("--namespace", field.namespace, "--no-election")
    folder = tmp_path_factory.mktemp("field")
    with operating(field.cluster, folder, *arguments, **options(profile, missing=missing)):
        field.ready("small")

        def start(
            name: str, script: str = SUBMIT, *, task: str = "small", digest: str = "", **spec: Any
        ) -> None:
            found = digest or field.digest("small")
            create(
                field.cluster, rollout(field.namespace, name, task=task, digest=found, script=script, **spec)
            )

        yield start


def said(field: Lab, name: str, type: str, reason: str, *, kind: str = "rollout") -> str:
    """The message of a condition, once it has this reason."""
    found = until(
        lambda: (each := field.condition(kind, name, type)).get("reason") == reason and each,
        what=f"{type} of {name}: {reason}, not {field.condition(kind, name, type)}",
        seconds=SECONDS,
    )
    return str(found["message"])


def scored(field: Lab, name: str, *, attempt: int = 1) -> None:
    status = field.ended(name)
    assert (status.outcome, status.attempt) == (Outcome.SCORED, attempt), status


def test_a_pod_that_somebody_deletes_is_run_again(field: Lab, ask: Ask) -> None:
    with watched(field.cluster, field.namespace) as watch:
        ask("deleted", submit_after(8))
        until(lambda: watch.running(), what="a pod that runs", seconds=200)
        field.cluster.kubectl("delete", "pods", "--all", "-n", field.namespace, "--wait=false")
        scored(field, "deleted", attempt=2)
    until(lambda: field.left() == [], what="the end of every Job and pod")


def test_a_task_that_does_not_exist_is_waited_for(field: Lab, ask: Ask, small: TaskMounts) -> None:
    later = with_config_maps(field.namespace, "later", small, limits=LIMITS)
    # Data apart, the same task: so its digest is known before.
    field.apply(*with_config_maps(field.namespace, "known", small, limits=LIMITS))
    later[-1]["spec"]["data"] = {part: {"configMap": f"known-{part}"} for part in ("public", "private")}
    field.ready("known")
    ask("patient", task="later", digest=field.digest("known"))
    assert "'later'" in said(field, "patient", "Accepted", "TaskNotFound")
    field.apply(*later)
    scored(field, "patient")


def test_a_claim_that_is_missing_closed_or_unbound_is_said_and_its_mending_is_noticed(
    field: Lab, ask: Ask, small: TaskMounts, churn: Path
) -> None:
    data = {part: {"claim": {"name": "store", "path": part}} for part in ("public", "private")}
    field.apply(mltask(field.namespace, "stored", small.spec, data, limits=LIMITS))
    assert "'store'" in said(field, "stored", "Ready", "ClaimNotFound", kind="mltask")
    volume, claim = json.loads(host_volume("store", folder=small.public.parent, namespace=field.namespace))[
        "items"
    ]
    field.apply(claim)
    assert "mlwright.dev/task-data" in said(field, "stored", "Ready", "ClaimNotAllowed", kind="mltask")
    field.cluster.kubectl("label", "pvc/store", "mlwright.dev/task-data=true", "-n", field.namespace)
    said(field, "stored", "Ready", "ClaimNotBound", kind="mltask")
    field.apply(volume)
    open_to_all(small.public.parent)
    assert field.ready("stored")["sampleScores"] == {"Reward": 0.5, "Selection": 0.5}
    field.cluster.kubectl("delete", f"pv/{field.namespace}-store", "--wait=false")


def open_to_all(folder: Path) -> None:
    """pytest's folders are its user's own; a pod has another user."""
    for path in (folder, *folder.parents[:2], *folder.rglob("*")):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))


def test_an_image_that_cannot_be_pulled_is_said_and_its_arrival_noticed(
    field: Lab, ask: Ask, profile: dict[str, Any]
) -> None:
    assert isinstance(field.cluster, Cluster)
    ask("pulled", sandbox="missing")
    assert "mlwright-not-yet" in said(field, "pulled", "Started", "ImagePullFailed")
    field.cluster.ctr("images", "tag", profile["image"], "localhost/mlwright-not-yet:1")
    try:
        scored(field, "pulled")
    finally:
        field.cluster.ctr("images", "rm", "localhost/mlwright-not-yet:1")


def test_limits_above_the_tasks_are_refused_in_words(field: Lab, ask: Ask) -> None:
    """Both specs are immutable: there is nothing to mend, but to ask for less."""
    ask("large", limits={**LIMITS, "memory": "64Gi"})
    assert "memory 64Gi is above the task's 256Mi" in said(field, "large", "Accepted", "LimitsAboveTask")
    assert not [each for each in field.left() if "large" in each]


def test_a_resource_that_no_node_has_is_said_and_its_arrival_noticed(
    field: Lab, ask: Ask, small: TaskMounts
) -> None:
    field.apply(*with_config_maps(field.namespace, "fast", small, limits={**LIMITS, "gpus": 1}))
    field.ready("fast")
    ask("accelerated", task="fast", digest=field.digest("fast"))
    assert "nvidia.com/gpu" in said(field, "accelerated", "Started", "Unschedulable")
    node = f"node/{field.cluster.node_name}"
    patch = json.dumps([{"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "1"}])
    field.cluster.kubectl("patch", node, "--subresource=status", "--type=json", f"--patch={patch}")
    try:
        scored(field, "accelerated")
    finally:
        patch = json.dumps([{"op": "remove", "path": "/status/capacity/nvidia.com~1gpu"}])
        field.cluster.kubectl("patch", node, "--subresource=status", "--type=json", f"--patch={patch}")
