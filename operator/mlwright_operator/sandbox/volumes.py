"""The pod's volumes, and who sees which: answers are the grader's, sealed ones nobody's."""

from __future__ import annotations

from typing import Any

from mlwright_api.mltask import DataVolume, TaskData, TaskLimits

from mlwright_operator.config import SandboxProfile
from mlwright_operator.sandbox.limits import CONTROL_SIZE, GRADER_TEMPORARY_SIZE
from mlwright_operator.sandbox.names import FILES_REQUEST, JOB_REQUEST, TASK_REQUEST

Json = dict[str, Any]

WORK, CONTROL, REQUEST = "/work", "/control", "/request"
PUBLIC, PRIVATE = "/public", "/private"
_TEMPORARY, _SHARED_MEMORY = "/tmp", "/dev/shm"
_READABLE = 0o444


def sandbox_volumes(data: TaskData, limits: TaskLimits, profile: SandboxProfile) -> list[Json]:
    """Of a Rollout's pod; only those of the task's data depend on a user, and only on where the data is."""
    size = str(limits.work_size.bytes)
    return [
        _memory("work", size),
        _memory("temporary", size),
        _memory("shared-memory", size),
        _memory("control", CONTROL_SIZE),
        _downward("job-request", {"job.json": JOB_REQUEST, "files.json": FILES_REQUEST}),
        *_of_the_grader(data, profile),
    ]


def task_check_volumes(data: TaskData, profile: SandboxProfile) -> list[Json]:
    """Of a task check: the grader's, without a work folder."""
    return _of_the_grader(data, profile)


def _of_the_grader(data: TaskData, profile: SandboxProfile) -> list[Json]:
    return [
        _memory("grader-temporary", GRADER_TEMPORARY_SIZE),
        _downward("task-request", {"task.json": TASK_REQUEST}),
        _data("public", data.public, profile),
        _data("private", data.private, profile),
    ]


def agent_mounts(data: TaskData) -> list[Json]:
    """What runner and script see; the runner takes control, request and message away from the script."""
    return [
        _writable("work", WORK),
        _writable("temporary", _TEMPORARY),
        _writable("shared-memory", _SHARED_MEMORY),
        _writable("control", CONTROL),
        _read_only("job-request", REQUEST),
        _data_mount("public", PUBLIC, data.public),
    ]


def grader_mounts(data: TaskData) -> list[Json]:
    """As task_check_mounts, with what the script left behind, and the lock that says when."""
    return [_read_only("work", WORK), _writable("control", CONTROL), *task_check_mounts(data)]


def task_check_mounts(data: TaskData) -> list[Json]:
    """What a grader sees in any case."""
    return [
        _writable("grader-temporary", _TEMPORARY),
        _read_only("task-request", REQUEST),
        _data_mount("public", PUBLIC, data.public),
        _data_mount("private", PRIVATE, data.private),
    ]


def regular_files_folder(mount: str, volume: DataVolume) -> str:
    """Where the files of a mounted volume are files: those of a configMap are links into its current version."""
    return f"{mount}/..data" if volume.config_map is not None else mount


def _memory(name: str, size: str) -> Json:
    return {"name": name, "emptyDir": {"medium": "Memory", "sizeLimit": size}}


def _downward(name: str, annotations: dict[str, str]) -> Json:
    items = [
        {"path": path, "fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.annotations['{key}']"}}
        for path, key in annotations.items()
    ]
    return {"name": name, "downwardAPI": {"defaultMode": _READABLE, "items": items}}


def _data(name: str, volume: DataVolume, profile: SandboxProfile) -> Json:
    if volume.image is not None:
        return {"name": name, "image": {"reference": volume.image, "pullPolicy": profile.image_pull_policy}}
    if volume.claim is not None:
        return {"name": name, "persistentVolumeClaim": {"claimName": volume.claim.name, "readOnly": True}}
    return {"name": name, "configMap": {"name": volume.config_map, "defaultMode": _READABLE}}


def _data_mount(name: str, path: str, volume: DataVolume) -> Json:
    folder = volume.claim.path if volume.claim is not None else ""
    return _read_only(name, path) | ({"subPath": folder} if folder else {})


def _writable(name: str, path: str) -> Json:
    return {"name": name, "mountPath": path}


def _read_only(name: str, path: str) -> Json:
    return _writable(name, path) | {"readOnly": True, "recursiveReadOnly": "IfPossible"}
