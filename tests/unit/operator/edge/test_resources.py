"""Paths and selectors of every kind that is read or written."""

from __future__ import annotations

import pytest
from mlwright_operator.actions import Kind
from mlwright_operator.edge.resources import OURS, RESOURCES, watched


def test_every_kind_has_an_address() -> None:
    assert set(RESOURCES) == set(Kind)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Kind.POD, "/api/v1/namespaces/lab/pods/x"),
        (Kind.JOB, "/apis/batch/v1/namespaces/lab/jobs/x"),
        (Kind.ROLLOUT, "/apis/mlwright.dev/v1alpha1/namespaces/lab/rollouts/x"),
        (Kind.NAMESPACE, "/api/v1/namespaces/x"),
    ],
)
def test_an_object_is_where_kubernetes_has_it(kind: Kind, path: str) -> None:
    assert RESOURCES[kind].path(namespace="lab", name="x") == path


def test_without_a_namespace_the_collection_is_that_of_all() -> None:
    assert RESOURCES[Kind.POD].path() == "/api/v1/pods"


def test_a_status_is_a_subresource() -> None:
    path = RESOURCES[Kind.TASK].path(namespace="lab", name="x", subresource="status")
    assert path == "/apis/mlwright.dev/v1alpha1/namespaces/lab/mltasks/x/status"


@pytest.mark.parametrize("kind", [Kind.JOB, Kind.POD, Kind.NETWORK_POLICY])
def test_of_what_others_make_too_only_ours_comes_over_the_wire(kind: Kind) -> None:
    assert RESOURCES[kind].selector == OURS


def test_namespaces_are_only_watched_by_who_may_see_all() -> None:
    assert Kind.NAMESPACE in {each.kind for each in watched(everywhere=True)}
    assert Kind.NAMESPACE not in {each.kind for each in watched(everywhere=False)}
