"""The pods hold every written rule; and every rule notices the pod that breaks it, so none holds by accident."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from pod_standards import RULES, violations
from sandbox_pods import PROFILE, check_pod, pod

Json = dict[str, Any]


def test_the_sandbox_pod_breaks_no_rule() -> None:
    assert violations(pod()) == []


def test_the_check_of_a_task_breaks_no_rule() -> None:
    assert violations(check_pod()) == []


@pytest.mark.parametrize("source", [{"image": "data:1"}, {"configMap": "tiny"}, {"claim": {"name": "all"}}])
def test_no_source_of_data_breaks_a_rule(source: Json) -> None:
    from sandbox_pods import TASK, changed

    task = changed(TASK, "data.public", source)
    assert violations(pod(task=task)) == []
    assert violations(check_pod(task)) == []


def test_only_the_user_namespace_is_missing_where_the_platform_switched_it_off() -> None:
    off = PROFILE.model_copy(update={"user_namespaces": "Off"})
    assert violations(pod(profile=off)) == ["user namespace: pod"]


def on_pod(**fields: Any) -> Callable[[Json], None]:
    return lambda pod: pod["spec"].update(fields)


def without_on_pod(name: str) -> Callable[[Json], None]:
    return lambda pod: pod["spec"].pop(name)


def on_agent(**fields: Any) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["containers"][0].update(fields)


def on_context(**fields: Any) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["containers"][0]["securityContext"].update(fields)


def without_on_context(name: str) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["containers"][0]["securityContext"].pop(name)


def on_pod_context(**fields: Any) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["securityContext"].update(fields)


def annotated(key: str) -> Callable[[Json], None]:
    return lambda pod: pod["metadata"]["annotations"].update({key: "x"})


def with_volume(**source: Any) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["volumes"].append({"name": "extra", **source})


def beside(sort: str) -> Callable[[Json], None]:
    return lambda pod: pod["spec"].update({sort: [{"name": "extra"}]})


def without_a_limit(name: str) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["containers"][1]["resources"]["limits"].pop(name)


def writable(index: int) -> Callable[[Json], None]:
    return lambda pod: pod["spec"]["containers"][0]["volumeMounts"][index].pop("readOnly")


def projected(source: str) -> Callable[[Json], None]:
    return with_volume(projected={"sources": [{source: {}}]})


BREACHES: list[tuple[str, Callable[[Json], None]]] = [
    ("no host processes", on_pod_context(windowsOptions={"hostProcess": True})),
    ("no host processes", on_context(windowsOptions={"hostProcess": True})),
    ("no host namespaces", on_pod(hostNetwork=True)),
    ("no host namespaces", on_pod(hostPID=True)),
    ("no host namespaces", on_pod(hostIPC=True)),
    ("not privileged", on_context(privileged=True)),
    ("no added capabilities", on_context(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]})),
    ("no host ports", on_agent(ports=[{"containerPort": 1, "hostPort": 1}])),
    ("no host in probes or hooks", on_agent(livenessProbe={"httpGet": {"host": "10.0.0.1"}})),
    ("no host in probes or hooks", on_agent(lifecycle={"preStop": {}})),
    ("AppArmor is not switched off", on_context(appArmorProfile={"type": "Unconfined"})),
    ("AppArmor is not switched off", annotated("container.apparmor.security.beta.kubernetes.io/agent")),
    ("SELinux is the runtime's", on_context(seLinuxOptions={"type": "spc_t"})),
    ("SELinux is the runtime's", on_pod_context(seLinuxOptions={"user": "system_u"})),
    ("/proc is masked", on_context(procMount="Unmasked")),
    ("no sysctls", on_pod_context(sysctls=[{"name": "kernel.shm_rmid_forced", "value": "0"}])),
    ("volume types", with_volume(hostPath={"path": "/"})),
    ("volume types", with_volume(secret={"secretName": "s"})),
    ("volume types", with_volume(nfs={"server": "s", "path": "/"})),
    ("volume types", with_volume(csi={"driver": "d"})),
    ("volume types", with_volume(ephemeral={})),
    ("volume types", projected("serviceAccountToken")),
    ("volume types", projected("clusterTrustBundle")),
    ("volume types", projected("podCertificate")),
    ("no escalation", on_context(allowPrivilegeEscalation=True)),
    ("no escalation", without_on_context("allowPrivilegeEscalation")),
    ("not root", on_context(runAsNonRoot=False)),
    ("not root", on_pod_context(runAsNonRoot=False)),
    ("no root user or group", on_context(runAsUser=0)),
    ("no root user or group", on_context(runAsGroup=0)),
    ("no root user or group", on_pod_context(fsGroup=0)),
    ("seccomp", on_context(seccompProfile={"type": "Unconfined"})),
    ("seccomp", without_on_context("seccompProfile")),
    ("seccomp", annotated("seccomp.security.alpha.kubernetes.io/pod")),
    ("drops all capabilities", on_context(capabilities={"drop": ["NET_RAW"]})),
    ("drops all capabilities", without_on_context("capabilities")),
    ("no token", on_pod(automountServiceAccountToken=True)),
    ("no token", without_on_pod("automountServiceAccountToken")),
    ("cpu and memory limits", without_a_limit("cpu")),
    ("cpu and memory limits", without_a_limit("memory")),
    ("cpu and memory limits", without_a_limit("ephemeral-storage")),
    ("read-only root", on_context(readOnlyRootFilesystem=False)),
    ("read-only root", beside("initContainers")),
    ("read-only root", beside("ephemeralContainers")),
    ("user namespace", on_pod(hostUsers=True)),
    ("user namespace", without_on_pod("hostUsers")),
    ("no shared processes", on_pod(shareProcessNamespace=True)),
    ("guaranteed", on_agent(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}})),
    ("a deadline", without_on_pod("activeDeadlineSeconds")),
    ("a deadline", on_pod(activeDeadlineSeconds=2**31)),
    ("never restarted", on_pod(restartPolicy="OnFailure")),
    ("no service links", on_pod(enableServiceLinks=True)),
    ("no names", on_pod(dnsPolicy="ClusterFirst")),
    ("no names", on_pod(dnsConfig={"nameservers": ["127.0.0.1", "10.96.0.10"]})),
    ("no names", on_pod(hostAliases=[{"ip": "10.0.0.1", "hostnames": ["api"]}])),
    ("nothing of the rollout in its host name", on_pod(hostname="first-000017")),
    ("no environment", on_agent(env=[{"name": "SECRET", "value": "x"}])),
    ("no environment", on_agent(envFrom=[{"secretRef": {"name": "s"}}])),
    ("no input, devices or ports", on_agent(stdin=True)),
    ("no input, devices or ports", on_agent(volumeDevices=[{"name": "d", "devicePath": "/dev/sda"}])),
    ("no claims on devices by others", on_pod(resourceClaims=[{"name": "gpu"}])),
    ("data is read-only", writable(4)),
    ("data is read-only", writable(5)),
    ("what can be written is memory of a size", with_volume(emptyDir={})),
    ("what can be written is memory of a size", with_volume(emptyDir={"medium": "Memory"})),
    ("no orders to network plug-ins or runtimes", annotated("k8s.v1.cni.cncf.io/networks")),
    ("no orders to network plug-ins or runtimes", annotated("io.kubernetes.cri-o.userns-mode")),
]


@pytest.mark.parametrize(
    ("rule", "breach"), BREACHES, ids=[f"{n}-{rule}" for n, (rule, _) in enumerate(BREACHES)]
)
def test_a_rule_notices_the_pod_that_breaks_it(rule: str, breach: Callable[[Json], None]) -> None:
    broken = deepcopy(pod())
    breach(broken)
    assert rule in {each.partition(":")[0] for each in violations(broken)}


def test_every_rule_has_a_pod_that_breaks_it() -> None:
    assert {rule for rule, _ in BREACHES} == set(RULES)
