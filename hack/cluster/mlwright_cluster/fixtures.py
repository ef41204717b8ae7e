"""Fixtures of the test suites that talk to a real cluster: one control plane, one node, one sandbox image a session.

`MLWRIGHT_USE_CLUSTER=1` with `KUBECONFIG` makes the node tests use that cluster instead of one of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mlwright_cluster import sandbox_image as images
from mlwright_cluster.cluster import Cluster, found, running
from mlwright_cluster.given import GivenCluster, given
from mlwright_cluster.needs import given_cluster, is_ours
from mlwright_cluster.plan import Level

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """etcd and an API server, which end with the session. They have .kubeconfig, .url, .token, .ca, .kubectl(...)."""
    with running(Level.CONTROL_PLANE, tmp_path_factory.mktemp("control-plane")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster | GivenCluster]:
    """A cluster that runs pods: its own, which ends with the session, or that of MLWRIGHT_USE_CLUSTER."""
    kubeconfig = given_cluster()
    if kubeconfig is None:
        with running(Level.NODE, tmp_path_factory.mktemp("node")) as cluster:
            yield cluster
    elif is_ours(kubeconfig):
        yield found(kubeconfig.resolve().parent)
    else:
        yield given(kubeconfig)


@pytest.fixture(scope="session")
def sandbox_image(node: Cluster | GivenCluster) -> str:
    """The name of this checkout's sandbox image, which the node has. `make test` has built it before."""
    image = images.build(ROOT)
    if isinstance(node, Cluster):
        node.load_image(image.archive)
    return image.name
