"""The Job of an attempt: one pod, once, with its evidence kept, and nothing of it a user's but data and amounts."""

from __future__ import annotations

import inspect
import json
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from mlwright_api.quantities import Quantity
from mlwright_operator.config import SandboxProfile, Toleration
from mlwright_operator.sandbox import NotBuildable, sandbox_job, task_check_job, template
from sandbox_pods import (
    NAMESPACE,
    PROFILE,
    ROLLOUT,
    TASK,
    changed,
    check_pod,
    container,
    job,
    pod,
    seen_rollout,
    seen_task,
)


def test_one_pod_is_run_once() -> None:
    spec = job()["spec"]
    spec.pop("template")
    assert spec == {"completions": 1, "parallelism": 1, "backoffLimit": 0, "podReplacementPolicy": "Failed"}


def test_the_evidence_of_a_late_pod_is_kept() -> None:
    made = job()
    assert "activeDeadlineSeconds" not in made["spec"]
    assert "ttlSecondsAfterFinished" not in made["spec"]
    assert made["spec"]["template"]["spec"]["activeDeadlineSeconds"] == 60 + 120 + 300 + 120


def test_the_job_is_in_the_rollouts_namespace_and_the_rollouts() -> None:
    metadata = job()["metadata"]
    assert metadata["namespace"] == NAMESPACE
    assert [each["kind"] for each in metadata["ownerReferences"]] == ["Rollout"]


def test_job_and_pod_carry_the_same_labels() -> None:
    for made in (job(), task_check_job(task=seen_task(), profile=PROFILE, attempt=1)):
        assert made["metadata"]["labels"] == template(made)["metadata"]["labels"]
        assert made["metadata"]["labels"] is not template(made)["metadata"]["labels"]


def test_building_twice_gives_the_same_and_changes_nothing() -> None:
    rollout, task = deepcopy(ROLLOUT), deepcopy(TASK)
    assert job(rollout, task) == job(rollout, task)
    assert (rollout, task) == (ROLLOUT, TASK)


def test_it_is_json() -> None:
    assert json.loads(json.dumps(job(), allow_nan=False)) == job()


def test_a_second_attempt_differs_in_its_number_only() -> None:
    first, second = job(attempt=1), job(attempt=2)
    assert second["metadata"]["name"].removesuffix("2") == first["metadata"]["name"].removesuffix("1")
    for made in (first, second):
        del made["metadata"]["name"]
        for labels in (made["metadata"]["labels"], template(made)["metadata"]["labels"]):
            del labels["mlwright.dev/attempt"]
    assert first == second


def test_the_agent_starts_first_and_knows_only_its_request() -> None:
    agent, grader = pod()["spec"]["containers"]
    assert (agent["name"], grader["name"]) == ("agent", "grader")
    assert agent["command"] == ["python3", "-I", "-m", "mlwright_sandbox.agent"]


def test_the_grader_waits_for_the_agents_lock() -> None:
    assert container(pod(), "grader")["command"] == [
        *["python3", "-I", "-m", "mlwright_sandbox.grader", "--task", "/request/task.json"],
        *["--public", "/public", "--private", "/private", "--work", "/work", "--splits", "Reward,Selection"],
        *["--result", "/dev/termination-log", "--wait", "/control/lock", "--wait-seconds", "180"],
    ]


def test_only_the_asked_splits_are_graded() -> None:
    command = container(pod(changed(ROLLOUT, "splits", ["Selection"])), "grader")["command"]
    assert command[command.index("--splits") + 1] == "Selection"


def test_a_check_grades_the_sample_and_waits_for_nobody() -> None:
    (grader,) = check_pod()["spec"]["containers"]
    assert grader["name"] == "grader"
    assert grader["command"] == [
        *["python3", "-I", "-m", "mlwright_sandbox.grader", "--task", "/request/task.json"],
        *[
            "--public",
            "/public",
            "--private",
            "/private",
            "--work",
            "/public",
            "--splits",
            "Reward,Selection",
        ],
        *["--result", "/dev/termination-log", "--submission", "sample_submission.csv"],
    ]


def test_both_containers_use_the_platforms_image() -> None:
    for made in (pod(), check_pod()):
        assert {each["image"] for each in made["spec"]["containers"]} == {PROFILE.image}


@pytest.mark.parametrize(
    ("user_namespaces", "host_users", "own"),
    [
        ("Required", False, True),
        ("Required", True, True),
        ("WhenSupported", False, True),
        ("WhenSupported", True, False),
        ("Off", False, False),
        ("Off", True, False),
    ],
)
def test_user_namespaces_are_the_platforms_choice(user_namespaces: Any, host_users: bool, own: bool) -> None:
    profile = SandboxProfile(image="i", user_namespaces=user_namespaces)
    made = template(job(profile=profile, host_users=host_users))
    assert made["spec"]["hostUsers"] is not own


def test_placement_comes_from_the_profile() -> None:
    profile = SandboxProfile(
        image="i",
        runtime_class="gvisor",
        priority_class="sandboxes",
        node_selector={"pool": "sandbox"},
        tolerations=[Toleration(key="sandbox", operator="Exists", effect="NoSchedule")],
        image_pull_secrets=["registry"],
    )
    made = pod(profile=profile)["spec"]
    assert made["runtimeClassName"] == "gvisor"
    assert made["priorityClassName"] == "sandboxes"
    assert made["nodeSelector"] == {"pool": "sandbox"}
    assert made["tolerations"] == [{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"}]
    assert made["imagePullSecrets"] == [{"name": "registry"}]


def test_placement_that_the_profile_leaves_open_is_left_open() -> None:
    placed = {"runtimeClassName", "priorityClassName", "nodeSelector", "tolerations", "imagePullSecrets"}
    assert placed.isdisjoint(pod()["spec"])


def test_the_graders_share_is_the_platforms() -> None:
    profile = SandboxProfile(image="i", grader_cpu=Quantity("0.25"), grader_memory=Quantity("2Gi"))
    limits = container(pod(profile=profile), "grader")["resources"]["limits"]
    assert (limits["cpu"], limits["memory"]) == ("250m", str(2 * 1024**3))


def test_nothing_of_a_run_can_reach_a_pod() -> None:
    """A TrainingRun is no parameter: of a run a pod has only the label with its uid."""
    assert set(inspect.signature(sandbox_job).parameters) == {
        "rollout", "task", "profile", "attempt", "host_users",
    }  # fmt: skip


def test_an_object_that_cannot_be_read_has_no_pod() -> None:
    unread = replace(seen_rollout(), spec=None, problem="spec.files: must not be empty")
    with pytest.raises(NotBuildable, match=r"first-000017 has no valid spec: spec\.files: must not"):
        sandbox_job(rollout=unread, task=seen_task(), profile=PROFILE, attempt=1)


def test_a_task_that_cannot_be_read_or_has_no_data_has_no_pod() -> None:
    unread = replace(seen_task(), spec=None, problem="spec.metric: is required")
    with pytest.raises(NotBuildable, match=r"MLTask wine has no valid spec: spec\.metric: is required"):
        task_check_job(task=unread, profile=PROFILE, attempt=1)
    with pytest.raises(NotBuildable, match="MLTask wine has no data"):
        task_check_job(task=seen_task(changed(TASK, "data", None)), profile=PROFILE, attempt=1)
