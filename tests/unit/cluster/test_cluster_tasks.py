"""Tasks as they stand in a cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mlwright_api.digests import spec_digest
from mlwright_api.manifests import wire
from mlwright_api.mltask import DataVolume, MLTaskSpec, TaskData
from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused, ClusterUnavailable
from mlwright_trainer.cluster.tasks import ClusterTask, find_task, require_same

NOT_FOUND = ApiFailure('mltasks.mlwright.dev "churn" not found', status=404, reason="NotFound")


class OneTask:
    """An API server with one task, or a reason to have none."""

    place = "namespace lab at https://api (context c of ~/.kube/config)"
    namespace = "lab"

    def __init__(self, answer: dict[str, Any] | ApiFailure, *, namespace_exists: bool = True) -> None:
        self._answer, self._exists = answer, namespace_exists

    async def task(self, name: str) -> dict[str, Any]:
        if isinstance(self._answer, ApiFailure):
            raise self._answer
        return self._answer

    async def has_namespace(self) -> bool:
        return self._exists


def task_object(spec: MLTaskSpec, **ready: Any) -> dict[str, Any]:
    conditions = [{"type": "Ready", **ready}] if ready else []
    return {"metadata": {"name": "churn"}, "spec": wire(spec), "status": {"conditions": conditions}}


def find(api: OneTask) -> ClusterTask:
    return asyncio.run(find_task(api, "churn"))


def test_a_ready_task_is_found_with_its_own_digest(spec: MLTaskSpec) -> None:
    found = find(OneTask(task_object(spec, status="True", reason="Checked")))
    assert (found.name, found.namespace, found.digest) == ("churn", "lab", spec_digest(spec))
    assert found.mounts().spec == spec


@pytest.mark.parametrize(
    "ready", [{}, {"status": "False", "reason": "Checking"}, {"status": "Unknown", "reason": "x"}]
)
def test_a_task_that_is_being_checked_is_good_enough(spec: MLTaskSpec, ready: dict[str, str]) -> None:
    assert find(OneTask(task_object(spec, **ready))).name == "churn"


def test_a_task_that_is_not_ready_says_why(spec: MLTaskSpec) -> None:
    bad = task_object(spec, status="False", reason="ClaimNotBound", message="claim churn-data is Pending")
    with pytest.raises(
        ClusterRefused, match=r"churn is not ready: ClaimNotBound: claim churn-data is Pending; see"
    ):
        find(OneTask(bad))


def test_a_task_that_is_not_there_says_where_it_was_looked_for() -> None:
    with pytest.raises(
        ClusterRefused, match=r"^namespace lab at .*there is no MLTask 'churn'.*kubectl get mltasks"
    ):
        find(OneTask(NOT_FOUND))


def test_a_namespace_that_is_not_there_is_what_is_said() -> None:
    with pytest.raises(ClusterRefused, match="no such namespace; choose one with --namespace"):
        find(OneTask(NOT_FOUND, namespace_exists=False))


def test_a_cluster_without_mlwright_is_what_is_said() -> None:
    with pytest.raises(ClusterRefused, match="mlwright is not installed there"):
        find(OneTask(ApiFailure("404 page not found", status=404)))


def test_a_cluster_that_is_away_is_not_the_users_fault() -> None:
    with pytest.raises(ClusterUnavailable, match="no answer"):
        find(OneTask(ApiFailure("Cannot connect to host", status=0)))


def test_a_spec_that_this_version_does_not_know_is_refused(spec: MLTaskSpec) -> None:
    later = task_object(spec)
    later["spec"]["fieldOfALaterVersion"] = 1
    with pytest.raises(ClusterRefused, match="fieldOfALaterVersion"):
        find(OneTask(later))


def test_an_operator_that_reads_the_task_differently_is_a_clear_error(spec: MLTaskSpec) -> None:
    odd = task_object(spec)
    odd["status"]["digest"] = "sha256:" + "0" * 64
    with pytest.raises(ClusterRefused, match="versions do not fit together"):
        find(OneTask(odd))


def test_a_folder_is_the_same_task_whatever_the_volumes(spec: MLTaskSpec) -> None:
    volumes = TaskData(public=DataVolume(image="data:public"), private=DataVolume(image="data:private"))
    require_same(
        spec, ClusterTask("churn", "lab", spec.model_copy(update={"data": volumes})), where="tasks/churn"
    )


def test_a_folder_that_differs_says_in_which_fields(spec: MLTaskSpec) -> None:
    other = spec.model_copy(update={"title": "Other", "description": "Other"})
    with pytest.raises(
        ClusterRefused, match=r"tasks/churn and MLTask churn .*: spec\.description, spec\.title differ"
    ):
        require_same(other, ClusterTask("churn", "lab", spec), where="tasks/churn")
