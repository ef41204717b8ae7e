"""Every way in which a sandbox pod ends, made on a real kubelet, and the outcome that it is classified as.

`MLWRIGHT_RECORD=1` makes the slow ones too, and writes all of them to tests/unit/api/recorded.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from mlwright_api.mltask import TaskLimits
from mlwright_cluster.cluster import Cluster
from mlwright_operator.actions import Kind, Ref
from mlwright_operator.config import SandboxProfile
from mlwright_operator.sandbox import sandbox_job
from mlwright_sandbox.backend import TaskMounts
from node_lab import Lab, mltask, open_lab, with_config_maps
from operator_process import get, until
from pod_endings import ENDINGS, NODE_GONE, PodEnding, script_runs
from pod_watch import PodWatch, watched
from recorded_pods import Recorded, verdict_of, without_noise, write
from sandbox_pods import ROLLOUT, changed, seen_rollout, seen_task

Json = dict[str, Any]

pytestmark = [pytest.mark.node, pytest.mark.own_node, pytest.mark.timeout(900)]

NAMESPACE = "endings"
RECORDING = os.environ.get("MLWRIGHT_RECORD", "") not in ("", "0")
MADE = [ending for ending in ENDINGS if RECORDING or not ending.slow]
CANNOT_START = ("Err", "Image", "StartError")
"""How the reasons begin by which a container that never runs is known; its pod has no last phase."""
LIMITS = {"timeoutSeconds": 200, "cpu": "200m", "memory": "256Mi", "workSize": "32Mi"}


def limits_of(ending: PodEnding) -> Json:
    return {**LIMITS, **dict(ending.limits)}


def job_of(ending: PodEnding, small: TaskMounts, profile: SandboxProfile) -> Json:
    """The Job of a Rollout, as the operator makes it, and then changed."""
    data = {part: {"configMap": f"small-{part}"} for part in ("public", "private")}
    task = seen_task(mltask(NAMESPACE, "small", small.spec, data, limits=limits_of(ending))["spec"])
    spec = changed(ROLLOUT, "files.0.content", ending.script)
    name = "-".join(ending.name.replace("'", "").split())
    ref = Ref(Kind.ROLLOUT, NAMESPACE, name, str(uuid.uuid5(uuid.NAMESPACE_DNS, name)))
    job = sandbox_job(rollout=replace(seen_rollout(spec), ref=ref), task=task, profile=profile, attempt=1)
    del job["metadata"]["ownerReferences"]
    ending.change(job)
    return job


@pytest.fixture(scope="module")
def endings(installed: Cluster, small: TaskMounts) -> Iterator[Lab]:
    """A namespace that no operator looks at."""
    lab = open_lab(installed, NAMESPACE)
    # Only their data: nobody reads the MLTask.
    lab.apply(*with_config_maps(NAMESPACE, "small", small)[:-1])
    yield lab
    installed.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")


@pytest.fixture(scope="module")
def pods(
    endings: Lab, installed: Cluster, small: TaskMounts, profile: dict[str, Any]
) -> Iterator[dict[str, Json]]:
    """Every ending's pod after its end, by the ending's name."""
    sandbox = SandboxProfile.model_validate(profile)
    jobs = {ending.name: job_of(ending, small, sandbox) for ending in MADE}
    with watched(installed, NAMESPACE) as watch:
        endings.apply(*jobs.values())
        waiting = {name: job["metadata"]["name"] for name, job in jobs.items()}
        for ending in sorted(MADE, key=lambda each: each.fault is None):
            if ending.fault is not None:
                disturb(installed, watch, ending, waiting[ending.name])
        yield {ending.name: ended(watch, ending, waiting[ending.name]) for ending in MADE}


def ended(watch: PodWatch, ending: PodEnding, job: str) -> Json:
    """Its pod after its end."""
    found: Json = until(
        lambda: at_end(watch.last(job), ending), what=f"the end of {ending.name}", seconds=400
    )
    return found


def disturb(node: Cluster, watch: PodWatch, ending: PodEnding, job: str) -> None:
    """Do to its pod what is to be done, once its script runs."""
    assert ending.fault is not None
    until(lambda: script_runs(node, watch.last(job)), what=f"the script of {ending.name}", seconds=200)
    ending.fault(node, watch.last(job))


def at_end(pod: Json, ending: PodEnding) -> Json | None:
    """The pod, if its status is the last one that says anything."""
    status = pod.get("status", {})
    if ending.over:
        return pod if status.get("phase") in ("Succeeded", "Failed") else None
    states = [state for each in status.get("containerStatuses", []) for state in each["state"].values()]
    return pod if any(state.get("reason", "").startswith(CANNOT_START) for state in states) else None


def keep(node: Cluster, ending: PodEnding, status: Json, limits: TaskLimits) -> None:
    """Write down what was seen, if that is asked for."""
    if not RECORDING:
        return
    verdict = verdict_of(status, limits)
    version = get(node, "node", "default", node.node_name)["status"]["nodeInfo"]
    versions = f"Kubernetes {version['kubeletVersion']}, {version['containerRuntimeVersion']}, cgroup v1"
    outcome, reason = verdict.outcome.value, verdict.reason
    write(Recorded(ending.name, "recorded", ending.note, versions, limits, outcome, reason, status))


@pytest.mark.parametrize("ending", MADE, ids=lambda ending: ending.name)
def test_a_pod_that_ended_so_has_this_outcome(
    pods: dict[str, Json], installed: Cluster, ending: PodEnding
) -> None:
    status = without_noise(pods[ending.name]["status"], node=installed.node_name)
    limits = TaskLimits.model_validate(limits_of(ending))
    verdict = verdict_of(status, limits)
    assert (verdict.outcome, verdict.reason[: len(ending.reason)]) == (ending.outcome, ending.reason), status
    keep(installed, ending, status, limits)


def is_given_up(status: Json) -> bool:
    """Whether the control plane has said that this pod is to go."""
    return any(each["type"] == "DisruptionTarget" for each in status.get("conditions", []))


if RECORDING:  # It takes the node away from everybody, for minutes.

    def test_a_pod_whose_node_is_gone_has_this_outcome(
        endings: Lab, installed: Cluster, small: TaskMounts, profile: dict[str, Any]
    ) -> None:
        job = job_of(NODE_GONE, small, SandboxProfile.model_validate(profile))
        with watched(installed, NAMESPACE) as watch:
            endings.apply(job)
            disturb(installed, watch, NODE_GONE, job["metadata"]["name"])
            states = [each["status"] for each in watch.states(job["metadata"]["name"])]
        gone = next(each for each in states if is_given_up(each))
        status = without_noise(gone, node=installed.node_name)
        limits = TaskLimits.model_validate(limits_of(NODE_GONE))
        assert verdict_of(status, limits).outcome is NODE_GONE.outcome, status
        keep(installed, NODE_GONE, status, limits)
