"""One Job for one attempt, built by pure functions: the whole hardening of a sandbox can be read here."""

from __future__ import annotations

from typing import Any

from mlwright_api.manifests import wire
from mlwright_api.mltask import MLTaskSpec, TaskData

from mlwright_operator.actions import Ref
from mlwright_operator.config import SandboxProfile
from mlwright_operator.errors import OperatorError
from mlwright_operator.observed import SeenRollout, SeenTask
from mlwright_operator.sandbox.containers import identity, sandbox_containers, task_check_container
from mlwright_operator.sandbox.limits import check_deadline_seconds, limits_of, pod_deadline_seconds
from mlwright_operator.sandbox.names import job_name, owner_reference, sandbox_labels, task_check_labels
from mlwright_operator.sandbox.requests import sandbox_requests, task_check_requests
from mlwright_operator.sandbox.volumes import sandbox_volumes, task_check_volumes

Json = dict[str, Any]

_GRACE_SECONDS = 5
_SERVICE_ACCOUNT = "default"
"""Every namespace has it; nothing in the pod can act as it, since no token is mounted."""


class NotBuildable(OperatorError):
    """Asked for the Job of an object that has no spec or no data: the planner should have said so to its owner."""


def sandbox_job(
    *,
    rollout: SeenRollout,
    task: SeenTask,
    profile: SandboxProfile,
    attempt: int,
    host_users: bool = False,
) -> Json:
    """The Job of a Rollout's attempt (from 1), in wire form; pure.

    `host_users`: do without a user namespace, where the profile leaves that open (WhenSupported).
    Errors: NotBuildable. Whether the limits are allowed (`over`) and the annotations fit (`too_large`) comes before.
    """
    spec, (asked, data) = rollout.spec, _judged(task)
    if spec is None:
        raise NotBuildable(f"Rollout {rollout.ref.name} has no valid spec: {rollout.problem}")
    limits = limits_of(spec, asked)
    pod = _pod(
        containers=sandbox_containers(data, limits, profile, spec.splits),
        volumes=sandbox_volumes(data, limits, profile),
        deadline_seconds=pod_deadline_seconds(limits, profile),
        profile=profile,
        host_users=host_users,
    )
    labels = sandbox_labels(rollout.ref, spec, attempt)
    return _job(rollout.ref, attempt, labels, sandbox_requests(spec, asked), pod)


def task_check_job(
    *, task: SeenTask, profile: SandboxProfile, attempt: int, host_users: bool = False
) -> Json:
    """The Job that grades a task's own sample submission, attempt by attempt; as sandbox_job."""
    asked, data = _judged(task)
    pod = _pod(
        containers=[task_check_container(data, profile)],
        volumes=task_check_volumes(data, profile),
        deadline_seconds=check_deadline_seconds(profile),
        profile=profile,
        host_users=host_users,
    )
    return _job(task.ref, attempt, task_check_labels(task.ref, attempt), task_check_requests(asked), pod)


def template(job: Json) -> Json:
    """What a Job's pod has to be like: its metadata and its spec."""
    found: Json = job["spec"]["template"]
    return found


def _judged(task: SeenTask) -> tuple[MLTaskSpec, TaskData]:
    if task.spec is None:
        raise NotBuildable(f"MLTask {task.ref.name} has no valid spec: {task.problem}")
    if task.spec.data is None:
        raise NotBuildable(f"MLTask {task.ref.name} has no data")
    return task.spec, task.spec.data


def _job(owner: Ref, attempt: int, labels: dict[str, str], requests: dict[str, str], pod: Json) -> Json:
    """One pod, once. No deadline of the Job's own: it would delete the pod with the evidence."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(owner, attempt),
            "namespace": owner.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": dict(labels), "annotations": requests}, "spec": pod},
        },
    }


def _pod(
    *,
    containers: list[Json],
    volumes: list[Json],
    deadline_seconds: int,
    profile: SandboxProfile,
    host_users: bool,
) -> Json:
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": deadline_seconds,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "containers": containers,
        "volumes": volumes,
        **_isolation(profile, host_users),
        **_placement(profile),
    }


def _isolation(profile: SandboxProfile, host_users: bool) -> Json:
    """What the pod can neither be nor reach. Host namespaces are left out, which is how the API says no."""
    return {
        "securityContext": identity(),
        "hostUsers": _shares_users(profile, host_users),
        "shareProcessNamespace": False,
        "serviceAccountName": _SERVICE_ACCOUNT,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "hostname": "sandbox",
        "setHostnameAsFQDN": False,
        "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["127.0.0.1"]},
    }


def _shares_users(profile: SandboxProfile, host_users: bool) -> bool:
    return profile.user_namespaces == "Off" or (host_users and profile.user_namespaces == "WhenSupported")


def _placement(profile: SandboxProfile) -> Json:
    """Where it runs and by which runtime: the platform's alone. Whether it preempts is its priority class's."""
    placed = {
        "runtimeClassName": profile.runtime_class,
        "priorityClassName": profile.priority_class,
        "nodeSelector": dict(profile.node_selector),
        "tolerations": [wire(each) for each in profile.tolerations],
        "imagePullSecrets": [{"name": name} for name in profile.image_pull_secrets],
    }
    return {key: value for key, value in placed.items() if value}
