"""The control plane that the other tests here talk to is Kubernetes, and behaves like it."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from mlwright_cluster.cluster import Cluster, running
from mlwright_cluster.errors import CommandFailed, StartFailed
from mlwright_cluster.plan import Level

pytestmark = pytest.mark.control_plane

POLICY = """
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-red}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "!('red' in object.data)", message: red is forbidden}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-red}
spec: {policyName: no-red, validationActions: [Deny]}
"""


def get(cluster: Cluster, path: str, *, token: str) -> int:
    request = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {token}"})
    context = ssl.create_default_context(cafile=str(cluster.ca))
    try:
        with urllib.request.urlopen(request, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_it_is_the_pinned_kubernetes(control_plane: Cluster) -> None:
    assert json.loads(control_plane.kubectl("get", "--raw", "/version"))["gitVersion"].startswith("v1.")


def test_its_certificate_is_signed_by_the_authority_that_the_handle_names(control_plane: Cluster) -> None:
    assert get(control_plane, "/api/v1/secrets", token=control_plane.token) == 200


def test_a_wrong_token_is_nobody(control_plane: Cluster) -> None:
    assert get(control_plane, "/api/v1/secrets", token="wrong") == 401


def test_roles_bind(control_plane: Cluster) -> None:
    assert control_plane.kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    with pytest.raises(CommandFailed, match="cannot list resource"):
        control_plane.kubectl("get", "secrets", "--as", "somebody")


def test_a_validating_admission_policy_refuses(control_plane: Cluster) -> None:
    control_plane.kubectl("apply", "-f", "-", stdin=POLICY)
    try:
        refused = until_refused(control_plane)
        assert "red is forbidden" in refused
        control_plane.kubectl("create", "configmap", "blue", "--from-literal=blue=1", "--dry-run=server")
    finally:
        control_plane.kubectl("delete", "-f", "-", stdin=POLICY)


def until_refused(cluster: Cluster) -> str:
    """Policies are read by a watch: the first attempts may come before it."""
    for _ in range(100):
        try:
            cluster.kubectl("create", "configmap", "red", "--from-literal=red=1", "--dry-run=server")
        except CommandFailed as error:
            return str(error)
    return "never refused"


def test_its_api_server_can_be_taken_away_and_comes_back_with_its_objects(tmp_path: Path) -> None:
    with running(Level.CONTROL_PLANE, tmp_path / "cluster") as cluster:
        cluster.kubectl("create", "configmap", "kept")
        with cluster.without("kube-apiserver"), pytest.raises(CommandFailed):
            cluster.kubectl("get", "configmaps")
        assert "kept" in cluster.kubectl("get", "configmaps", "--output=name")


def test_a_component_that_ends_is_named_with_the_end_of_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "assets"
    broken.mkdir()
    for name, text in {"etcd": "echo no space left; exit 3", "kube-apiserver": "", "kubectl": ""}.items():
        (broken / name).write_text(f"#!/bin/sh\n{text}\n")
        (broken / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(broken))
    with (
        pytest.raises(StartFailed, match=r"(?s)etcd ended with status 3; .*etcd\.log:\nno space left"),
        running(Level.CONTROL_PLANE, tmp_path / "cluster"),
    ):
        pass
    assert not (tmp_path / "cluster").exists()
