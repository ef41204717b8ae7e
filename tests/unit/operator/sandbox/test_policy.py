"""The NetworkPolicy selects the pods that are really built, and allows them nothing."""

from __future__ import annotations

import pytest
from mlwright_operator.sandbox import network_policy
from pod_standards import selects
from sandbox_pods import ROLLOUT, changed, check_pod, pod

SELECTOR = network_policy("team")["spec"]["podSelector"]


@pytest.mark.parametrize("made", [pod(), check_pod(), pod(changed(ROLLOUT, "runRef", None))])
def test_it_selects_every_pod_that_we_build(made: dict[str, dict[str, dict[str, str]]]) -> None:
    assert selects(SELECTOR, made["metadata"]["labels"])


@pytest.mark.parametrize("labels", [{}, {"mlwright.dev/part": "collector"}, {"app": "sandbox"}])
def test_it_selects_nobody_elses(labels: dict[str, str]) -> None:
    assert not selects(SELECTOR, labels)


def test_it_allows_nothing_either_way() -> None:
    spec = network_policy("team")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    assert {"ingress", "egress"}.isdisjoint(spec)


def test_there_is_one_a_namespace() -> None:
    metadata = network_policy("other")["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("other", "mlwright-sandbox")
    assert metadata["labels"] == {"app.kubernetes.io/managed-by": "mlwright"}


@pytest.mark.parametrize(
    ("operator", "labels", "matches"),
    [
        ("In", {"a": "x"}, True),
        ("In", {"a": "z"}, False),
        ("In", {}, False),
        ("NotIn", {"a": "x"}, False),
        ("NotIn", {}, True),
        ("Exists", {"a": ""}, True),
        ("Exists", {}, False),
        ("DoesNotExist", {"a": "x"}, False),
        ("DoesNotExist", {}, True),
    ],
)
def test_selectors_are_evaluated_as_kubernetes_does(
    operator: str, labels: dict[str, str], matches: bool
) -> None:
    values = ["x", "y"] if operator in ("In", "NotIn") else []
    selector = {"matchExpressions": [{"key": "a", "operator": operator, "values": values}]}
    assert selects(selector, labels) is matches
