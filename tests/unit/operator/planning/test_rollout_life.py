"""The life of one Rollout, action by action and in order."""

from __future__ import annotations

import pytest
from mlwright_operator.actions import Apply, Delete, Kind
from operator_world.controllers import DRAINED, FAILING, Fate
from operator_world.objects import config, grader_message, rollout, run, runner_message, task
from operator_world.scene import Scene, kinds, run_one, told, written


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.api.create(task())
    made.api.create(rollout("r"))
    return made


def test_the_job_comes_before_the_number_of_its_attempt(scene: Scene) -> None:
    chain = scene.chain()
    assert chain is not None
    assert kinds(chain) == ["Apply", "WriteStatus"]
    assert written(chain)["attempt"] == 1


def test_before_its_job_a_rollout_has_attempt_zero(scene: Scene) -> None:
    scene.config = config(sandboxes=1)
    scene.api.create(rollout("s"))
    scene.carry_out()
    assert {scene.status("r")["attempt"], scene.status("s")["attempt"]} == {0, 1}


def test_the_job_is_the_rollouts_own_and_has_a_derived_name(scene: Scene) -> None:
    scene.carry_out()
    (job,) = scene.api.listed(Kind.JOB)
    raw = scene.api.get(Kind.ROLLOUT, "r")
    assert raw is not None
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["uid"], owner["controller"]) == (raw["metadata"]["uid"], True)
    assert job["metadata"]["name"].startswith("r-")
    assert job["metadata"]["name"].endswith("-1")


def test_the_policy_is_planned_before_the_first_job_and_only_once(scene: Scene) -> None:
    planned = scene.plan()
    assert [chain.about.kind for chain in planned.policies] == [Kind.NETWORK_POLICY]
    assert planned.unprotected == {"team"}
    scene.carry_out()
    assert scene.plan().policies == ()


def test_a_policy_that_somebody_changed_is_put_right(scene: Scene) -> None:
    scene.carry_out()
    policy = scene.api.get(Kind.NETWORK_POLICY, "mlwright-sandbox")
    assert policy is not None
    policy["spec"]["egress"] = [{}]
    scene.api.update(policy)
    assert [chain.about.kind for chain in scene.plan().policies] == [Kind.NETWORK_POLICY]


def test_a_plan_that_was_carried_out_is_followed_by_none(scene: Scene) -> None:
    scene.carry_out()
    assert scene.plan().chains == ()


def test_a_result_is_written_before_its_job_is_deleted() -> None:
    scene = run_one(seconds=0)
    chain = scene.go_until(Delete)
    assert kinds(chain) == ["WriteStatus", "Delete"]
    assert chain.result is not None
    assert written(chain)["outcome"] == "Scored"


def test_if_only_the_result_was_written_the_next_plan_deletes_the_job() -> None:
    scene = run_one(seconds=0)
    chain = scene.go_until(Delete)
    scene.api.carry_out(chain.actions[0])
    assert kinds(scene.chain()) == ["Delete"]


def test_a_result_says_what_runner_and_grader_said() -> None:
    status = run_one().status()
    assert status["scores"] == {"Reward": 0.75, "Selection": 0.5}
    assert status["milestones"] == ["imports", "data_loaded"]
    assert status["exitCode"] == 0
    assert status["outputTail"] == "done\n"
    assert status["seconds"]["execution"] == 1.5
    assert status["seconds"]["cpu"] == 1.25
    assert status["seconds"]["grading"] == 0.25


def test_seconds_of_queue_and_start_come_from_the_cluster() -> None:
    scene = Scene(config(sandboxes=1))
    scene.api.create(task())
    scene.api.create(rollout("first"))
    scene.wait(10)
    scene.api.create(rollout("second"))
    scene.go_on(20)
    first, second = scene.status("first")["seconds"], scene.status("second")["seconds"]
    assert first["queued"] == 10
    assert second["queued"] > 0
    assert first["starting"] >= 0.5


def test_execution_is_never_longer_than_the_container_lived() -> None:
    fate = Fate(agent=runner_message(executionSeconds=3.9), grader=grader_message(), seconds=2)
    assert run_one(fate).status()["seconds"]["execution"] == 3.0


def test_a_failure_of_the_infrastructure_is_a_new_attempt_job_first_old_job_last() -> None:
    scene = run_one(DRAINED, seconds=0)
    chain = scene.go_until(Delete)
    assert kinds(chain) == ["Apply", "WriteStatus", "Delete", "Emit"]
    assert written(chain)["attempt"] == 2
    assert told(chain) == ["Retried"]
    made, deleted = chain.actions[0], chain.actions[2]
    assert isinstance(made, Apply)
    assert made.body["metadata"]["name"].endswith("-2")
    assert isinstance(deleted, Delete)
    assert deleted.ref.name.endswith("-1")


def test_a_new_attempt_runs_the_same_script() -> None:
    scene = run_one(DRAINED, seconds=2)
    (first,) = scene.api.listed(Kind.JOB)
    scene.go_on(4)
    (second,) = scene.api.listed(Kind.JOB)
    assert first["metadata"]["name"] != second["metadata"]["name"]
    for part in ("mlwright.dev/job", "mlwright.dev/files", "mlwright.dev/task"):
        assert (
            first["spec"]["template"]["metadata"]["annotations"][part]
            == second["spec"]["template"]["metadata"]["annotations"][part]
        )


def test_a_second_job_without_its_number_is_believed_and_the_first_deleted() -> None:
    """The operator was killed between the two writes."""
    scene = run_one(DRAINED, seconds=0)
    chain = scene.go_until(Delete)
    scene.api.carry_out(chain.actions[0])
    again = scene.chain()
    assert again is not None
    assert kinds(again)[:2] == ["WriteStatus", "Delete"]
    assert written(again)["attempt"] == 2


@pytest.mark.parametrize("retries", [0, 1, 2])
def test_there_are_as_many_attempts_as_retries_and_one(retries: int) -> None:
    scene = run_one(*[DRAINED] * 5, seconds=30, retries=retries)
    assert scene.status()["outcome"] == "InfrastructureFailed"
    assert scene.status()["attempt"] == 1 + retries
    assert len(scene.controllers.begun) == 1 + retries


def test_a_scripts_own_failure_is_not_run_again() -> None:
    scene = run_one(FAILING)
    assert scene.status()["outcome"] == "Error"
    assert scene.status()["attempt"] == 1


def test_a_grader_that_dies_on_every_attempt_is_an_invalid_submission() -> None:
    scene = run_one(*[Fate("Failed", agent=runner_message())] * 3, seconds=30, retries=2)
    assert scene.status()["outcome"] == "InvalidSubmission"
    assert scene.status()["reason"].startswith("GraderDied")
    assert len(scene.controllers.begun) == 3


def test_a_job_of_an_earlier_attempt_that_comes_up_again_is_deleted_unread() -> None:
    """A stale plan made it."""
    scene = run_one(DRAINED, Fate(agent=runner_message(), grader=grader_message(), seconds=20), seconds=2)
    (first,) = scene.api.listed(Kind.JOB)
    scene.go_on(6)
    first.pop("status", None)
    first["metadata"] |= {"uid": "another", "resourceVersion": ""}
    scene.api.create(first)
    chain = scene.chain()
    assert chain is not None
    assert [action.ref.uid for action in chain.actions if isinstance(action, Delete)] == ["another"]
    scene.go_on(30)
    assert scene.status()["attempt"] == 2
    assert scene.status()["outcome"] == "Scored"


def test_a_rollout_that_has_ended_has_no_job_whoever_made_it() -> None:
    scene = run_one(seconds=2)
    (job,) = scene.api.listed(Kind.JOB)
    scene.go_on(10)
    job.pop("status", None)
    job["metadata"]["uid"] = "another"
    scene.api.create(job)
    assert kinds(scene.chain()) == ["Delete"]


def test_to_a_rollout_that_is_being_deleted_nothing_is_done(scene: Scene) -> None:
    raw = scene.api.get(Kind.ROLLOUT, "r")
    assert raw is not None
    scene.api.terminate(raw)
    assert scene.plan().chains == ()


def test_an_outcome_that_only_a_later_version_knows_is_an_end_all_the_same() -> None:
    scene = run_one(seconds=12)
    raw = scene.api.get(Kind.ROLLOUT, "r")
    assert raw is not None
    raw["status"] |= {"outcome": "Abducted", "mood": "fine"}
    scene.api.update(raw)
    assert scene.plan().chains == ()


def test_the_same_moment_has_the_same_plan(scene: Scene) -> None:
    assert scene.plan() == scene.plan()


# Time to live.


def expired(scene: Scene) -> bool:
    scene.api.now = scene.api.now.replace(year=scene.api.now.year + 1)
    return kinds(scene.chain()) == ["Delete"]


def test_a_result_that_nobody_reads_is_deleted_after_its_time() -> None:
    scene = run_one()
    assert scene.chain() is None
    assert expired(scene)
    scene.carry_out()
    assert scene.api.get(Kind.ROLLOUT, "r") is None


def test_the_time_to_live_is_the_configurations() -> None:
    scene = run_one(platform=config(ttl_seconds=100))
    for seconds, there in ((60, True), (60, False)):
        scene.wait(seconds)
        scene.carry_out()
        assert (scene.api.get(Kind.ROLLOUT, "r") is not None) is there


def test_a_result_is_never_deleted_while_its_run_exists() -> None:
    scene = run_one(run_uid="one")
    scene.api.create(run("run", "one"))
    assert not expired(scene)


@pytest.mark.parametrize("other", [run("run", "two"), run("run", "one", namespace="theirs")])
def test_a_later_run_of_that_name_or_one_of_another_namespace_keeps_nothing(other: dict[str, object]) -> None:
    scene = run_one(run_uid="one")
    scene.api.create(other)
    assert expired(scene)


def test_what_has_not_ended_is_never_deleted() -> None:
    scene = run_one(Fate(unschedulable="0/1 nodes are available"), seconds=3)
    assert not expired(scene)


def test_when_it_expires_is_when_to_look_again() -> None:
    scene = run_one(platform=config(ttl_seconds=500))
    moment = scene.plan().look_again
    assert moment is not None
    assert 400 < (moment - scene.api.now).total_seconds() <= 500
