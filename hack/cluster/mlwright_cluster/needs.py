"""Whether this machine can run the test suites that talk to a real cluster, and with which one."""

from __future__ import annotations

import os
from pathlib import Path

from mlwright_cluster.cluster import lacks_node
from mlwright_cluster.errors import ClusterError, ProgramsMissing
from mlwright_cluster.programs import CONTROL_PLANE, PROGRAMS, require

USE_CLUSTER = "MLWRIGHT_USE_CLUSTER"


def lacks_control_plane() -> str | None:
    """Why this machine cannot run an API server, if it cannot."""
    try:
        require(CONTROL_PLANE)
    except ProgramsMissing as error:
        return str(error)
    return None


def lacks_node_suite() -> str | None:
    """Why this machine has no node for tests, if it has none."""
    try:
        if given_cluster() is not None:
            return None
        require(PROGRAMS)
    except ClusterError as error:
        return str(error)
    return lacks_node()


def lacks_own_node() -> str | None:
    """Why no part of the cluster may be taken away, or an image loaded, if it is not ours."""
    kubeconfig = given_cluster()
    if kubeconfig is None or is_ours(kubeconfig):
        return None
    return f"the cluster of {kubeconfig} is not ours"


def is_ours(kubeconfig: Path) -> bool:
    """Whether this is the kubeconfig that `make cluster-up` wrote."""
    return (kubeconfig.resolve().parent / "cluster.json").exists()


def given_cluster() -> Path | None:
    """The kubeconfig of the cluster that the tests are told to use, if they are. Raises ClusterError without one."""
    if os.environ.get(USE_CLUSTER, "") in ("", "0"):
        return None
    kubeconfig = os.environ.get("KUBECONFIG", "")
    if not kubeconfig:
        raise ClusterError(f"{USE_CLUSTER} is set, but KUBECONFIG is not")
    return Path(kubeconfig)
