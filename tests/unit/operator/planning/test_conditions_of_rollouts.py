"""What a person reads in a Rollout's conditions: one clear word within one pass, and none once it is mended."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_api.digests import spec_digest
from mlwright_api.mltask import MLTaskSpec
from mlwright_operator.actions import Kind
from mlwright_operator.failures import Failure
from operator_world.controllers import DRAINED, FAILING, SCORED, Fate
from operator_world.objects import (
    TASK_SPEC,
    config,
    grader_message,
    receipt,
    rollout,
    run,
    runner_message,
    task,
)
from operator_world.scene import Scene, kinds, run_one

PULL = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "sandbox:1"'}


def waiting(**spec: Any) -> Scene:
    scene = Scene()
    scene.api.create(task())
    scene.api.create(rollout("r", **spec))
    scene.carry_out()
    return scene


def test_what_is_accepted_and_made_says_so() -> None:
    scene = waiting()
    assert scene.condition("Accepted")["status"] == "True"
    assert scene.reason("Started") == "Creating"
    assert "kubectl describe job r-" in scene.condition("Started")["message"]


def test_a_script_that_runs_is_started() -> None:
    scene = run_one(Fate(seconds=100), seconds=4)
    assert scene.condition("Started") | {"lastTransitionTime": "", "observedGeneration": 1} == {
        "type": "Started",
        "status": "True",
        "reason": "Running",
        "lastTransitionTime": "",
        "observedGeneration": 1,
    }


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"taskRef": {"name": "nowhere", "digest": f"sha256:{'0' * 64}"}}, "TaskNotFound", "'nowhere'"),
        ({"taskRef": {"name": "digits", "digest": f"sha256:{'0' * 64}"}}, "TaskChanged", "sha256:0000"),
        ({"sandbox": "huge"}, "UnknownSandbox", "but default"),
        ({"limits": {"timeoutSeconds": 61}}, "LimitsAboveTask", "timeoutSeconds 61 is above the task's 60"),
        ({"limits": {"memory": "1Ti"}}, "LimitsAboveTask", "memory 1Ti is above"),
        ({"entrypoint": "main.py"}, "InvalidSpec", "entrypoint: must be"),
    ],
)
def test_what_cannot_be_run_is_not_accepted_and_has_no_job(spec: Any, reason: str, words: str) -> None:
    scene = waiting(**spec)
    assert scene.condition("Accepted")["status"] == "False"
    assert scene.reason("Accepted") == reason
    assert words in scene.condition("Accepted")["message"]
    assert scene.events() == [("Warning", reason)]
    assert scene.api.listed(Kind.JOB) == []
    assert scene.plan().chains == ()


def test_a_script_that_no_pod_can_carry_is_an_invalid_spec() -> None:
    """128 KiB that JSON makes six times as long."""
    scene = waiting(files=[{"path": "script.py", "content": "\x01" * 100_000}])
    assert scene.reason("Accepted") == "InvalidSpec"
    assert "too large" in scene.condition("Accepted")["message"]
    assert scene.plan().chains == ()


def test_a_task_that_comes_later_is_enough() -> None:
    scene = Scene()
    scene.api.create(rollout("r"))
    scene.carry_out()
    assert scene.reason("Accepted") == "TaskNotFound"
    scene.api.create(task())
    scene.go_on(12)
    assert scene.condition("Accepted")["status"] == "True"
    assert scene.status()["outcome"] == "Scored"


def test_a_task_that_is_not_ready_is_waited_for_and_says_why() -> None:
    scene = Scene(config(sandboxes=1))
    spec = TASK_SPEC | {"data": {"public": {"claim": {"name": "data"}}, "private": {"configMap": "answers"}}}
    scene.api.create(task(ready=False, spec=spec))
    scene.api.create(rollout("r", digest=spec_digest(MLTaskSpec.model_validate(spec))))
    scene.carry_out()
    assert scene.condition("Accepted")["message"] == "MLTask digits: not checked as yet"
    scene.carry_out()
    assert scene.reason("Accepted") == "TaskNotReady"
    assert scene.condition("Accepted")["message"].startswith("MLTask digits: ClaimNotFound: spec.data.public")


def test_limits_of_the_profile_count_too() -> None:
    scene = Scene(config(profile={"limits": {"timeoutSeconds": 10}}))
    scene.api.create(task())
    scene.api.create(rollout("r"))
    scene.carry_out()
    assert "above the sandbox profile's 10" in scene.condition("Accepted")["message"]


@pytest.mark.parametrize(
    ("fate", "reason", "words"),
    [
        (Fate(stuck=PULL), "ImagePullFailed", "Back-off pulling image"),
        (
            Fate(stuck={"reason": "ErrImagePull", "message": "no such host"}),
            "ImagePullFailed",
            "no such host",
        ),
        (
            Fate(stuck={"reason": "CreateContainerConfigError", "message": "no configmap"}),
            "ContainerFailed",
            "no c",
        ),
        (Fate(unschedulable="0/3 nodes: Insufficient memory"), "Unschedulable", "Insufficient memory"),
    ],
)
def test_a_pod_that_does_not_start_says_why_and_is_left_to_the_cluster(
    fate: Fate, reason: str, words: str
) -> None:
    scene = run_one(fate, seconds=6)
    assert (scene.condition("Started")["status"], scene.reason("Started")) == ("False", reason)
    assert words in scene.condition("Started")["message"]
    assert scene.events() == [("Warning", reason)]
    assert len(scene.controllers.begun) == 1
    assert scene.plan().chains == ()


def test_an_image_that_can_be_pulled_in_the_end_is_forgotten() -> None:
    scene = run_one(Fate(stuck=PULL), seconds=4)
    scene.controllers.fates["r"] = []
    scene.go_on(8)
    assert scene.status()["outcome"] == "Scored"
    assert scene.condition("Started")["status"] == "True"


def test_the_kubelets_changing_words_for_one_image_are_written_once() -> None:
    scene = run_one(Fate(stuck={"reason": "ErrImagePull", "message": "not found"}), seconds=4)
    scene.controllers.fates["r"] = [Fate(stuck=PULL)]
    scene.wait()
    assert scene.plan().chains == ()


def test_a_scheduler_that_finds_other_words_is_quoted_again_without_another_transition() -> None:
    scene = run_one(Fate(unschedulable="0/1 nodes"), seconds=4)
    before = scene.condition("Started")
    scene.controllers.fates["r"] = [Fate(unschedulable="0/2 nodes")]
    scene.go_on(3)
    after = scene.condition("Started")
    assert after["message"] == "0/2 nodes"
    assert after["lastTransitionTime"] == before["lastTransitionTime"]
    assert scene.events() == [("Warning", "Unschedulable")]


def test_a_suspended_run_begins_nothing() -> None:
    scene = Scene()
    scene.api.create(task())
    scene.api.create(run("run", "one", suspend=True))
    scene.api.create(rollout("r", run_uid="one"))
    scene.carry_out()
    assert scene.reason("Started") == "Suspended"
    assert scene.api.listed(Kind.JOB) == []


def test_a_suspended_run_does_not_try_again_and_does_when_it_goes_on() -> None:
    scene = Scene()
    scene.api.create(task())
    scene.api.create(run("run", "one"))
    scene.api.create(rollout("r", run_uid="one"))
    scene.controllers.fates["r"] = [DRAINED]
    scene.go_on(2)
    paused = scene.api.get(Kind.TRAINING_RUN, "run")
    assert paused is not None
    paused["spec"]["suspend"] = True
    scene.go_on(10)
    assert (scene.status()["attempt"], scene.reason("Started")) == (1, "Suspended")
    paused["spec"]["suspend"] = False
    scene.go_on(10)
    assert (scene.status()["attempt"], scene.status()["outcome"]) == (2, "Scored")


def test_who_waits_for_a_slot_is_queued() -> None:
    scene = Scene(config(sandboxes=1))
    scene.api.create(task())
    scene.api.create(rollout("r"))
    scene.wait()
    scene.api.create(rollout("s"))
    scene.carry_out()
    assert scene.reason("Started", "s") == "Queued"
    assert scene.events("s") == []
    assert scene.plan().chains == ()


@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (403, "exceeded quota: jobs, used: 5, limited: 5", "QuotaExceeded"),
        (403, "jobs.batch is forbidden: User cannot patch", "Forbidden"),
        (403, "unable to create new content because it is being terminated", "NamespaceTerminating"),
        (422, "Job is invalid", "JobRefused"),
    ],
)
def test_a_job_that_is_refused_says_so_and_waits(status: int, message: str, reason: str) -> None:
    scene = Scene()
    scene.api.create(task())
    raw = scene.api.create(rollout("r"))
    scene.api.create(rollout("s"))
    chain = scene.chain()
    assert chain is not None
    version = raw["metadata"]["resourceVersion"]
    scene.failures = {chain.about: Failure("apply", status, "", message, 1, scene.api.now, version)}
    scene.carry_out()
    assert scene.reason("Started") == reason
    assert message in scene.condition("Started")["message"]
    assert scene.reason("Started", "s") == "Creating"
    scene.wait(2)
    assert kinds(scene.chain()) == ["Apply", "WriteStatus"]


def test_when_the_result_is_in_it_is_finished_with_its_outcome() -> None:
    for fate, outcome in ((SCORED, "Scored"), (FAILING, "Error")):
        scene = run_one(fate)
        assert scene.condition("Finished")["status"] == "True"
        assert scene.reason("Finished") == outcome
        assert scene.events() == []


def test_an_outcome_that_somebody_should_look_at_is_an_event() -> None:
    assert run_one(DRAINED, retries=0).events() == [("Warning", "InfrastructureFailed")]


def test_a_receipt_whose_checks_hold_is_a_condition() -> None:
    assert run_one().condition("Isolated")["status"] == "True"


def test_a_receipt_with_a_check_that_did_not_hold_names_it() -> None:
    message = runner_message(isolation=receipt(isolated=False))
    scene = run_one(Fate(agent=message, grader=grader_message()))
    assert scene.condition("Isolated")["status"] == "False"
    assert scene.condition("Isolated")["message"] == "not prevented: NoMounts"
    assert ("Warning", "ChecksFailed") in scene.events()


def test_in_a_namespace_that_goes_away_it_says_so() -> None:
    scene = Scene()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    scene.api.create(task())
    scene.api.create(rollout("r"))
    scene.api.create(namespace)
    there = scene.api.get(Kind.NAMESPACE, "team")
    assert there is not None
    scene.api.terminate(there)
    scene.carry_out()
    assert scene.reason("Started") == "NamespaceTerminating"
    assert scene.api.listed(Kind.JOB) == []
