"""From raw objects to what the operator sees, whatever somebody has put into them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.rollout import Outcome
from mlwright_operator.actions import Kind
from mlwright_operator.observing import gather, observed, see
from operator_world.objects import claim, rollout, run, task
from operator_world.scene import run_one

Raw = dict[str, Any]


def named(raw: Raw, uid: str = "u1", **metadata: Any) -> Raw:
    return raw | {"metadata": raw["metadata"] | {"uid": uid} | metadata}


def test_a_rollout_is_seen_with_its_spec_and_status() -> None:
    raw = named(rollout("r", run_uid="one")) | {"status": {"attempt": 2, "outcome": "Scored"}}
    seen = observed([raw]).rollouts["u1"]
    assert (seen.ref.kind, seen.ref.namespace, seen.ref.name) == (Kind.ROLLOUT, "team", "r")
    assert seen.run_uid == "one"
    assert (seen.status.attempt, seen.status.outcome, seen.ended) == (2, Outcome.SCORED, True)


def test_a_spec_that_breaks_a_rule_is_none_and_says_why() -> None:
    seen = observed([named(rollout("r", entrypoint="main.py"))]).rollouts["u1"]
    assert seen.spec is None
    assert seen.problem.startswith("entrypoint: ")


def test_of_a_status_of_a_later_version_what_can_be_read_is() -> None:
    raw = named(rollout("r")) | {"status": {"attempt": 3, "mood": "fine", "outcome": "Abducted"}}
    seen = observed([raw]).rollouts["u1"]
    assert (seen.status.attempt, seen.status.outcome, seen.ended) == (3, None, True)


def test_a_task_is_seen_with_its_digest() -> None:
    seen = observed([named(task())]).tasks["team", "digits"]
    assert seen.digest == seen.status.digest


def test_runs_have_weights_and_may_be_suspended() -> None:
    seen = observed([run("a", "1", weight=2.5), run("b", "2", suspend=True)]).runs
    assert (seen["1"].weight, seen["1"].suspend, seen["2"].suspend) == (2.5, False, True)


@pytest.mark.parametrize("weight", [0, -1, "2", True, 10_000, None])
def test_a_weight_that_cannot_be_is_one(weight: Any) -> None:
    assert observed([run("a", "1", weight=weight)]).runs["1"].weight == 1


def test_claims_say_whether_they_are_bound_and_allowed() -> None:
    raws = [named(claim("a"), "1"), named(claim("b", bound=False, allowed=False), "2")]
    seen = observed(raws).claims
    assert (seen["team", "a"].bound, seen["team", "a"].allowed) == (True, True)
    assert (seen["team", "b"].bound, seen["team", "b"].allowed) == (False, False)


def test_namespaces_that_are_going_away_are_known() -> None:
    going = {
        "kind": "Namespace",
        "metadata": {"name": "old", "uid": "1", "deletionTimestamp": "2026-01-01T00:00:00Z"},
    }
    staying = {"kind": "Namespace", "metadata": {"name": "new", "uid": "2"}, "status": {"phase": "Active"}}
    assert observed([going, staying]).terminating == {"old"}


def jobs_and_pods() -> list[Raw]:
    scene = run_one(seconds=2)
    return [*scene.api.listed(Kind.JOB), *scene.api.listed(Kind.POD), *scene.api.listed(Kind.ROLLOUT)]


def test_a_job_belongs_to_its_label_and_owner_alike() -> None:
    job, pod, owner = jobs_and_pods()
    uid = owner["metadata"]["uid"]
    seen = observed([job, pod])
    assert [(each.attempt, each.part) for each in seen.jobs[uid]] == [(1, "sandbox")]
    assert [each.job_uid for each in seen.pods[uid]] == [job["metadata"]["uid"]]


def test_a_job_whose_label_is_not_its_owner_is_nobodys() -> None:
    job, *_ = jobs_and_pods()
    job["metadata"]["labels"]["mlwright.dev/rollout-uid"] = "somebody-elses"
    assert observed([job]).jobs == {}


def test_limits_of_an_attempt_are_read_back_from_its_job() -> None:
    job, *_ = jobs_and_pods()
    (seen,) = next(iter(observed([job]).jobs.values()))
    assert seen.limits is not None
    assert seen.limits.timeout_seconds == 60
    assert seen.sent.startswith("sha256:")


@pytest.mark.parametrize("label", ["", "-1", "x", "²", "99999999999", "1.5"])
def test_an_attempt_that_is_no_number_is_none(label: str) -> None:
    job, *_ = jobs_and_pods()
    job["metadata"]["labels"]["mlwright.dev/attempt"] = label
    (seen,) = next(iter(observed([job]).jobs.values()))
    assert seen.attempt == 0


def test_only_the_policy_of_our_name_is_ours() -> None:
    policies = [
        {"kind": "NetworkPolicy", "metadata": {"name": name, "namespace": "team", "uid": name}, "spec": {}}
        for name in ("allow-all", "mlwright-sandbox")
    ]
    assert observed(policies).policies["team"].ref.name == "mlwright-sandbox"


def test_what_is_nothing_is_left_out() -> None:
    assert see(Kind.POD, {"metadata": {"name": "p", "uid": "1"}}) is None
    assert see(Kind.ROLLOUT, {"metadata": {}}) is None
    assert gather([None]).rollouts == {}
    assert observed([{"kind": "Secret", "metadata": {"name": "s", "uid": "1"}}, {}]) == gather([])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
METADATA = (
    "labels",
    "annotations",
    "ownerReferences",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
)
SPEC = ("files", "taskRef", "template", "weight")
STATUS = ("conditions", "containerStatuses", "phase", "outcome", "digest", "attempt")
PLACES = [
    "metadata",
    "spec",
    "status",
    *(f"metadata.{name}" for name in METADATA),
    *(f"spec.{name}" for name in SPEC),
    *(f"status.{name}" for name in STATUS),
]


@given(kind=st.sampled_from(list(Kind)), changes=st.dictionaries(st.sampled_from(PLACES), JSON, max_size=4))
def test_nothing_that_an_object_can_hold_makes_it_fail(kind: Kind, changes: dict[str, Any]) -> None:
    raw: Raw = named(rollout("r")) | {"status": {"phase": "Running"}}
    raw["metadata"]["labels"] = {"mlwright.dev/part": "sandbox", "mlwright.dev/rollout-uid": "u"}
    for place, value in changes.items():
        *path, last = place.split(".")
        target: Any = raw
        for name in path:
            target = target.get(name) if isinstance(target, dict) else None
        if isinstance(target, dict):
            target[last] = value
    seen = see(kind, raw)
    assert seen is None or seen.ref.kind is kind
    gather([seen])
