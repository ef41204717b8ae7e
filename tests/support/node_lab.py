"""A namespace of a real node with tasks whose data are there, and what becomes of Rollouts in it."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import RolloutStatus
from mlwright_cluster.cluster import Cluster
from mlwright_cluster.given import GivenCluster
from mlwright_cluster.volumes import host_volume
from mlwright_sandbox.backend import TaskMounts
from mlwright_trainer.tasks.folder import DATA_FOLDERS, load_task
from mlwright_trainer.tasks.preparation import prepare_task
from operator_process import ROOT, create, get, until

Json = dict[str, Any]
API = "mlwright.dev/v1alpha1"
PATIENCE = 240.0
"""Seconds, for the end of a Rollout: two cores, shared."""
SCRIPT_SECONDS = 180
"""For a script that takes two: the machine that tests the node is busy with the tests."""
PROFILE: Mapping[str, Any] = {
    "imagePullPolicy": "Never",
    "graderCpu": "100m",
    "graderMemory": "512Mi",
    "userNamespaces": "Required",
}
"""Of sandboxes, but for the image: small, so that several fit onto two cores."""


@dataclass(frozen=True)
class Lab:
    """A namespace, and the digests of the tasks in it."""

    cluster: Cluster | GivenCluster
    namespace: str

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """As `kubectl apply` does."""
        self.cluster.kubectl("apply", "-f", "-", stdin=listed(objects))

    def digest(self, task: str) -> str:
        """Of an MLTask that is ready."""
        return str(get(self.cluster, "mltask", self.namespace, task)["status"]["digest"])

    def start(self, name: str, task: str, script: str, **spec: Any) -> None:
        """Create a Rollout."""
        create(
            self.cluster,
            rollout(self.namespace, name, task=task, digest=self.digest(task), script=script, **spec),
        )

    def status(self, name: str) -> Json:
        """Of a Rollout, as it is now."""
        found: Json = get(self.cluster, "rollout", self.namespace, name).get("status", {})
        return found

    def condition(self, kind: str, name: str, type: str) -> Json:
        """One condition; empty where nothing is said."""
        found = get(self.cluster, kind, self.namespace, name).get("status", {}).get("conditions", [])
        return next((each for each in found if each["type"] == type), {})

    def ended(self, name: str, *, seconds: float = PATIENCE) -> RolloutStatus:
        """The status of a Rollout once it has an outcome."""

        def status() -> Json | None:
            found = self.status(name)
            return found if found.get("outcome") else None

        found = until(status, what=f"an outcome of {name}", seconds=seconds)
        return RolloutStatus.model_validate(found)

    def ready(self, task: str) -> Json:
        """The status of an MLTask once it is ready."""

        def is_ready() -> bool:
            return self.condition("mltask", task, "Ready").get("status") == "True"

        until(is_ready, what=f"a task {task} that is ready", seconds=PATIENCE)
        found: Json = get(self.cluster, "mltask", self.namespace, task)["status"]
        return found

    def left(self) -> list[str]:
        """Jobs and pods that are there."""
        names = self.cluster.kubectl("get", "jobs,pods", "-n", self.namespace, "--output=name")
        return names.split()


def listed(objects: Iterable[Mapping[str, Any]]) -> str:
    """A List, for kubectl's standard input."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


def open_lab(cluster: Cluster | GivenCluster, namespace: str) -> Lab:
    """A new namespace that takes nothing but restricted pods."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata = {"name": namespace, "labels": labels}
    cluster.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--timeout=120s")
    create(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return Lab(cluster, namespace)


def rollout(namespace: str, name: str, *, task: str, digest: str, script: str, **spec: Any) -> Json:
    """A Rollout."""
    return {
        "apiVersion": API,
        "kind": "Rollout",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "taskRef": {"name": task, "digest": digest},
            "files": [{"path": "script.py", "content": script}],
            "seed": 7,
            **spec,
        },
    }


def mltask(namespace: str, name: str, spec: MLTaskSpec, data: Mapping[str, Any], **changes: Any) -> Json:
    """An MLTask of a folder's spec, with its volumes."""
    return {
        "apiVersion": API,
        "kind": "MLTask",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**wire(spec, defaults=False), "data": dict(data), **changes},
    }


def with_config_maps(namespace: str, name: str, mounts: TaskMounts, **changes: Any) -> list[Json]:
    """An MLTask whose data are small, and its ConfigMaps."""
    folders = {"public": mounts.public, "private": mounts.private}
    maps = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{name}-{part}", "namespace": namespace},
            "data": {path.name: path.read_text() for path in sorted(folder.iterdir())},
        }
        for part, folder in folders.items()
    ]
    data = {part: {"configMap": f"{name}-{part}"} for part in folders}
    return [*maps, mltask(namespace, name, mounts.spec, data, **changes)]


def prepared_example(name: str, folder: Path) -> Path:
    """An example task as git has it, but for its time limit, with its data, where a pod's user may read it."""
    target = folder / name
    ignored = shutil.ignore_patterns(*DATA_FOLDERS, "__pycache__")
    shutil.copytree(ROOT / "examples/tasks" / name, target, ignore=ignored)
    manifest = target / "task.yaml"
    manifest.write_text(
        re.sub(r"timeoutSeconds: .*", f"timeoutSeconds: {SCRIPT_SECONDS}", manifest.read_text())
    )
    prepare_task(target)
    for path in (target, *target.rglob("*"), *target.parents[:3]):
        path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
    return target


def with_claim(namespace: str, folder: Path) -> tuple[str, Json]:
    """The volume (for kubectl) and the MLTask of a prepared example, its data in one claim."""
    task = load_task(folder)
    volume = host_volume(
        task.name, folder=folder, namespace=namespace, labels={"mlwright.dev/task-data": "true"}
    )
    data = {part: {"claim": {"name": task.name, "path": part}} for part in DATA_FOLDERS}
    return volume, mltask(namespace, task.name, task.spec, data)
