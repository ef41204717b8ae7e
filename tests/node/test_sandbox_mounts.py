"""Sandbox pods on a real node: every mount is there for whom it is meant, and the pod that runs is the one sent.

The image is a tiny one that reads a file into its termination message: what is tested is the pod around it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mlwright_cluster.cluster import Cluster
from mlwright_cluster.images import write_program_image
from mlwright_cluster.node import PAUSE_IMAGE
from mlwright_cluster.volumes import host_volume
from mlwright_operator.config import SandboxProfile
from mlwright_operator.sandbox import template, weakened
from pod_standards import violations
from sandbox_pods import NAMESPACE, ROLLOUT, TASK, changed, job

Json = dict[str, Any]

pytestmark = pytest.mark.node

SMALL = {"timeoutSeconds": 30, "cpu": "100m", "memory": "32Mi", "workSize": "16Mi"}
PROFILE = SandboxProfile.model_validate(
    {
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "Never",
        "graderCpu": "100m",
        "graderMemory": "96Mi",
        "overheadMemory": "32Mi",
    }
)
PUBLIC, PRIVATE, SEALED = "x,y\n", "id,y,split\n", "id,y\n"
IMAGES = {name: f"localhost/mlwright-sandbox-mounts-{name}:1" for name in ("public", "private")}
SOURCES: dict[str, Json] = {
    "claim": TASK["data"],
    "image": {name: {"image": IMAGES[name]} for name in IMAGES},
    "config map": {name: {"configMap": f"wine-{name}"} for name in ("public", "private")},
}
NOTHING = "open {}: no such file or directory"
"""Said where the file is not there for the container."""


@dataclass(frozen=True)
class Reading:
    """What the two containers try to read, and what they get."""

    agent: str
    agent_reads: str
    grader: str
    grader_reads: str


READINGS = {
    "data": Reading("/public/train.csv", PUBLIC, "/private/answers.csv", PRIVATE),
    "the wrong data": Reading("/private/answers.csv", NOTHING, "/public/train.csv", PUBLIC),
    "what is not mounted": Reading("/sealed/answers.csv", NOTHING, "/work/script.py", NOTHING),
    "requests": Reading(
        "/request/files.json",
        json.dumps(ROLLOUT["files"], separators=(",", ":")).replace("{", "{{").replace("}", "}}"),
        "/request/files.json",
        NOTHING,
    ),
    "the other's request": Reading("/request/task.json", NOTHING, "/request/job.json", NOTHING),
    "the host's files": Reading(
        "/etc/hostname", "sandbox\n", "/var/run/secrets/kubernetes.io/serviceaccount/token", NOTHING
    ),
    "names": Reading(
        "/etc/resolv.conf", "nameserver 127.0.0.1\n", "/etc/resolv.conf", "nameserver 127.0.0.1\n"
    ),
}
CASES = [("claim", name) for name in READINGS] + [("image", "data"), ("config map", "data")]
USERS = "users"
READINGS[USERS] = Reading("/proc/self/uid_map", "", "/proc/self/uid_map", "")


def sent_job(source: str, reading: str) -> Json:
    """The Job as it is built, with programs that read instead of ours."""
    task = changed(changed(TASK, "data", SOURCES[source]), "limits", SMALL)
    made = job(task=task, profile=PROFILE)
    made["metadata"]["name"] = f"{source}-{reading}".replace(" ", "-").replace("'", "")
    del made["metadata"]["ownerReferences"]
    for container, path in zip(
        template(made)["spec"]["containers"], (READINGS[reading].agent, READINGS[reading].grader), strict=True
    ):
        del container["command"]
        container["args"] = ["read", path]
    return made


@pytest.fixture(scope="module")
def pods(node: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Json]]:
    """Every case's pod after its end, by name of the Job."""
    _prepare(node, tmp_path_factory.mktemp("data"))
    sent = [sent_job(*case) for case in (*CASES, ("claim", USERS))]
    node.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": sent}))
    for each in sent:
        # A Job has a condition once both containers of its pod have ended.
        ended = "--for=jsonpath={.status.conditions[0].type}"
        name = f"job/{each['metadata']['name']}"
        node.kubectl("-n", NAMESPACE, "wait", name, ended, "--timeout=180s")
    found = json.loads(node.kubectl("-n", NAMESPACE, "get", "pods", "--output=json"))["items"]
    yield {each["metadata"]["labels"]["job-name"]: each for each in found}
    node.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
    node.kubectl("delete", f"pv/{NAMESPACE}-wine", "--wait=false")


def _prepare(node: Cluster, folder: Path) -> None:
    for name, file, text in (
        ("public", "train.csv", PUBLIC),
        ("private", "answers.csv", PRIVATE),
    ):
        place = folder / "wine" / name
        place.mkdir(parents=True)
        (place / file).write_text(text)
        write_program_image(folder / f"{name}.tar", name=IMAGES[name], program=place / file)
        node.load_image(folder / f"{name}.tar")
    for path in (folder, *folder.parents[:2], *folder.rglob("*")):
        path.chmod(path.stat().st_mode | 0o055)
    space = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": NAMESPACE, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
    }
    maps = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"wine-{name}", "namespace": NAMESPACE},
            "data": {file: text},
        }
        for name, file, text in (("public", "train.csv", PUBLIC), ("private", "answers.csv", PRIVATE))
    ]
    node.kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [space, *maps]})
    )
    node.kubectl("apply", "-f", "-", stdin=host_volume("wine", folder=folder, namespace=NAMESPACE))


def said(pod: Json, container: str) -> str:
    (status,) = (each for each in pod["status"]["containerStatuses"] if each["name"] == container)
    return str(status["state"]["terminated"].get("message", ""))


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_a_container_reads_what_is_meant_for_it_and_nothing_else(
    pods: dict[str, Json], case: tuple[str, str]
) -> None:
    pod = pods[sent_job(*case)["metadata"]["name"]]
    reading = READINGS[case[1]]
    assert said(pod, "agent") == reading.agent_reads.format(reading.agent)
    assert said(pod, "grader") == reading.grader_reads.format(reading.grader)


def test_root_in_the_pod_is_nobody_on_the_node(pods: dict[str, Json]) -> None:
    pod = pods[sent_job("claim", USERS)["metadata"]["name"]]
    inside, outside, _ = said(pod, "agent").split()
    assert inside == "0"
    assert int(outside) > 2**16


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_the_pod_that_ran_is_the_one_that_was_sent(pods: dict[str, Json], case: tuple[str, str]) -> None:
    sent = sent_job(*case)
    pod = pods[sent["metadata"]["name"]]
    assert pod["spec"]["nodeName"]
    assert weakened(template(sent), pod) == ()
    assert violations(pod) == []
    assert pod["status"]["qosClass"] == "Guaranteed"
