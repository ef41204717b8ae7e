"""What the parts of a cluster are told, read back as they read it."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from mlwright_cluster import control_plane, node
from mlwright_cluster.credentials import (
    ADMIN,
    User,
    alternative_names,
    kubelet_user,
    make_certificates,
    token_file,
)
from mlwright_cluster.plan import Component, Endpoint, Layout, Plan, kubeconfig
from mlwright_cluster.programs import PROGRAMS
from mlwright_cluster.volumes import host_volume

LAYOUT = Layout(Path("/clusters/one"))
LOCAL = Endpoint(address="127.0.0.1", port=4711)
CABLED = Endpoint(address="10.213.0.2", port=6443, gateway="10.213.0.1")
NODE = node.Node(
    name="mlw1",
    cgroup="mlw1",
    endpoint=CABLED,
    programs={each.name: Path("/bin", each.name) for each in PROGRAMS},
)
COMPONENTS = (
    control_plane.etcd(Path("/bin/etcd"), LAYOUT),
    control_plane.api_server(Path("/bin/kube-apiserver"), LAYOUT, endpoint=CABLED),
    control_plane.controllers(Path("/bin/kube-controller-manager"), LAYOUT),
    control_plane.scheduler(Path("/bin/kube-scheduler"), LAYOUT),
    node.containerd(LAYOUT, NODE),
    node.kubelet(LAYOUT, NODE),
    node.proxy(LAYOUT, NODE),
)


def test_a_plan_survives_its_file() -> None:
    plan = Plan(components=COMPONENTS, prepare=node.preparation(LAYOUT, endpoint=CABLED), ca="/ca.crt")
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("component", COMPONENTS, ids=lambda each: each.name)
def test_a_component_runs_the_program_of_its_name(component: Component) -> None:
    assert any(argument == f"/bin/{component.name}" for argument in component.argv)


def test_the_store_takes_no_port() -> None:
    listens = [each for each in COMPONENTS[0].argv if each.startswith("--listen")]
    assert len(listens) == 2
    assert all("=unix://" in each for each in listens)


def test_the_api_server_authorizes_and_listens_where_the_endpoint_says() -> None:
    argv = control_plane.api_server(Path("/bin/kube-apiserver"), LAYOUT, endpoint=LOCAL).argv
    assert "--authorization-mode=Node,RBAC" in argv
    assert "--bind-address=127.0.0.1" in argv
    assert "--secure-port=4711" in argv
    assert not [each for each in argv if each.startswith(("--enable-admission", "--disable-admission"))]


@pytest.mark.parametrize(("endpoint", "none"), [(LOCAL, True), (CABLED, False)])
def test_only_a_loopback_address_is_not_announced_as_a_service(endpoint: Endpoint, none: bool) -> None:
    argv = control_plane.api_server(Path("/bin/kube-apiserver"), LAYOUT, endpoint=endpoint).argv
    assert ("--endpoint-reconciler-type=none" in argv) is none


def test_the_runtime_keeps_everything_in_the_clusters_folder_or_in_its_private_run() -> None:
    read = tomllib.loads(node.containerd_config(LAYOUT, NODE))
    places = [read["root"], read["state"], read["grpc"]["address"]]
    assert all(place.startswith((str(LAYOUT.folder), "/run/")) for place in places)
    runtime = read["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["restrict_oom_score_adj"] is True
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/bin/runc"
    pinned = read["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]
    assert pinned["sandbox"] == node.PAUSE_IMAGE


def test_the_kubelet_knows_nobody_without_asking_and_uses_its_own_control_group() -> None:
    read = json.loads(node.kubelet_config(LAYOUT, NODE))
    assert read["authentication"]["anonymous"] == {"enabled": False}
    assert read["authorization"] == {"mode": "Webhook"}
    assert read["cgroupRoot"] == "/mlw1"


def test_the_kubelet_is_shown_the_kernel_settings_that_it_protects_and_sets_none() -> None:
    assert json.loads(node.kubelet_config(LAYOUT, NODE))["protectKernelDefaults"] is True
    script = " ".join(node.kubelet(LAYOUT, NODE).argv)
    for name in node.KERNEL_SETTINGS:
        assert f"mount --bind {LAYOUT.folder}/sysctl/{name} /proc/sys/{name}" in script


def test_the_pods_network_translates_no_address() -> None:
    (bridge,) = json.loads(node.network_config())["plugins"]
    assert bridge["ipMasq"] is False
    assert bridge["ipam"]["dataDir"].startswith("/run/")


def test_the_proxy_leaves_connection_tracking_alone() -> None:
    conntrack = json.loads(node.proxy_config(LAYOUT, NODE))["conntrack"]
    assert {str(value) for value in conntrack.values()} == {"0", "0s"}


def test_a_node_gets_namespaces_of_its_own_that_end_with_it() -> None:
    for option in ("--mount", "--net", "--pid", "--kill-child=KILL"):
        assert option in node.UNSHARE
    assert node.UNSHARE[node.UNSHARE.index("--propagation") + 1] == "slave"


def test_a_kubeconfig_is_json_and_names_its_authority() -> None:
    read = json.loads(kubeconfig(url="https://a:1", ca=Path("/ca.crt"), token="t", user="me"))
    assert read["clusters"][0]["cluster"] == {"server": "https://a:1", "certificate-authority": "/ca.crt"}
    assert read["users"][0] == {"name": "me", "user": {"token": "t"}}


def test_a_token_file_has_a_line_for_each_user_with_groups() -> None:
    text = token_file({ADMIN: "a", User("b"): "c", kubelet_user("n"): "d"})
    assert text == (
        'a,mlwright-admin,mlwright-admin,"system:masters"\nc,b,b,""\nd,system:node:n,system:node:n,"system:nodes"\n'
    )


def test_alternative_names_are_in_openssls_form() -> None:
    assert alternative_names(names=["a", "b"], addresses=["1.2.3.4"]) == "DNS:a,DNS:b,IP:1.2.3.4"


def test_certificates_are_written_with_keys_that_only_the_owner_reads(tmp_path: Path) -> None:
    make_certificates(tmp_path, addresses=["127.0.0.1"])
    for name in ("ca", "server", "kubelet-client", "service-accounts"):
        assert "BEGIN CERTIFICATE" in (tmp_path / f"{name}.crt").read_text()
        assert (tmp_path / f"{name}.key").stat().st_mode & 0o077 == 0


def test_a_volume_and_its_claim_name_each_other() -> None:
    volume, claim = json.loads(host_volume("data", folder=Path("/d"), namespace="n", labels={"a": "b"}))[
        "items"
    ]
    assert volume["spec"]["claimRef"] == {"namespace": "n", "name": "data"}
    assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
    assert claim["metadata"]["labels"] == {"a": "b"}
    assert volume["spec"]["hostPath"]["path"] == "/d"


def test_a_layout_keeps_everything_in_its_folder() -> None:
    moved = replace(LAYOUT, folder=Path("/elsewhere"))
    for path in (moved.state, moved.process, moved.control, moved.kubeconfig, moved.log("etcd"), moved / "x"):
        assert path.is_relative_to("/elsewhere")
