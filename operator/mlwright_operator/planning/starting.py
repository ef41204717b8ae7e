"""How far an attempt is: what its Job and pod say before they have ended, in one condition."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mlwright_api.base import Condition
from mlwright_api.podstatus import IMAGE_REASONS, ContainerStatus, PodStatus

from mlwright_operator.observed import SeenJob, SeenPod
from mlwright_operator.planning.conditions import Said

STARTED = "Started"

_HARMLESS = frozenset({"ContainerCreating", "PodInitializing"})
_RUNTIME = frozenset({"CreateContainerError", "RunContainerError", "StartError", "ContainerCannotRun"})
_USER_NAMESPACES = re.compile(
    r"user namespaces? (is |are )?not (supported|enabled)|not support(ed)? (user namespaces|idmap)"
    r"|idmap(ped)? mounts?\b",
    re.IGNORECASE,
)
"""Phrases, and only in what a runtime says: names that a user chose must not be able to bring about a fallback."""


def begun(job_name: str) -> Said:
    """Before anything is known of its pod."""
    return Said(
        STARTED,
        False,
        "Creating",
        f"Job {job_name} is made; if it has no pod for long, `kubectl describe job {job_name}` says why",
    )


def progress(job: SeenJob, pod: SeenPod | None, before: Condition | None, *, container: str) -> Said:
    """The condition Started of an attempt that is not over; `container` is the one that matters.

    `before`: the same condition as it stands.
    """
    if pod is None:
        return begun(job.ref.name)
    state = pod.status.state(container)
    if state.running is not None or state.terminated is not None:
        return Said(STARTED, True, "Running")
    return _steady(_obstacle(pod.status) or begun(job.ref.name), before)


def _obstacle(pod: PodStatus) -> Said | None:
    for condition in pod.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return Said(STARTED, False, condition.reason or "Unschedulable", condition.message or "")
    return next((said for each in pod.container_statuses if (said := _held_up(each)) is not None), None)


def _held_up(container: ContainerStatus) -> Said | None:
    waiting = container.state.waiting
    if waiting is None or not waiting.reason or waiting.reason in _HARMLESS:
        return None
    reason = "ImagePullFailed" if waiting.reason in IMAGE_REASONS else "ContainerFailed"
    return Said(STARTED, False, reason, f"container {container.name}: {waiting.message or waiting.reason}")


def _steady(said: Said, before: Condition | None) -> Said:
    """Keeps the words of an image that cannot be pulled: the kubelet's go back and forth between tries."""
    same = before is not None and before.reason == said.reason == "ImagePullFailed"
    return Said(said.type, said.holds, said.reason, before.message) if same and before is not None else said


def lacks_user_namespaces(pod: SeenPod) -> str | None:
    """What the node said, if a pod with a user namespace of its own could not be started for that reason.

    Known forms: a container that could not be created or started, or a pod refused by the kubelet, in words that name
    user namespaces or idmapped mounts. A runtime that fails before there is a container is only heard of in Events,
    which are not read: such a pod runs into its deadline.
    """
    if pod.spec.get("hostUsers") is not False:
        return None
    return next((said for said in _complaints(pod.status) if _USER_NAMESPACES.search(said)), None)


def _complaints(pod: PodStatus) -> Iterator[str]:
    if pod.phase == "Failed" and not pod.container_statuses:
        yield pod.message or ""
    for container in pod.container_statuses:
        held = container.state.waiting or container.state.terminated
        if held is not None and held.reason in _RUNTIME:
            yield held.message or ""
