"""What a sandbox is asked to do: JSON in the pod's annotations, read in the pod through the downward API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskSpec
from mlwright_api.rollout import RolloutSpec

from mlwright_operator.sandbox.limits import limits_of
from mlwright_operator.sandbox.names import FILES_REQUEST, JOB_REQUEST, TASK_REQUEST

ANNOTATIONS_BYTES = 256 * 1024 - 16 * 1024
"""What the API server lets an object carry, less what others (network plug-ins) may want to add."""


def sandbox_requests(rollout: RolloutSpec, task: MLTaskSpec) -> dict[str, str]:
    """The annotations of a Rollout's pod: the script goes to the agent, the task to the grader."""
    return {
        JOB_REQUEST: _json(job_request(rollout, task)),
        FILES_REQUEST: _json([{"path": each.path, "content": each.content} for each in rollout.files]),
        TASK_REQUEST: _json(task_request(task)),
    }


def task_check_requests(task: MLTaskSpec) -> dict[str, str]:
    """The annotation of a task check's pod."""
    return {TASK_REQUEST: _json(task_request(task))}


def job_request(rollout: RolloutSpec, task: MLTaskSpec) -> dict[str, Any]:
    """What the runner has to know; sizes in bytes."""
    limits = limits_of(rollout, task)
    return {
        "entrypoint": rollout.entrypoint,
        "seed": rollout.seed,
        "timeoutSeconds": limits.timeout_seconds,
        "memoryBytes": limits.memory.bytes,
        "workBytes": limits.work_size.bytes,
        "submission": task.submission.file_name,
        "instrument": rollout.instrumentation == "Static",
    }


def task_request(task: MLTaskSpec) -> dict[str, Any]:
    """What the grader has to know: the task without its prose, and without where its data comes from."""
    return wire(task.model_copy(update={"description": "-", "data": None}), defaults=False)


def too_large(annotations: Mapping[str, str]) -> str | None:
    """Why these annotations cannot be carried by a pod; None where they can."""
    sizes = {key: len(key.encode()) + len(value.encode()) for key, value in annotations.items()}
    if (total := sum(sizes.values())) <= ANNOTATIONS_BYTES:
        return None
    largest = max(sizes, key=sizes.__getitem__)
    what, where = ("task", "spec") if largest == TASK_REQUEST else ("rollout", "spec.files")
    return (
        f"{where} of the {what} is too large for a pod: {total} bytes as JSON, and at most {ANNOTATIONS_BYTES} "
        "can be carried; line breaks, quotes and control characters take two to six bytes each"
    )


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
