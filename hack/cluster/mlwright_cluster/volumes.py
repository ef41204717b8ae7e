"""Volumes for tests: folders of the node as persistent volumes with their claims, since nothing provisions them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path


def host_volume(
    name: str, *, folder: Path, namespace: str, labels: Mapping[str, str] | None = None, size: str = "1Gi"
) -> str:
    """A persistent volume on a folder of the node, and a claim of the same name bound to it: for `kubectl apply`.

    One node: so ReadWriteMany holds. The folder stays when the claim goes. labels: the claim's.
    """
    volume = f"{namespace}-{name}"
    shape = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    capacity = {"storage": size}
    items = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": volume},
            "spec": shape
            | {
                "capacity": capacity,
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": str(folder), "type": "Directory"},
                "claimRef": {"namespace": namespace, "name": name},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace, "labels": dict(labels or {})},
            "spec": shape | {"volumeName": volume, "resources": {"requests": capacity}},
        },
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
