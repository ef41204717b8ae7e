"""Which cluster the tests use, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_cluster import cluster, programs
from mlwright_cluster.__main__ import main
from mlwright_cluster.errors import ClusterError
from mlwright_cluster.needs import given_cluster, lacks_control_plane, lacks_node_suite, lacks_own_node


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without any program, and nothing set."""
    for name in ("MLWRIGHT_USE_CLUSTER", "KUBECONFIG", programs.ASSETS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    return monkeypatch


def test_a_bare_machine_says_what_it_needs(bare: pytest.MonkeyPatch) -> None:
    assert "Go is missing" in str(lacks_control_plane())
    assert "Go is missing" in str(lacks_node_suite())


def test_a_given_cluster_needs_nothing_here(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("MLWRIGHT_USE_CLUSTER", "1")
    assert lacks_node_suite() == "MLWRIGHT_USE_CLUSTER is set, but KUBECONFIG is not"
    bare.setenv("KUBECONFIG", "/kubeconfig")
    assert lacks_node_suite() is None
    assert given_cluster() == Path("/kubeconfig")


def test_a_kubeconfig_alone_is_not_permission(bare: pytest.MonkeyPatch) -> None:
    bare.setenv("KUBECONFIG", "/kubeconfig")
    assert given_cluster() is None


def test_only_a_cluster_of_ours_may_be_taken_apart(bare: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert lacks_own_node() is None
    bare.setenv("MLWRIGHT_USE_CLUSTER", "1")
    bare.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    assert lacks_own_node() == f"the cluster of {tmp_path / 'kubeconfig'} is not ours"
    (tmp_path / "cluster.json").touch()
    assert lacks_own_node() is None


def test_a_node_needs_root_and_names_missing_packages(bare: pytest.MonkeyPatch) -> None:
    bare.setattr("os.geteuid", lambda: 1000)
    assert cluster.lacks_node() == "a node needs Linux and root"
    bare.setattr("os.geteuid", lambda: 0)
    assert "apt-get install iproute2 util-linux nftables mount" in str(cluster.lacks_node())


def test_a_folder_without_a_cluster_is_said_to_have_none(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no cluster in"):
        cluster.found(tmp_path)
    assert not cluster.down(tmp_path)


def test_the_command_says_what_is_wrong_in_one_line(
    bare: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["up", "--folder", str(tmp_path / "cluster")]) == 1
    assert capsys.readouterr() == (
        "",
        "cluster: Go is missing: install it (https://go.dev/dl), or set KUBEBUILDER_ASSETS\n",
    )


def test_getting_ready_where_nothing_can_be_built_is_no_failure(
    bare: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ready", "--folder", str(tmp_path), "--level", "control-plane"]) == 0
    assert capsys.readouterr().err.startswith("cluster: programs: Go is missing")


def test_ending_a_cluster_that_is_not_there_is_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["down", "--folder", str(tmp_path)]) == 0
    assert capsys.readouterr().err == f"cluster: none in {tmp_path}\n"
