"""For the tests on a node: one cluster with an operator in it, and one namespace with tasks that are ready."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_pod import small_task
from mlwright_cluster.cluster import Cluster
from mlwright_cluster.given import GivenCluster
from mlwright_sandbox.backend import TaskMounts
from node_lab import PROFILE, Lab, open_lab, prepared_example, with_claim, with_config_maps
from operator_process import OperatorProcess, install, operating

LAB = "lab"
Profile = dict[str, Any]


@pytest.fixture(scope="session")
def profile(sandbox_image: str) -> Profile:
    """The operator's profile of sandboxes, with this checkout's image."""
    return {**PROFILE, "image": sandbox_image}


@pytest.fixture(scope="session")
def churn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's folder, with its data."""
    return prepared_example("churn", tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> TaskMounts:
    """A task of 60 rows."""
    return small_task(tmp_path_factory.mktemp("small"))


@pytest.fixture(scope="session")
def installed(node: Cluster | GivenCluster) -> Cluster | GivenCluster:
    """The node with CRDs and the operator's rights."""
    install(node)
    return node


@pytest.fixture(scope="session")
def operator(
    installed: Cluster | GivenCluster, profile: Profile, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator for the session's namespace, without election."""
    folder = tmp_path_factory.mktemp("operator")
    options = ("--namespace", LAB, "--no-election")
    with operating(
        installed, folder, *options, profiles={"default": profile}, config="resyncSeconds: 5\n"
    ) as running:
        yield running


@pytest.fixture(scope="session")
def lab(
    installed: Cluster | GivenCluster, operator: OperatorProcess, churn: Path, small: TaskMounts
) -> Iterator[Lab]:
    """The namespace, with `churn` (data in a claim) and `small` (in ConfigMaps), both ready."""
    lab = open_lab(installed, LAB)
    installed.kubectl("delete", f"pv/{LAB}-churn", "--ignore-not-found")
    volume, task = with_claim(LAB, churn)
    installed.kubectl("apply", "-f", "-", stdin=volume)
    lab.apply(task, *with_config_maps(LAB, "small", small))
    lab.ready("churn")
    lab.ready("small")
    yield lab
    installed.kubectl("delete", "namespace", LAB, "--timeout=120s")
    installed.kubectl("delete", f"pv/{LAB}-churn", "--wait=false")
