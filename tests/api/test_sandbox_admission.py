"""Sandbox pods in a real API server: taken as they are, under the restricted standard, and unlike any weakened one.

The record of tests/unit/operator/sandbox/returned_pod.json is made here: MLWRIGHT_RECORD=1.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from api_server import API, Answer, ApiServer
from mlwright_cluster.cluster import Cluster
from mlwright_operator.actions import Kind
from mlwright_operator.config import SandboxProfile
from mlwright_operator.sandbox import network_policy, template, weakened
from pod_mutations import BUILT, REFUSED, Row, jobs
from sandbox_pods import NAMESPACE, PROFILE, TASK, changed, check_pod, job, pod

Json = dict[str, Any]

pytestmark = pytest.mark.control_plane

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests/unit/operator/sandbox/returned_pod.json"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
POLICIES = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/networkpolicies"


@pytest.fixture(scope="module")
def server(control_plane: Cluster) -> ApiServer:
    """With the CRDs, and a namespace that holds pods to the restricted standard."""
    control_plane.kubectl("apply", "-f", str(ROOT / "crds"))
    control_plane.kubectl(
        "wait", "--for=condition=Established", "--timeout=60s", "-f", str(ROOT / "crds"), "--recursive=false"
    )
    server = ApiServer(control_plane.url, control_plane.token, control_plane.ca)
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    server.send("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": enforced}})
    # In a whole cluster the controller manager makes it.
    accounts = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    server.send("POST", accounts, {"metadata": {"name": "default"}})
    return server


def create(server: ApiServer, path: str, body: Json, **query: str) -> Answer:
    return server.send("POST", path, body, fieldValidation="Strict", **query)


def as_pod(made: Json, name: str = "sandbox") -> Json:
    """The pod that the Job controller makes of a template."""
    return {"metadata": {**made["metadata"], "name": name}, "spec": made["spec"]}


@pytest.fixture
def living(server: ApiServer) -> Iterator[str]:
    """The path of a sandbox pod that exists (and waits for a scheduler)."""
    answer = create(server, PODS, as_pod(pod(), "living"))
    assert answer.code == 201, answer.body
    yield f"{PODS}/living"
    server.send("DELETE", f"{PODS}/living", {"gracePeriodSeconds": 0})


def test_the_namespace_holds_pods_to_the_standard(server: ApiServer) -> None:
    refused = create(
        server, PODS, {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "x", "image": "x"}]}}
    )
    assert refused.code == 403
    assert 'violates PodSecurity "restricted:latest"' in refused.body["message"]


FULL = SandboxProfile(
    image="i",
    image_pull_secrets=["registry"],
    node_selector={"pool": "sandbox"},
)
GPUS = changed(TASK, "limits.gpus", 2)
IMAGES = changed(TASK, "data", {"public": {"image": "a:1"}, "private": {"image": "b:1"}})
MAPS = changed(TASK, "data", {"public": {"configMap": "a"}, "private": {"configMap": "b"}})
TEMPLATES = {
    "sandbox": pod(),
    "sandbox with devices and placement": pod(task=GPUS, profile=FULL),
    "sandbox with images": pod(task=IMAGES),
    "sandbox with config maps": pod(task=MAPS),
    "sandbox in the host's users": pod(profile=PROFILE.model_copy(update={"user_namespaces": "Off"})),
    "check": check_pod(),
    "check with config maps": check_pod(MAPS),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_pod_is_taken_whole_and_comes_back_as_it_was_sent(server: ApiServer, name: str) -> None:
    answer = create(server, PODS, as_pod(TEMPLATES[name]), dryRun="All")
    assert answer.code == 201, answer.body
    assert weakened(TEMPLATES[name], answer.body) == ()
    assert answer.body["status"]["qosClass"] == "Guaranteed"


def test_the_record_is_what_this_api_server_returns(server: ApiServer) -> None:
    answer = create(server, PODS, as_pod(pod()), dryRun="All").body
    metadata = {key: answer["metadata"][key] for key in ("annotations", "labels")}
    record = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": answer["spec"]}
    if os.environ.get("MLWRIGHT_RECORD"):
        RECORD.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")
    assert json.loads(RECORD.read_text()) == record


def test_a_job_is_applied_whole_and_its_template_comes_back_as_it_was_sent(server: ApiServer) -> None:
    made = job()
    path = f"{JOBS}/{made['metadata']['name']}"
    apply = {
        "fieldManager": "mlwright-operator",
        "force": "true",
        "fieldValidation": "Strict",
        "dryRun": "All",
    }
    answer = server.send("PATCH", path, made, content="application/apply-patch+yaml", **apply)
    assert answer.code == 201, answer.body
    assert weakened(template(made), answer.body["spec"]["template"]) == ()
    assert answer.body["spec"]["backoffLimit"] == 0
    assert answer.body["spec"]["podReplacementPolicy"] == "Failed"


@pytest.mark.parametrize("row", BUILT, ids=str)
def test_whatever_a_user_wrote_the_job_and_the_pod_are_taken_under_the_standard(
    server: ApiServer, row: Row
) -> None:
    for made in jobs(*row.objects()):
        assert create(server, JOBS, made, dryRun="All").code == 201
        answer = create(server, PODS, as_pod(template(made)), dryRun="All")
        assert answer.code == 201, answer.body["message"]
        assert weakened(template(made), answer.body) == ()


SCHEMA = [row for row in REFUSED if row.field != "spec.data"]
PLURALS = {Kind.ROLLOUT: "rollouts", Kind.TASK: "mltasks"}


@pytest.mark.parametrize("row", SCHEMA, ids=str)
def test_what_has_no_pod_is_refused_by_the_api_server_already(server: ApiServer, row: Row) -> None:
    rollout, task = row.objects()
    body = deepcopy(rollout if row.kind is Kind.ROLLOUT else task)
    del body["metadata"]["uid"]
    path = f"{API}/namespaces/{NAMESPACE}/{PLURALS[row.kind]}"
    assert create(server, path, body, dryRun="All").code in (400, 422)


Edit = Callable[[Json], None]


def context(**fields: Any) -> Edit:
    return lambda body: body["spec"]["containers"][0]["securityContext"].update(fields)


def volume(**source: Any) -> Edit:
    return lambda body: body["spec"]["volumes"].append({"name": "extra", **source})


BREACHES: dict[str, Edit] = {
    "the host's network": lambda body: body["spec"].update(hostNetwork=True),
    "the host's processes": lambda body: body["spec"].update(hostPID=True),
    "privileged": context(privileged=True, allowPrivilegeEscalation=True),
    "a capability": context(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
    "capabilities not dropped": context(capabilities={"drop": ["NET_RAW"]}),
    "escalation": context(allowPrivilegeEscalation=True),
    "root": context(runAsNonRoot=False, runAsUser=0),
    "no seccomp": context(seccompProfile={"type": "Unconfined"}),
    "no AppArmor": context(appArmorProfile={"type": "Unconfined"}),
    "another SELinux type": context(seLinuxOptions={"type": "spc_t"}),
    "a host path": volume(hostPath={"path": "/etc"}),
    "a network file system": volume(nfs={"server": "s", "path": "/"}),
    "a sysctl": lambda body: body["spec"]["securityContext"].update(
        sysctls=[{"name": "kernel.msgmax", "value": "1"}]
    ),
    "a host port": lambda body: body["spec"]["containers"][0].update(
        ports=[{"containerPort": 80, "hostPort": 80}]
    ),
    "an ordinary init container": lambda body: body["spec"].update(
        initContainers=[{"name": "init", "image": "x"}]
    ),
}


@pytest.mark.parametrize("name", BREACHES)
def test_one_change_of_the_same_pod_is_refused(server: ApiServer, name: str) -> None:
    """So that it means something that the unchanged one is taken.

    Without a user namespace: in one, Kubernetes lets root pass, and we do not (tests/support/pod_standards.py).
    """
    body = as_pod(deepcopy(TEMPLATES["sandbox in the host's users"]))
    BREACHES[name](body)
    answer = create(server, PODS, body, dryRun="All")
    assert answer.code == 403, answer.body
    assert "violates PodSecurity" in answer.body["message"]


MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
DEBUGGER = {"name": "debugger", "image": "x", "targetContainerName": "grader", "securityContext": {
    "runAsNonRoot": True, "allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"}}}  # fmt: skip
LATER: dict[str, tuple[str, str, object, str]] = {
    "a debugger": (
        "/ephemeralcontainers",
        STRATEGIC,
        {"spec": {"ephemeralContainers": [DEBUGGER]}},
        "spec.ephemeralContainers[debugger].image: 'x' was added",
    ),
    "a label": ("", MERGE, {"metadata": {"labels": {"app": "x"}}}, "metadata.labels.app: 'x' was added"),
    "the label that the policy selects": (
        "",
        MERGE,
        {"metadata": {"labels": {"mlwright.dev/part": None}}},
        "metadata.labels.mlwright.dev/part: 'sandbox' is gone",
    ),
    "the script": (
        "",
        MERGE,
        {"metadata": {"annotations": {"mlwright.dev/files": "[]"}}},
        "metadata.annotations.mlwright.dev/files: ",
    ),
    "an image": (
        "",
        STRATEGIC,
        {"spec": {"containers": [{"name": "agent", "image": "evil"}]}},
        "spec.containers[agent].image: ",
    ),
    "an earlier end": (
        "",
        MERGE,
        {"spec": {"activeDeadlineSeconds": 30}},
        "spec.activeDeadlineSeconds: 600 has become 30",
    ),
    "tolerations": (
        "",
        "application/json-patch+json",
        [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "gpu", "operator": "Exists"}}],
        'spec.tolerations[{"key": "gpu", "operator": "Exists"}]: ',
    ),
}


@pytest.mark.parametrize("name", LATER)
def test_what_somebody_with_rights_changes_later_is_noticed(
    server: ApiServer, living: str, name: str
) -> None:
    subresource, content, patch, said = LATER[name]
    answer = server.send("PATCH", f"{living}{subresource}", patch, content=content)
    assert answer.code == 200, answer.body
    told = weakened(pod(), server.send("GET", living).body)
    assert [line for line in told if line.startswith(said)]


def test_the_policy_comes_back_as_it_was_sent_and_selects_the_pod(server: ApiServer, living: str) -> None:
    sent = network_policy(NAMESPACE)
    answer = create(server, POLICIES, sent, dryRun="All")
    assert answer.code == 201, answer.body
    assert answer.body["spec"] == sent["spec"]
    (expression,) = sent["spec"]["podSelector"]["matchExpressions"]
    selector = f"{expression['key']} in ({','.join(expression['values'])})"
    found = server.send("GET", PODS, labelSelector=selector).body["items"]
    assert [each["metadata"]["name"] for each in found] == [living.rpartition("/")[2]]
    assert server.send("GET", PODS, labelSelector="mlwright.dev/part=collector").body["items"] == []
