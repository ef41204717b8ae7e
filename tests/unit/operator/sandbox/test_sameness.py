"""What a cluster adds to every pod is no difference; the same additions anywhere else, or others, are."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from mlwright_operator.config import SandboxProfile
from mlwright_operator.sandbox import lacks_user_namespace, weakened
from sandbox_pods import PROFILE, TASK, changed, pod

Json = dict[str, Any]
Edit = Callable[[Json], None]

RETURNED: Json = json.loads(Path(__file__).with_name("returned_pod.json").read_text())
"""Recorded from kube-apiserver 1.36.3 (tests/api/test_sandbox_admission.py says how)."""


def on(*path: str | int, **fields: Any) -> Edit:
    def edit(pod: Json) -> None:
        place: Any = pod
        for part in path:
            place = place[part] if isinstance(part, int) else place.setdefault(part, {})
        place.update(fields)

    return edit


def item(*path: str | int, value: object) -> Edit:
    def edit(pod: Json) -> None:
        *holder, last = path
        place: Any = pod
        for part in holder:
            place = place[part]
        place.setdefault(last, []).append(value)

    return edit


def annotated(key: str) -> Edit:
    return on("metadata", "annotations", **{key: "x"})


def labelled(key: str) -> Edit:
    return on("metadata", "labels", **{key: "x"})


def edited(edit: Edit, base: Json) -> Json:
    copy = deepcopy(base)
    edit(copy)
    return copy


def test_the_pod_that_a_real_api_server_returned_is_the_one_that_was_sent() -> None:
    assert len(RETURNED["spec"]) > len(pod()["spec"])
    assert weakened(pod(), RETURNED) == ()


HARMLESS: dict[str, Edit] = {
    "the Job controller's labels": on(
        "metadata",
        "labels",
        **{
            "batch.kubernetes.io/controller-uid": "u",
            "batch.kubernetes.io/job-name": "j",
            "controller-uid": "u",
            "job-name": "j",
        },
    ),
    "the Job controller's finalizer, owner and name": on(
        "metadata",
        name="j-x7k2p",
        generateName="j-",
        finalizers=["batch.kubernetes.io/job-tracking"],
        ownerReferences=[{"kind": "Job", "name": "j"}],
    ),
    "the node": on("spec", nodeName="node-1"),
    "the zone": labelled("topology.kubernetes.io/zone"),
    "a default priority class": on("spec", priorityClassName="standard", priority=1000),
    "the service account's pull secrets": on("spec", imagePullSecrets=[{"name": "registry"}]),
    "a note of the network plug-in": annotated("cni.projectcalico.org/podIP"),
    "a note of the limit ranger": annotated("kubernetes.io/limit-ranger"),
    "a status": on("status", phase="Running"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_a_cluster_adds_is_no_difference(name: str) -> None:
    assert weakened(pod(), edited(HARMLESS[name], RETURNED)) == ()


SUSPICIOUS: dict[str, tuple[Edit, str]] = {
    "a container": (
        item("spec", "containers", value={"name": "mesh", "image": "proxy"}),
        "spec.containers[mesh].image: 'proxy' was added",
    ),
    "an init container": (
        item("spec", "initContainers", value={"name": "init"}),
        "spec.initContainers[init]",
    ),
    "an ephemeral container": (
        item("spec", "ephemeralContainers", value={"name": "debugger"}),
        "spec.ephemeralContainers[debugger]",
    ),
    "a token": (
        item("spec", "volumes", value={"name": "kube-api-access", "projected": {"sources": []}}),
        "spec.volumes[kube-api-access].projected",
    ),
    "answers in the agent": (
        item("spec", "containers", 0, "volumeMounts", value={"name": "private", "mountPath": "/private"}),
        "spec.containers[agent].volumeMounts[/private].name: 'private' was added",
    ),
    "a second mount of the same place": (
        item("spec", "containers", 0, "volumeMounts", value={"name": "private", "mountPath": "/public"}),
        "spec.containers[agent].volumeMounts[/public#2].name: 'private' was added",
    ),
    "an environment": (
        item("spec", "containers", 0, "env", value={"name": "PYTHONPATH", "value": "/work"}),
        "spec.containers[agent].env[PYTHONPATH].value: '/work' was added",
    ),
    "another image": (
        on("spec", "containers", 1, image="other"),
        "spec.containers[grader].image: 'registry.example/sandbox@sha256:",
    ),
    "arguments": (on("spec", "containers", 0, args=["-x"]), "spec.containers[agent].args: ['-x'] was added"),
    "a capability": (
        on("spec", "containers", 0, "securityContext", "capabilities", add=["SYS_ADMIN"]),
        "spec.containers[agent].securityContext.capabilities.add: ['SYS_ADMIN'] was added",
    ),
    "an unmasked /proc": (
        on("spec", "containers", 0, "securityContext", procMount="Unmasked"),
        "spec.containers[agent].securityContext.procMount",
    ),
    "the host's network": (on("spec", hostNetwork=True), "spec.hostNetwork: True was added"),
    "names": (on("spec", dnsPolicy="ClusterFirst"), "spec.dnsPolicy: 'None' has become 'ClusterFirst'"),
    "an alias": (item("spec", "hostAliases", value={"ip": "10.0.0.1"}), "spec.hostAliases["),
    "a longer life": (on("spec", activeDeadlineSeconds=10**6), "spec.activeDeadlineSeconds: 600 has become"),
    "another service account": (on("spec", serviceAccountName="admin"), "spec.serviceAccountName"),
    "its old name": (on("spec", serviceAccount="admin"), "spec.serviceAccount: 'admin' was added"),
    "another scheduler": (on("spec", schedulerName="mine"), "spec.schedulerName: 'mine' was added"),
    "another runtime": (on("spec", runtimeClassName="runc"), "spec.runtimeClassName: 'runc' was added"),
    "another place": (on("spec", "nodeSelector", pool="control-plane"), "spec.nodeSelector.pool"),
    "a toleration of other nodes": (
        item("spec", "tolerations", value={"operator": "Exists"}),
        'spec.tolerations[{"operator": "Exists"}]',
    ),
    "overhead without a runtime class": (on("spec", "overhead", cpu="1"), "spec.overhead.cpu"),
    "more memory": (
        on("spec", "containers", 0, "resources", "limits", memory="64Gi"),
        "spec.containers[agent].resources.limits.memory: '1677721600' has become '64Gi'",
    ),
    "a label that another policy may select": (labelled("app"), "metadata.labels.app: 'x' was added"),
    "another network": (annotated("k8s.v1.cni.cncf.io/networks"), "metadata.annotations.k8s.v1.cni.cncf.io"),
    "an order to the runtime": (annotated("io.kubernetes.cri-o.userns-mode"), "metadata.annotations.io.kube"),
}


@pytest.mark.parametrize("name", SUSPICIOUS)
def test_anything_else_is_told_with_its_place(name: str) -> None:
    edit, said = SUSPICIOUS[name]
    told = weakened(pod(), edited(edit, RETURNED))
    assert [line for line in told if line.startswith(said)]


@pytest.mark.parametrize(
    ("sent", "returned", "same"),
    [
        ("1024Mi", "1Gi", True),
        ("2000m", "2", True),
        ("1024Mi", "1G", False),
        ("64Mi", "many", False),
        ("many", "none", False),
    ],
)
def test_amounts_are_compared_as_numbers(sent: str, returned: str, same: bool) -> None:
    def with_cpu(amount: str) -> Json:
        return edited(on("spec", "containers", 0, "resources", "limits", memory=amount), pod())

    assert (weakened(with_cpu(sent), with_cpu(returned)) == ()) is same


def test_other_texts_are_not_amounts() -> None:
    first, second = (edited(on("spec", hostname=name), pod()) for name in ("1024Mi", "1Gi"))
    assert weakened(first, second) == ("spec.hostname: '1024Mi' has become '1Gi'",)


def test_true_is_not_one() -> None:
    assert weakened(edited(on("spec", x=True), pod()), edited(on("spec", x=1), pod())) == (
        "spec.x: True has become 1",
    )


def test_a_long_value_is_told_in_short() -> None:
    returned = edited(on("metadata", "annotations", **{"mlwright.dev/files": "x" * 100_000}), RETURNED)
    (told,) = weakened(pod(), returned)
    assert len(told) < 300


GPU: Json = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}


def test_a_device_brings_the_toleration_of_its_nodes_where_one_was_asked_for() -> None:
    tolerating = item("spec", "tolerations", value=GPU)
    with_device = pod(task=changed(TASK, "limits.gpus", 1))
    assert weakened(with_device, edited(tolerating, with_device)) == ()
    assert weakened(pod(), edited(tolerating, pod()))


def test_a_runtime_class_that_was_asked_for_brings_its_own_placement() -> None:
    sent = pod(profile=SandboxProfile(image="i", runtime_class="gvisor"))
    brings = on(
        "spec", overhead={"cpu": "100m"}, nodeSelector={"gvisor": "yes"}, tolerations=[{"key": "gvisor"}]
    )
    assert weakened(sent, edited(brings, sent)) == ()


def test_pull_secrets_are_not_added_to_those_of_the_platform() -> None:
    sent = pod(profile=SandboxProfile(image="i", image_pull_secrets=["ours"]))
    assert weakened(sent, edited(item("spec", "imagePullSecrets", value={"name": "theirs"}), sent))


def test_a_cluster_without_user_namespaces_is_recognised() -> None:
    without = edited(lambda pod: pod["spec"].pop("hostUsers"), RETURNED)
    assert weakened(pod(), without) == ("spec.hostUsers: False is gone",)
    assert lacks_user_namespace(pod(), without)
    assert not lacks_user_namespace(pod(), RETURNED)


def test_the_hosts_users_are_the_same_whether_said_or_not() -> None:
    off = pod(profile=PROFILE.model_copy(update={"user_namespaces": "Off"}))
    without = edited(lambda pod: pod["spec"].pop("hostUsers"), off)
    assert weakened(off, without) == weakened(without, off) == ()
    assert not lacks_user_namespace(off, without)
    assert weakened(pod(), off) == ("spec.hostUsers: False is gone",)


def test_a_pod_without_anything_lacks_everything() -> None:
    assert len(weakened(pod(), {})) > 100
