"""Attempts of which nothing is heard any more: deleted by hand, on a dead node, or merely not seen as yet."""

from __future__ import annotations

from mlwright_operator.actions import Kind
from operator_world.controllers import DRAINED, Fate
from operator_world.objects import grader_message, runner_message
from operator_world.scene import Scene, kinds, run_one


def running() -> Scene:
    return run_one(Fate(seconds=10_000), seconds=4, retries=0)


def pod(scene: Scene) -> dict[str, object]:
    return next(raw for raw in scene.api.live(Kind.POD))


def test_a_job_that_was_deleted_by_hand_is_noticed_once_its_pod_has_ended() -> None:
    scene = running()
    (job,) = scene.api.listed(Kind.JOB)
    scene.api.delete(Kind.JOB, job["metadata"]["name"])
    assert scene.chain() is None, "its pod still runs"
    scene.go_on(5)
    assert scene.status()["outcome"] == "InfrastructureFailed"
    assert scene.status()["reason"].startswith("JobDeleted: the Job of attempt 1")


def test_what_a_stale_plan_made_again_does_not_take_the_place_of_a_job_that_is_gone() -> None:
    """Attempt 2 was deleted by hand, and the Job of attempt 1 has come back."""
    scene = run_one(DRAINED, Fate(seconds=10_000), seconds=2, retries=1)
    (first,) = scene.api.listed(Kind.JOB)
    scene.go_on(6)
    (second,) = scene.api.listed(Kind.JOB)
    scene.api.delete(Kind.JOB, second["metadata"]["name"])
    first["metadata"]["uid"] = "another"
    scene.api.create(first)
    scene.go_on(5)
    assert scene.status()["attempt"] == 2
    assert scene.status()["reason"].startswith("JobDeleted: the Job of attempt 2")
    assert scene.api.listed(Kind.JOB) == []


def test_a_pod_on_a_node_that_does_not_answer_is_given_up_a_minute_after_its_grace_period() -> None:
    scene = running()
    scene.api.terminate(pod(scene), grace_seconds=5)
    planned = scene.plan()
    assert planned.look_again is not None
    assert (planned.look_again - scene.api.now).total_seconds() == 65
    assert planned.chains == ()
    scene.api.now = planned.look_again
    assert kinds(scene.chain()) == ["WriteStatus", "Delete", "Emit"]
    scene.carry_out()
    assert scene.status()["reason"].startswith("NodeLost: ")


def test_a_pod_that_is_not_there_when_its_job_has_failed_is_waited_for_a_little() -> None:
    """Jobs and pods are two watches, of which one may be ahead."""
    scene = running()
    scene.api.remove(pod(scene))
    scene.controllers.move()
    assert scene.chain() is None
    scene.api.now = scene.plan().look_again or scene.api.now
    scene.carry_out()
    assert scene.status()["reason"].startswith("PodLost: ")


def test_while_a_pod_is_only_gone_what_was_said_of_it_stays() -> None:
    scene = running()
    before = scene.status()
    scene.api.remove(pod(scene))
    assert scene.chain() is None
    assert scene.status() == before


def test_a_runner_that_died_leaves_its_milestones_and_its_output() -> None:
    message = '{"unfinished": true, "milestones": ["imports"], "outputTail": "so far"}'
    fate = Fate("Failed", agent=message, agent_exit=70, agent_reason="Error")
    scene = run_one(fate, retries=0)
    assert scene.status()["outcome"] == "InfrastructureFailed"
    assert scene.status()["reason"].startswith("RunnerDied: exit code 70")
    assert scene.status()["milestones"] == ["imports"]
    assert scene.status()["outputTail"] == "so far"


def test_limits_are_those_that_the_attempt_ran_under_though_the_task_is_gone() -> None:
    message = runner_message(exitCode=None, timedOut=True, executionSeconds=60.0)
    scene = run_one(Fate(agent=message, grader=grader_message("Missing"), seconds=61), seconds=5)
    scene.api.delete(Kind.TASK, "digits")
    scene.go_on(70)
    assert scene.status()["outcome"] == "Timeout"
    assert "limit of 60 s" in scene.status()["reason"]
