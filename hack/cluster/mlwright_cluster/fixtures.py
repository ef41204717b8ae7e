"""Fixtures of the test suites that talk to a real cluster: `control_plane` and `node`, one of each a session.

`MLWRIGHT_USE_CLUSTER=1` with `KUBECONFIG` makes the node tests use that cluster instead of one of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mlwright_cluster.cluster import Cluster, found, running
from mlwright_cluster.needs import given_cluster
from mlwright_cluster.plan import Level


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """etcd and an API server, which end with the session. They have .kubeconfig, .url, .token, .ca, .kubectl(...)."""
    with running(Level.CONTROL_PLANE, tmp_path_factory.mktemp("control-plane")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that runs pods: its own, which ends with the session, or that of MLWRIGHT_USE_CLUSTER."""
    kubeconfig = given_cluster()
    if kubeconfig is not None:
        yield found(kubeconfig.resolve().parent)
        return
    with running(Level.NODE, tmp_path_factory.mktemp("node")) as cluster:
        yield cluster
