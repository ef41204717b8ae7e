"""Pods that are not what was sent: nothing they say is believed, whoever changed them."""

from __future__ import annotations

import pytest
from mlwright_operator.actions import Delete, Kind
from operator_world.controllers import DRAINED, SCORED, Fate
from operator_world.objects import config, grader_message, runner_message
from operator_world.scene import Scene, run_one


def changed(**changes: object) -> Fate:
    return Fate(agent=runner_message(), grader=grader_message(), changes=changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"hostNetwork": True},
        {"dnsPolicy": "ClusterFirst"},
        {"automountServiceAccountToken": True},
        {"initContainers": [{"name": "init", "image": "anything"}]},
        {"hostPID": True},
        {"terminationGracePeriodSeconds": 3600},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_pod_that_was_weakened_ends_its_rollout_without_a_result(changes: dict[str, object]) -> None:
    scene = run_one(changed(**changes))
    status = scene.status()
    assert status["outcome"] == "InfrastructureFailed"
    assert status["reason"].startswith("PodChanged: ")
    assert next(iter(changes)) in status["reason"]
    assert "scores" not in status
    assert scene.events() == [("Warning", "InfrastructureFailed")]


def test_it_is_not_tried_again_and_its_job_is_deleted() -> None:
    scene = run_one(changed(hostNetwork=True), seconds=20)
    assert len(scene.controllers.begun) == 1
    assert scene.api.listed(Kind.JOB) == []


def test_it_is_noticed_while_the_script_runs() -> None:
    scene = run_one(Fate(seconds=1000, changes={"hostNetwork": True}), seconds=5)
    assert scene.status()["outcome"] == "InfrastructureFailed"


def test_a_configuration_that_changes_meanwhile_is_no_weakening() -> None:
    scene = run_one(Fate(agent=runner_message(), grader=grader_message(), seconds=5), seconds=3)
    scene.config = config(profile={"runtime_class": "other", "grader_memory": "2Gi"})
    scene.go_on(10)
    assert scene.status()["outcome"] == "Scored"


def test_but_a_pod_that_differs_from_its_job_still_is() -> None:
    scene = run_one(changed(hostNetwork=True), seconds=1)
    scene.config = config(profile={"runtime_class": "other"})
    scene.go_on(10)
    assert scene.status()["reason"].startswith("PodChanged: ")


def test_a_job_that_was_changed_on_its_way_in_is_found_by_its_pod() -> None:
    scene = run_one(seconds=0)
    scene.carry_out()
    (_, _, _), job = next(item for item in scene.api.objects.items() if item[0][0] is Kind.JOB)
    job["spec"]["template"]["spec"]["hostIPC"] = True
    scene.go_on(10)
    assert "hostIPC" in scene.status()["reason"]


# User namespaces.

UNSUPPORTED = Fate(
    stuck={"reason": "CreateContainerError", "message": "runtime does not support idmap mounts"}
)


def host_users(scene: Scene) -> list[object]:
    return [pod["spec"].get("hostUsers") for pod in scene.api.listed(Kind.POD)]


def test_a_node_without_user_namespaces_is_one_more_attempt_without_one_and_it_shows() -> None:
    scene = run_one(UNSUPPORTED, seconds=20, retries=0)
    assert (scene.status()["outcome"], scene.status()["attempt"]) == ("Scored", 2)
    assert (scene.condition("UserNamespaces")["status"], scene.reason("UserNamespaces")) == (
        "False",
        "NotSupported",
    )
    assert ("Warning", "Retried") in scene.events()


def test_an_api_server_that_knows_no_user_namespaces_is_the_same() -> None:
    left_out = Fate(agent=runner_message(), grader=grader_message(), changes={"hostUsers": None})
    scene = run_one(left_out, seconds=20, retries=0)
    assert (scene.status()["outcome"], scene.status()["attempt"]) == ("Scored", 2)
    assert scene.reason("UserNamespaces") == "NotSupported"


def test_later_attempts_go_on_without_one() -> None:
    scene = run_one(UNSUPPORTED, DRAINED, SCORED, seconds=30, retries=1)
    assert (scene.status()["outcome"], scene.status()["attempt"]) == ("Scored", 3)


def test_the_fallback_survives_an_operator_that_dies_between_the_two_writes() -> None:
    scene = run_one(UNSUPPORTED, seconds=0)
    chain = scene.go_until(Delete)
    scene.api.carry_out(chain.actions[0])
    scene.go_on(12)
    assert scene.reason("UserNamespaces") == "NotSupported"
    assert scene.status()["outcome"] == "Scored"


@pytest.mark.parametrize("mode", ["Required", "Off"])
def test_where_they_are_required_there_is_no_fallback(mode: str) -> None:
    scene = run_one(UNSUPPORTED, seconds=20, platform=config(profile={"user_namespaces": mode}))
    assert len(scene.controllers.begun) == 1
    assert scene.reason("Started") == "ContainerFailed"
    assert host_users(scene) == [mode == "Off"]


def test_where_they_are_required_a_pod_without_one_has_been_changed() -> None:
    fate = Fate(agent=runner_message(), grader=grader_message(), changes={"hostUsers": None})
    scene = run_one(fate, platform=config(profile={"user_namespaces": "Required"}))
    assert scene.status()["reason"].startswith("PodChanged: spec.hostUsers")


@pytest.mark.parametrize(
    "waiting",
    [
        {"reason": "ErrImagePull", "message": "image registry/idmap-mount:userns not supported"},
        {
            "reason": "CreateContainerConfigError",
            "message": "subPath 'user namespaces not supported' is missing",
        },
    ],
)
def test_names_that_users_choose_bring_about_no_fallback(waiting: dict[str, str]) -> None:
    scene = run_one(Fate(stuck=waiting), seconds=10)
    assert scene.condition("UserNamespaces") == {}
    assert len(scene.controllers.begun) == 1
