"""The part of a pod's status that decides how an attempt ended, and the same made from local processes."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict

from mlwright_api.base import ApiModel

AGENT = "agent"
"""The container with the runner and the script."""
GRADER = "grader"
"""The container with the answers, and none of the agent's code."""
IMAGE_REASONS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ImageInspectError",
        "ErrImageNeverPull",
        "InvalidImageName",
        "RegistryUnavailable",
        "SignatureValidationFailed",
    }
)
"""Why a container waits for its image: the kubelet's reasons."""


class _Observed(ApiModel):
    """What an API server returns has more fields than we read."""

    model_config = ConfigDict(extra="ignore")


class PodCondition(_Observed):
    type: str
    status: str
    reason: str | None = None
    message: str | None = None


class ContainerStateWaiting(_Observed):
    reason: str | None = None
    message: str | None = None


class ContainerStateRunning(_Observed):
    started_at: datetime | None = None


class ContainerStateTerminated(_Observed):
    exit_code: int
    signal: int | None = None
    reason: str | None = None
    message: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """From start to finish, where both are known."""
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds()


class ContainerState(_Observed):
    waiting: ContainerStateWaiting | None = None
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None


class ContainerStatus(_Observed):
    name: str
    state: ContainerState = ContainerState()


class PodStatus(_Observed):
    """The part of a pod's status that decides, under Kubernetes' own names."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] | None = None
    reason: str | None = None
    message: str | None = None
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []

    def state(self, container: str) -> ContainerState:
        """The state of a container; an empty one where the pod does not report it."""
        return next(
            (each.state for each in self.container_statuses if each.name == container), ContainerState()
        )


def local_pod_status(
    *,
    runner_exit: int | None = 0,
    grader_exit: int | None = 0,
    started_at: datetime | None = None,
    finished_at: datetime | None = None,
    out_of_memory: bool = False,
    cancelled: bool = False,
    failure: str = "",
) -> PodStatus:
    """The status that a pod would have had whose containers ended as these local processes did.

    `runner_exit` and `grader_exit` are Python return codes (-9: killed by signal 9) of the runner itself, and not
    of the script, and of the grader; None: it never ran. `out_of_memory`: the kernel ended the sandbox for its
    memory. `cancelled`: we ended it. `failure`: why the sandbox could not be made, or broke, through no fault
    of the script.
    """
    if failure:
        return PodStatus(phase="Failed", reason="SandboxFailed", message=failure)
    agent_reason = "OOMKilled" if out_of_memory else None
    containers = [
        ContainerStatus(name=AGENT, state=_local_state(runner_exit, agent_reason, started_at, finished_at)),
        ContainerStatus(name=GRADER, state=_local_state(grader_exit, None, None, None)),
    ]
    clean = runner_exit == 0 and grader_exit in (0, None) and not out_of_memory and not cancelled
    return PodStatus(
        phase="Succeeded" if clean else "Failed",
        reason="Cancelled" if cancelled else None,
        container_statuses=containers,
    )


def _local_state(
    returned: int | None, reason: str | None, started_at: datetime | None, finished_at: datetime | None
) -> ContainerState:
    if returned is None:
        return ContainerState()
    signal = -returned if returned < 0 else None
    return ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=returned if signal is None else 128 + signal,
            signal=signal,
            reason=reason or ("Completed" if returned == 0 else "Error"),
            started_at=started_at,
            finished_at=finished_at,
        )
    )
