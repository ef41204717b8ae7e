"""What a sandbox may use: refusals say which limit and by how much, deadlines follow each other, memory adds up."""

from __future__ import annotations

import pytest
from mlwright_api.mltask import MLTaskSpec, TaskLimits
from mlwright_api.quantities import Quantity
from mlwright_api.rollout import RolloutSpec
from mlwright_operator.config import ProfileLimits, SandboxProfile
from mlwright_operator.sandbox.limits import (
    agent_amounts,
    check_deadline_seconds,
    grader_amounts,
    grader_wait_seconds,
    guaranteed,
    limits_of,
    over,
    pod_deadline_seconds,
)
from sandbox_pods import PROFILE, ROLLOUT, TASK, changed

GENEROUS = ProfileLimits()


def limits(**fields: object) -> TaskLimits:
    return TaskLimits.model_validate(fields)


def test_a_rollout_without_limits_has_the_tasks() -> None:
    spec, task = RolloutSpec.model_validate(ROLLOUT), MLTaskSpec.model_validate(TASK)
    assert limits_of(spec, task) == task.limits


def test_a_rollout_with_limits_has_its_own() -> None:
    spec = RolloutSpec.model_validate(changed(ROLLOUT, "limits", {"cpu": "1", "memory": "512Mi"}))
    assert limits_of(spec, MLTaskSpec.model_validate(TASK)).memory == "512Mi"


@pytest.mark.parametrize(
    ("field", "asked", "allowed", "said"),
    [
        ("timeoutSeconds", 61, 60, "timeoutSeconds 61 is above the task's 60"),
        ("cpu", "2001m", "2", "cpu 2001m is above the task's 2"),
        ("memory", "1025Mi", "1Gi", "memory 1025Mi is above the task's 1Gi"),
        ("workSize", "1G", "512Mi", "workSize 1G is above the task's 512Mi"),
        ("gpus", 1, 0, "gpus 1 is above the task's 0"),
    ],
)
def test_a_limit_above_the_tasks_is_named_with_both_amounts(
    field: str, asked: object, allowed: object, said: str
) -> None:
    assert over(limits(**{field: asked}), limits(**{field: allowed}), GENEROUS) == said


@pytest.mark.parametrize(
    ("asked", "allowed"),
    [("1024Mi", "1Gi"), ("1Gi", "1024Mi"), ("0.5Gi", "512Mi"), ("1000m", "1"), ("1", "1")],
)
def test_the_same_amount_written_otherwise_is_allowed(asked: str, allowed: str) -> None:
    assert over(limits(memory=asked), limits(memory=allowed), GENEROUS) is None


def test_a_byte_too_many_is_too_many_where_floats_cannot_tell() -> None:
    asked, most = limits(memory="9007199254740.993k"), limits(memory="9007199254740.992k")
    assert asked.memory.value == most.memory.value
    assert over(asked, most, ProfileLimits(memory=Quantity("1E")))


def test_a_task_cannot_give_more_than_the_platform() -> None:
    task = limits(memory="512Gi", cpu="128")
    assert over(task, task, GENEROUS) == (
        "cpu 128 is above the sandbox profile's 64; memory 512Gi is above the sandbox profile's 256Gi"
    )


@pytest.mark.parametrize("seconds", [0.001, 1, 59.5, 60, 86_400])
def test_the_runner_ends_before_the_grader_and_the_grader_before_the_pod(seconds: float) -> None:
    asked = limits(timeoutSeconds=seconds)
    assert seconds + 30 < grader_wait_seconds(asked) < pod_deadline_seconds(asked, PROFILE)


def test_the_pod_leaves_time_to_pull_and_to_grade() -> None:
    slow = PROFILE.model_copy(update={"starting_seconds": 1000, "grading_seconds": 500})
    asked = limits(timeoutSeconds=60)
    assert pod_deadline_seconds(asked, slow) - grader_wait_seconds(asked) == 1500
    assert check_deadline_seconds(slow) == 1500


def test_no_deadline_is_longer_than_the_api_can_say() -> None:
    patient = PROFILE.model_copy(update={"starting_seconds": 2**40})
    assert pod_deadline_seconds(limits(), patient) == check_deadline_seconds(patient) == 2**31 - 1


def test_the_work_folder_is_memory_on_top_of_the_scripts() -> None:
    profile = SandboxProfile(image="i", overhead_memory=Quantity("100Mi"))
    asked = limits(memory="1Gi", workSize="256Mi", cpu="1500m")
    assert agent_amounts(asked, profile) == {
        "cpu": "1500m",
        "memory": str((1024 + 256 + 100) * 1024**2),
        "ephemeral-storage": "64Mi",
    }


def test_amounts_are_rounded_up_to_what_a_kernel_can_hold() -> None:
    amounts = agent_amounts(limits(cpu="0.0001", memory="1.5"), PROFILE)
    assert amounts["cpu"] == "1m"
    assert int(amounts["memory"]) == 2 + 512 * 1024**2 + PROFILE.overhead_memory.bytes


def test_devices_are_asked_for_only_where_there_are_some() -> None:
    assert agent_amounts(limits(gpus=2), PROFILE)["nvidia.com/gpu"] == "2"
    assert "nvidia.com/gpu" not in agent_amounts(limits(gpus=0), PROFILE)
    assert "nvidia.com/gpu" not in grader_amounts(PROFILE)


def test_requests_equal_limits_and_are_another_object() -> None:
    both = guaranteed(grader_amounts(PROFILE))
    assert both["requests"] == both["limits"] == grader_amounts(PROFILE)
    assert both["requests"] is not both["limits"]
