"""A task is ready when its volumes are there and its own sample submission grades in a real grader pod."""

from __future__ import annotations

from typing import Any

import pytest
from mlwright_operator.actions import Delete, Kind
from operator_world.controllers import DRAINED, Fate
from operator_world.objects import TASK_SPEC, claim, config, grader_message, rollout, task
from operator_world.scene import Scene, kinds

CLAIMS = {
    "public": {"claim": {"name": "data", "path": "public"}},
    "private": {"claim": {"name": "data", "path": "private"}},
    "sealed": {"claim": {"name": "vault"}},
}


def scene_of(*fates: Fate, data: Any = None, seconds: int = 0, **platform: Any) -> Scene:
    scene = Scene(config(**platform))
    scene.api.create(task(ready=False, spec=TASK_SPEC | ({"data": data} if data else {})))
    scene.controllers.fates["digits"] = list(fates)
    scene.go_on(seconds)
    return scene


def ready(scene: Scene) -> tuple[str | None, str | None, str]:
    found = scene.condition("Ready", "digits", Kind.TASK)
    return found.get("status"), found.get("reason"), found.get("message", "")


def test_the_sample_submission_is_graded_before_anybody_may_use_the_task() -> None:
    scene = scene_of(seconds=1)
    assert ready(scene)[:2] == ("False", "Checking")
    (job,) = scene.api.listed(Kind.JOB)
    assert job["metadata"]["labels"]["mlwright.dev/part"] == "task-check"
    scene.go_on(8)
    assert ready(scene)[:2] == ("True", "Checked")


def test_ready_it_has_its_digest_and_the_samples_scores_and_no_job_any_more() -> None:
    scene = scene_of(Fate(grader=grader_message("Trivial")), seconds=10)
    status = scene.status("digits", Kind.TASK)
    assert status["digest"].startswith("sha256:")
    assert status["sampleScores"] == {"Reward": 0.75, "Selection": 0.5}
    assert scene.api.listed(Kind.JOB) == []
    assert scene.events("digits") == [("Normal", "Checked")]
    assert scene.plan().chains == ()


def test_its_status_is_written_before_its_job_is_deleted() -> None:
    scene = scene_of()
    assert kinds(scene.go_until(Delete, "digits"))[:2] == ["WriteStatus", "Delete"]


def test_if_only_its_status_was_written_the_next_plan_deletes_the_job() -> None:
    scene = scene_of()
    chain = scene.go_until(Delete, "digits")
    scene.api.carry_out(chain.actions[0])
    assert kinds(scene.chain("digits")) == ["Delete"]


def test_a_check_too_has_its_policy_first() -> None:
    scene = scene_of()
    assert scene.plan().unprotected == {"team"}


@pytest.mark.parametrize(
    ("claims", "reason", "words"),
    [
        ([], "ClaimNotFound", "spec.data.public.claim: there is no PersistentVolumeClaim 'data'"),
        (
            [claim("data", allowed=False)],
            "ClaimNotAllowed",
            "'data' lacks the label mlwright.dev/task-data=true",
        ),
        ([claim("data", bound=False)], "ClaimNotBound", "'data' is not bound"),
        (
            [claim("data")],
            "ClaimNotFound",
            "spec.data.sealed.claim: there is no PersistentVolumeClaim 'vault'",
        ),
        ([claim("data"), claim("vault", namespace="theirs")], "ClaimNotFound", "'vault'"),
    ],
)
def test_a_claim_that_cannot_be_mounted_is_named(claims: list[Any], reason: str, words: str) -> None:
    scene = scene_of(data=CLAIMS)
    for each in claims:
        scene.api.create(each)
    scene.go_on(2)
    assert ready(scene)[:2] == ("False", reason)
    assert words in ready(scene)[2]
    assert scene.api.listed(Kind.JOB) == []
    assert scene.events("digits") == [("Warning", reason)]


def test_with_its_claims_it_becomes_ready_by_itself_and_without_them_it_is_not_any_more() -> None:
    scene = scene_of(data=CLAIMS, seconds=2)
    scene.api.create(claim("data"))
    scene.api.create(claim("vault"))
    scene.go_on(10)
    assert ready(scene)[:2] == ("True", "Checked")
    scene.api.delete(Kind.CLAIM, "vault")
    scene.go_on(2)
    assert ready(scene)[:2] == ("False", "ClaimNotFound")
    scene.api.create(claim("vault"))
    scene.go_on(10)
    assert ready(scene)[:2] == ("True", "Checked")


def test_without_data_it_cannot_be_used_in_a_cluster() -> None:
    scene = Scene()
    spec = {key: value for key, value in TASK_SPEC.items() if key != "data"}
    scene.api.create(task(ready=False, spec=spec))
    scene.carry_out()
    assert ready(scene)[:2] == ("False", "NoData")


def test_a_spec_that_breaks_a_rule_says_which() -> None:
    scene = Scene()
    made = task(ready=False)
    made["spec"] = TASK_SPEC | {"submission": {"targetColumns": ["id"], "kind": "Labels"}}
    scene.api.create(made)
    scene.carry_out()
    assert ready(scene)[:2] == ("False", "InvalidSpec")
    assert "idColumn" in ready(scene)[2]


@pytest.mark.parametrize(
    ("fate", "reason", "words"),
    [
        (
            Fate(grader=grader_message("Invalid", reason="a row is missing")),
            "SampleDoesNotGrade",
            "a row is missing",
        ),
        (Fate(grader=grader_message("Missing")), "SampleDoesNotGrade", "sample_submission.csv"),
        (
            Fate("Failed", grader='{"failure": "answers.csv: no column split"}'),
            "AnswersWrong",
            "no column split",
        ),
        (Fate("Failed", pod_reason="DeadlineExceeded"), "CheckFailed", "DeadlineExceeded"),
        (DRAINED, "CheckFailed", "EvictionByEvictionAPI"),
    ],
)
def test_a_check_that_fails_says_what_it_found(fate: Fate, reason: str, words: str) -> None:
    scene = scene_of(fate, seconds=8)
    assert ready(scene)[:2] == ("False", reason)
    assert words in ready(scene)[2]
    assert scene.events("digits") == [("Warning", reason)]


def test_a_failed_check_is_made_again_later_and_later_and_recovers() -> None:
    wrong = Fate(grader=grader_message("Invalid", reason="a row is missing"))
    scene = scene_of(*[wrong] * 3, seconds=160)
    assert [attempt for _, attempt in scene.controllers.begun] == [1, 2, 3, 4]
    assert ready(scene)[:2] == ("True", "Checked")
    assert scene.api.listed(Kind.JOB) == []


def test_while_it_is_made_again_the_reason_stays() -> None:
    wrong = Fate(grader=grader_message("Invalid", reason="a row is missing"))
    scene = scene_of(wrong, Fate(seconds=1000, grader=grader_message()), seconds=40)
    assert [attempt for _, attempt in scene.controllers.begun] == [1, 2]
    assert ready(scene)[:2] == ("False", "SampleDoesNotGrade")
    assert len(scene.api.listed(Kind.JOB)) == 1


def test_an_image_that_cannot_be_pulled_is_said_and_waited_for() -> None:
    scene = scene_of(Fate(stuck={"reason": "ErrImagePull", "message": "no such image"}), seconds=6)
    assert ready(scene)[:2] == ("False", "ImagePullFailed")
    assert "no such image" in ready(scene)[2]
    scene.controllers.fates["digits"] = []
    scene.go_on(8)
    assert ready(scene)[:2] == ("True", "Checked")


def test_checks_take_slots_like_everybody() -> None:
    scene = Scene(config(sandboxes=1))
    for name in ("one", "two", "three"):
        scene.api.create(task(name, ready=False))
    scene.carry_out()
    assert len(scene.api.listed(Kind.JOB)) == 1
    scene.go_on(30)
    for name in ("one", "two", "three"):
        assert scene.reason("Ready", name, Kind.TASK) == "Checked"


def test_a_rollout_begins_as_soon_as_its_task_is_ready() -> None:
    scene = scene_of(Fate(seconds=5, grader=grader_message()), seconds=2)
    scene.api.create(rollout("r"))
    scene.go_on(3)
    assert scene.reason("Accepted") == "TaskNotReady"
    scene.go_on(12)
    assert scene.status()["outcome"] == "Scored"


def test_a_task_that_is_being_deleted_is_left_alone() -> None:
    scene = scene_of()
    raw = scene.api.get(Kind.TASK, "digits")
    assert raw is not None
    scene.api.terminate(raw)
    assert scene.plan().chains == ()


def test_the_profile_of_checks_is_the_default_or_else_the_first() -> None:
    profile = config().profiles["default"]
    scene = scene_of()
    named = {"small": profile.model_copy(update={"image": "small:1"}), "big": profile}
    scene.config = scene.config.model_copy(update={"profiles": named})
    scene.carry_out()
    (job,) = scene.api.listed(Kind.JOB)
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == "sandbox:1"
