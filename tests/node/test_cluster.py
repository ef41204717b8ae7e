"""The cluster that the other tests here run pods on: it is a node, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mlwright_cluster import machine
from mlwright_cluster.cluster import Cluster, down, supervisor_of, up
from mlwright_cluster.images import write_program_image
from mlwright_cluster.node import KERNEL_SETTINGS, PAUSE_IMAGE
from mlwright_cluster.plan import Layout, Level
from mlwright_cluster.volumes import host_volume

pytestmark = [pytest.mark.node, pytest.mark.own_node]

HARDENED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def pod(name: str, *arguments: str, volume: dict[str, Any] | None = None, **spec: Any) -> str:
    """A hardened pod that runs the tiny image with the arguments; its volume, if any, is at /data."""
    container = {
        "name": "main",
        "image": PAUSE_IMAGE,
        "imagePullPolicy": "Never",
        "args": list(arguments),
        "securityContext": HARDENED,
        "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}] if volume else [],
    }
    volumes = [{"name": "data"} | volume] if volume else []
    base = {"restartPolicy": "Never", "containers": [container], "volumes": volumes}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name},
            "spec": base | {"terminationGracePeriodSeconds": 0} | spec,
        }
    )


def run_pod(cluster: Cluster, name: str, *arguments: str, phase: str = "Succeeded", **spec: Any) -> str:
    """Runs a pod to the phase and returns its termination message."""
    cluster.kubectl("apply", "-f", "-", stdin=pod(name, *arguments, **spec))
    try:
        cluster.kubectl("wait", f"pod/{name}", f"--for=jsonpath={{.status.phase}}={phase}", "--timeout=120s")
        message = "{.status.containerStatuses[0].state.terminated.message}"
        return cluster.kubectl("get", f"pod/{name}", f"--output=jsonpath={message}")
    finally:
        cluster.kubectl("delete", f"pod/{name}", "--wait=false")


def traces(cluster: Cluster) -> list[str]:
    """What of a cluster can be seen on this machine."""
    name = machine.short_name(cluster.folder)
    cgroups = machine.cgroup_folders(name, Path("/proc/self/mountinfo").read_text())
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    mounts = Path("/proc/self/mountinfo").read_text()
    return [
        *(f"cgroup {folder}" for folder in cgroups if folder.exists()),
        *(f"interface {path.name}" for path in Path("/sys/class/net").iterdir() if path.name == name),
        *(f"process {line}" for line in commands.splitlines() if str(cluster.folder) in line),
        *(
            f"mount {line}"
            for line in mounts.splitlines()
            if str(cluster.folder) in line or "mlwright-" in line
        ),
        *([f"folder {cluster.folder}"] if cluster.folder.exists() else []),
    ]


def test_its_node_is_ready(node: Cluster) -> None:
    assert f"node/{node.node_name}" in node.kubectl("get", "nodes", "--output=name")
    node.kubectl("wait", "--for=condition=Ready", f"node/{node.node_name}", "--timeout=10s")


def test_a_hardened_pod_runs_to_its_end(node: Cluster) -> None:
    assert run_pod(node, "say", "say", "hello") == "hello"


def test_a_pod_may_have_a_user_namespace_of_its_own(node: Cluster) -> None:
    inside, outside, count = run_pod(node, "users", "read", "/proc/self/uid_map", hostUsers=False).split()
    assert (inside, count) == ("0", "65536")
    assert int(outside) >= 65536


def test_a_pod_reaches_a_service_address(node: Cluster) -> None:
    assert run_pod(node, "dial", "dial", "10.96.0.1:443") == "connected to 10.96.0.1:443"


def test_a_pod_does_not_reach_the_world(node: Cluster) -> None:
    message = run_pod(node, "world", "dial", "192.0.2.1:443", phase="Failed")
    assert "timeout" in message or "unreachable" in message


def test_a_job_makes_its_pod_and_a_deleted_job_takes_it_away(node: Cluster) -> None:
    node.kubectl("create", "job", "job", f"--image={PAUSE_IMAGE}", "--", "/pause", "say", "done")
    node.kubectl("wait", "job/job", "--for=condition=Complete", "--timeout=120s")
    node.kubectl("delete", "job", "job", "--cascade=foreground", "--timeout=60s")
    assert node.kubectl("get", "pods", "--selector=job-name=job", "--output=name") == ""


def test_a_folder_of_the_node_is_a_volume(node: Cluster, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b\n")
    open_to_all(tmp_path)
    node.kubectl("apply", "-f", "-", stdin=host_volume("data", folder=tmp_path, namespace="default"))
    node.kubectl("wait", "pvc/data", "--for=jsonpath={.status.phase}=Bound", "--timeout=60s")
    source = {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
    assert run_pod(node, "claim", "read", "/data/train.csv", volume=source) == "a,b\n"
    node.kubectl("delete", "pvc/data", "pv/default-data", "--wait=false")


def open_to_all(folder: Path) -> None:
    """pytest's folders are its user's own; a pod has another user."""
    for path in (folder, *folder.parents[:2]):
        path.chmod(path.stat().st_mode | 0o055)


def test_an_image_is_a_volume(node: Cluster, tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("c,d\n")
    name = "localhost/mlwright-test-data:1"
    write_program_image(tmp_path / "data.tar", name=name, program=tmp_path / "train.csv")
    node.load_image(tmp_path / "data.tar")
    source = {"image": {"reference": name, "pullPolicy": "Never"}}
    assert run_pod(node, "image-volume", "read", "/data/train.csv", volume=source) == "c,d\n"


def test_the_machines_own_kernel_settings_are_not_touched(tmp_path: Path) -> None:
    before = {name: Path("/proc/sys", name).read_text() for name in KERNEL_SETTINGS}
    forwarding = Path("/proc/sys/net/ipv4/ip_forward").read_text()
    up(Level.NODE, tmp_path / "cluster")
    try:
        assert {name: Path("/proc/sys", name).read_text() for name in KERNEL_SETTINGS} == before
        assert Path("/proc/sys/net/ipv4/ip_forward").read_text() == forwarding
    finally:
        down(tmp_path / "cluster")


def test_it_survives_its_parts_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """Up twice is one cluster; killed whole, it comes back with its objects; down leaves no trace, twice as well."""
    cluster = up(Level.NODE, tmp_path / "cluster")
    try:
        first = supervisor_of(cluster.layout)
        assert up(Level.NODE, cluster.folder) == cluster
        assert supervisor_of(cluster.layout) == first
        assert first is not None
        cluster.kubectl("create", "configmap", "kept")
        with cluster.without("containerd"):
            assert cluster.is_running()
        assert run_pod(cluster, "before", "say", "before") == "before"
        os.kill(first.pid, signal.SIGKILL)
        machine.wait_until(lambda: not processes(cluster), what="the end of every process")
        assert up(Level.NODE, cluster.folder) == cluster
        assert "kept" in cluster.kubectl("get", "configmaps", "--output=name")
        assert run_pod(cluster, "after", "say", "after") == "after"
    finally:
        assert down(cluster.folder)
    assert traces(cluster) == []
    assert not down(cluster.folder)


def processes(cluster: Cluster) -> list[str]:
    return [trace for trace in traces(cluster) if trace.startswith("process")]


@pytest.mark.parametrize("level", list(Level))
def test_a_cluster_ends_with_the_process_that_started_it_also_when_that_is_killed(
    tmp_path: Path, level: Level
) -> None:
    folder = tmp_path / "cluster"
    code = f"""
import signal
from pathlib import Path
from mlwright_cluster.cluster import up
from mlwright_cluster.plan import Level
up(Level({str(level)!r}), Path({str(folder)!r}))
print("up", flush=True)
signal.pause()
"""
    environment = os.environ | {"PYTHONPATH": str(Path(machine.__file__).parents[1])}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True
    ) as starter:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "up\n"
        supervisor = supervisor_of(Layout(folder))
        assert supervisor is not None
        starter.kill()
    machine.wait_until(lambda: not supervisor.is_alive(), what="the supervisor's end")
    assert down(folder)
