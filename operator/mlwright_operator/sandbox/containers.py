"""The containers of a sandbox pod: the agent with the script, and the grader with the answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlwright_api.mltask import Split, TaskData, TaskLimits
from mlwright_api.podstatus import AGENT, GRADER

from mlwright_operator.config import SandboxProfile
from mlwright_operator.sandbox import volumes
from mlwright_operator.sandbox.limits import (
    Amounts,
    agent_amounts,
    grader_amounts,
    grader_wait_seconds,
    guaranteed,
)

Json = dict[str, Any]

USER = 65532
"""Of both containers, and of the image: what the runner hides from the script is readable by its own user only."""
MESSAGE = "/dev/termination-log"
SAMPLE_FILE = "sample_submission.csv"
"""In every task's public folder."""
_CHECKED_SPLITS = (Split.REWARD, Split.SELECTION)


def sandbox_containers(
    data: TaskData, limits: TaskLimits, profile: SandboxProfile, splits: Sequence[Split]
) -> list[Json]:
    """Agent first: the kubelet starts them in order, and the grader waits for the agent's lock."""
    waiting = ["--wait", f"{volumes.CONTROL}/lock", "--wait-seconds", str(grader_wait_seconds(limits))]
    return [
        _container(
            AGENT,
            command=_python("mlwright_sandbox.agent"),
            mounts=volumes.agent_mounts(data),
            amounts=agent_amounts(limits, profile),
            profile=profile,
        ),
        _container(
            GRADER,
            command=[*_grader(volumes.WORK, splits), *waiting],
            mounts=volumes.grader_mounts(data),
            amounts=grader_amounts(profile),
            profile=profile,
        ),
    ]


def task_check_container(data: TaskData, profile: SandboxProfile) -> Json:
    """The same grader, with the task's public folder as the work of a script that copied the sample."""
    folder = volumes.regular_files_folder(volumes.PUBLIC, data.public)
    return _container(
        GRADER,
        command=[*_grader(folder, _CHECKED_SPLITS), "--submission", SAMPLE_FILE],
        mounts=volumes.task_check_mounts(data),
        amounts=grader_amounts(profile),
        profile=profile,
    )


def _python(module: str) -> list[str]:
    """Isolated: neither the environment nor the working directory says what is imported."""
    return ["python3", "-I", "-m", module]


def _grader(work: str, splits: Sequence[Split]) -> list[str]:
    options = {
        "--task": f"{volumes.REQUEST}/task.json",
        "--public": volumes.PUBLIC,
        "--private": volumes.PRIVATE,
        "--work": work,
        "--splits": ",".join(splits),
        "--result": MESSAGE,
    }
    return [*_python("mlwright_sandbox.grader"), *(word for pair in options.items() for word in pair)]


def _container(
    name: str, *, command: list[str], mounts: list[Json], amounts: Amounts, profile: SandboxProfile
) -> Json:
    return {
        "name": name,
        "image": profile.image,
        "imagePullPolicy": profile.image_pull_policy,
        "command": command,
        "workingDir": "/",
        "volumeMounts": mounts,
        "resources": guaranteed(amounts),
        "securityContext": _container_security(),
        "terminationMessagePath": MESSAGE,
        "terminationMessagePolicy": "File",
    }


def identity() -> Json:
    """Who every process is, said of the pod and again of each container, where it would win."""
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _container_security() -> Json:
    return identity() | {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
