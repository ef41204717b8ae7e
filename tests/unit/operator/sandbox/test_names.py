"""Names and labels are derived, valid, and another owner's never."""

from __future__ import annotations

import re

import pytest
from mlwright_api.rollout import RolloutSpec
from mlwright_operator.actions import Kind, Ref
from mlwright_operator.sandbox.names import (
    job_name,
    label_value,
    owner_reference,
    sandbox_labels,
    task_check_labels,
)
from sandbox_pods import ROLLOUT, ROLLOUT_UID, RUN_UID, TASK_UID, changed

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


def owner(name: str, uid: str = "u", kind: Kind = Kind.ROLLOUT) -> Ref:
    return Ref(kind, "team", name, uid)


@pytest.mark.parametrize(
    "name", ["a", "first-000017", "a.b.c", "x" * 39 + "-b", "x" * 39 + ".b", "9" * 253, "a" + "-" * 60 + "b"]
)
def test_a_job_has_a_dns_label_for_a_name(name: str) -> None:
    made = job_name(owner(name), 100)
    assert LABEL.fullmatch(made)
    assert len(made) <= 55


def test_the_name_says_whose_it_is() -> None:
    assert job_name(owner("first-000017", ROLLOUT_UID), 3) == "first-000017-8f0ee299-3"


def test_another_object_of_the_same_name_has_another_job() -> None:
    assert job_name(owner("a", "1"), 1) != job_name(owner("a", "2"), 1)


def test_every_attempt_has_a_job_of_its_own() -> None:
    assert len({job_name(owner("a"), attempt) for attempt in range(1, 101)}) == 100


@pytest.mark.parametrize("uid", [ROLLOUT_UID, "a", "a.b_c-d", "x" * 63])
def test_a_uid_that_fits_a_label_is_kept(uid: str) -> None:
    assert label_value(uid) == uid


@pytest.mark.parametrize("uid", ["", "a b", "-a", "a-", "x" * 64, "a\n", "é", "\ud800", "../..", "$(HOME)"])
def test_anything_else_becomes_a_digest_that_fits(uid: str) -> None:
    made = label_value(uid)
    assert made != uid
    assert re.fullmatch(r"[0-9a-f]{63}", made)


def test_a_sandbox_is_labelled_with_whose_it_is() -> None:
    ref = owner("first-000017", ROLLOUT_UID)
    assert sandbox_labels(ref, RolloutSpec.model_validate(ROLLOUT), 2) == {
        "app.kubernetes.io/managed-by": "mlwright",
        "mlwright.dev/part": "sandbox",
        "mlwright.dev/rollout-uid": ROLLOUT_UID,
        "mlwright.dev/attempt": "2",
        "mlwright.dev/run-uid": RUN_UID,
    }


def test_a_rollout_without_a_run_has_no_label_of_one() -> None:
    alone = RolloutSpec.model_validate(changed(ROLLOUT, "runRef", None))
    assert "mlwright.dev/run-uid" not in sandbox_labels(owner("a"), alone, 1)


def test_a_check_is_labelled_with_its_task() -> None:
    assert task_check_labels(owner("wine", TASK_UID, Kind.TASK), 1) == {
        "app.kubernetes.io/managed-by": "mlwright",
        "mlwright.dev/part": "task-check",
        "mlwright.dev/task-uid": TASK_UID,
        "mlwright.dev/attempt": "1",
    }


def test_the_owner_controls_the_job_and_its_deletion_does_not_wait() -> None:
    assert owner_reference(owner("wine", TASK_UID, Kind.TASK)) == {
        "apiVersion": "mlwright.dev/v1alpha1",
        "kind": "MLTask",
        "name": "wine",
        "uid": TASK_UID,
        "controller": True,
        "blockOwnerDeletion": False,
    }
