"""The object that a request becomes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from mlwright_api.digests import spec_digest
from mlwright_api.manifests import parse_manifests
from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_api.rollout import FILES_BYTES, Rollout
from mlwright_trainer.cluster.errors import ClusterRefused
from mlwright_trainer.cluster.manifest import differences, rollout_object
from mlwright_trainer.cluster.owner import Owner, one_call

Requested = Callable[..., Any]
RUN = Owner("churn-run", "uid-1")


def parsed(body: dict[str, Any]) -> Rollout:
    (manifest,) = parse_manifests(json.dumps(body), source="test")
    assert isinstance(manifest, Rollout)
    return manifest


def test_it_says_everything_that_was_asked_for(requested: Requested, spec: MLTaskSpec) -> None:
    request = requested(
        "r", "print(1)", splits=(Split.REWARD,), instrument=False, grade_partial=True, retries=5
    )
    rollout = parsed(rollout_object(request, RUN, sandbox="gpu"))
    assert rollout.spec.task_ref.name == "churn"
    assert rollout.spec.task_ref.digest == spec_digest(spec)
    assert rollout.spec.run_ref is not None
    assert rollout.spec.run_ref.uid == "uid-1"
    assert [file.content for file in rollout.spec.files] == ["print(1)"]
    assert rollout.spec.model_dump(
        include={"seed", "splits", "instrumentation", "grade_partial", "sandbox"}
    ) == {
        "seed": 7,
        "splits": [Split.REWARD],
        "instrumentation": "None",
        "grade_partial": True,
        "sandbox": "gpu",
    }
    assert rollout.spec.infrastructure_retries == 5
    assert rollout.spec.limits is None


def test_it_goes_with_its_run(requested: Requested) -> None:
    (reference,) = rollout_object(requested(), RUN, sandbox="default")["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("TrainingRun", "uid-1")
    assert reference["blockOwnerDeletion"] is False


def test_without_a_run_nobody_owns_it(requested: Requested) -> None:
    body = rollout_object(requested(), one_call("churn"), sandbox="default")
    assert "ownerReferences" not in body["metadata"]
    assert "runRef" not in body["spec"]
    assert parsed(body).spec.run_ref is None


def test_a_script_that_is_too_large_is_refused_here(requested: Requested) -> None:
    with pytest.raises(ClusterRefused, match="rollout r: "):
        rollout_object(requested("r", "é" * (FILES_BYTES // 2 + 1)), RUN, sandbox="default")


def live_of(body: dict[str, Any]) -> dict[str, Any]:
    """As an API server gives it back: with more fields than were sent."""
    live = copy.deepcopy(body)
    live["metadata"] |= {"uid": "u", "labels": {**body["metadata"]["labels"], "added": "by somebody"}}
    live["spec"]["fieldOfALaterVersion"] = "default"
    return live


def test_defaults_that_a_server_fills_in_are_no_difference(requested: Requested) -> None:
    body = rollout_object(requested(), RUN, sandbox="default")
    assert differences(body, live_of(body)) == ()


def test_every_field_that_was_sent_counts(requested: Requested) -> None:
    body = rollout_object(requested(), RUN, sandbox="default")
    for key in body["spec"]:
        live = live_of(body)
        live["spec"][key] = "other"
        assert differences(body, live) == (f"spec.{key}",)
        del live["spec"][key]
        assert differences(body, live) == (f"spec.{key}",)
    live = live_of(body)
    live["metadata"]["labels"][RUN.label] = "other"
    assert differences(body, live) == ("metadata.labels[mlwright.dev/run-uid]",)
