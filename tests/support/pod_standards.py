"""What a sandbox pod has to hold, written out: the restricted Pod Security Standard, agent-sandbox's rules, and ours.

Written from the standards and not from our builder: https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Json = Mapping[str, Any]
Rule = Callable[[Json], Iterator[str]]

_CONTAINERS = ("initContainers", "containers", "ephemeralContainers")
_VOLUMES = {"configMap", "downwardAPI", "emptyDir", "image", "persistentVolumeClaim"}
"""The standard also lets secret, projected, csi and ephemeral pass; a sandbox has no use for any of them."""
_SELINUX = {None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}


def violations(pod: Json) -> list[str]:
    """Every rule that a pod (or pod template) breaks, as `rule: where`."""
    return [f"{name}: {where}" for name, rule in RULES.items() for where in rule(pod)]


def containers(pod: Json) -> Iterator[Json]:
    """Of every sort: a rule that forgets init containers holds nothing."""
    for sort in _CONTAINERS:
        yield from pod["spec"].get(sort) or ()


def _security(holder: Json) -> Json:
    return holder.get("securityContext") or {}


def _everywhere(pod: Json) -> Iterator[tuple[str, Json]]:
    yield "pod", _security(pod["spec"])
    for each in containers(pod):
        yield each["name"], _security(each)


def _each_container(wrong: Callable[[Json], bool]) -> Rule:
    return lambda pod: (str(each["name"]) for each in containers(pod) if wrong(each))


def _each_context(wrong: Callable[[Json], bool]) -> Rule:
    return lambda pod: (name for name, context in _everywhere(pod) if wrong(context))


def _pod(wrong: Callable[[Json], bool]) -> Rule:
    return lambda pod: iter(["pod"] if wrong(pod["spec"]) else [])


def _annotation(*prefixes: str) -> Rule:
    return lambda pod: (
        key for key in pod.get("metadata", {}).get("annotations") or {} if key.startswith(prefixes)
    )


def _all(*rules: Rule) -> Rule:
    return lambda pod: (where for rule in rules for where in rule(pod))


def _volume_types(pod: Json) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        for kind in set(volume) - {"name"} - _VOLUMES:
            yield f"{volume['name']} is a {kind}"


def _writable_data(pod: Json) -> Iterator[str]:
    """Whoever can write to data shared by sandboxes can talk to another one, and change what it is judged by."""
    written = {each["name"] for each in pod["spec"].get("volumes") or () if "emptyDir" not in each}
    for container in containers(pod):
        for mount in container.get("volumeMounts") or ():
            if mount["name"] in written and mount.get("readOnly") is not True:
                yield f"{container['name']} can write to {mount['mountPath']}"


def _disk_backed(pod: Json) -> Iterator[str]:
    for volume in pod["spec"].get("volumes") or ():
        folder = volume.get("emptyDir")
        if folder is not None and (folder.get("medium") != "Memory" or not folder.get("sizeLimit")):
            yield volume["name"]


def _amounts(container: Json, kind: str) -> Json:
    return container.get("resources", {}).get(kind) or {}


_LIMITED = ("cpu", "memory", "ephemeral-storage")

RULES: Mapping[str, Rule] = {
    # Pod Security Standards, baseline.
    "no host processes": _each_context(
        lambda context: (context.get("windowsOptions") or {}).get("hostProcess") is True
    ),
    "no host namespaces": _pod(
        lambda spec: any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))
    ),
    "not privileged": _each_context(lambda context: bool(context.get("privileged"))),
    "no added capabilities": _each_context(lambda context: bool(context.get("capabilities", {}).get("add"))),
    "no host ports": _each_container(
        lambda each: any(port.get("hostPort") for port in each.get("ports", ()))
    ),
    "no host in probes or hooks": _each_container(
        lambda each: bool({"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} & set(each))
    ),
    "AppArmor is not switched off": _all(
        _each_context(lambda context: (context.get("appArmorProfile") or {}).get("type") == "Unconfined"),
        _annotation("container.apparmor.security.beta.kubernetes.io/"),
    ),
    "SELinux is the runtime's": _each_context(
        lambda context: (
            (context.get("seLinuxOptions") or {}).get("type") not in _SELINUX
            or any((context.get("seLinuxOptions") or {}).get(name) for name in ("user", "role"))
        )
    ),
    "/proc is masked": _each_context(lambda context: context.get("procMount", "Default") != "Default"),
    "no sysctls": _pod(lambda spec: bool(_security(spec).get("sysctls"))),
    # Pod Security Standards, restricted.
    "volume types": _volume_types,
    "no escalation": _each_container(
        lambda each: _security(each).get("allowPrivilegeEscalation") is not False
    ),
    "not root": _each_context(lambda context: context.get("runAsNonRoot") is not True),
    "no root user or group": _each_context(
        lambda context: (
            0 in (context.get("runAsUser", 0), context.get("runAsGroup", 0), context.get("fsGroup"))
        )
    ),
    "seccomp": _all(
        _each_context(lambda context: (context.get("seccompProfile") or {}).get("type") != "RuntimeDefault"),
        _annotation(
            "seccomp.security.alpha.kubernetes.io/", "container.seccomp.security.alpha.kubernetes.io/"
        ),
    ),
    "drops all capabilities": _each_container(
        lambda each: _security(each).get("capabilities", {}).get("drop") != ["ALL"]
    ),
    # agent-sandbox, beyond the standard.
    "no token": _pod(lambda spec: spec.get("automountServiceAccountToken") is not False),
    "cpu and memory limits": _each_container(
        lambda each: any(name not in _amounts(each, "limits") for name in _LIMITED)
    ),
    # Ours, beyond both.
    "read-only root": _each_container(lambda each: _security(each).get("readOnlyRootFilesystem") is not True),
    "user namespace": _pod(lambda spec: spec.get("hostUsers") is not False),
    "no shared processes": _pod(lambda spec: bool(spec.get("shareProcessNamespace"))),
    "guaranteed": _each_container(lambda each: _amounts(each, "requests") != _amounts(each, "limits")),
    "a deadline": _pod(lambda spec: not 0 < spec.get("activeDeadlineSeconds", 0) < 2**31),
    "never restarted": _pod(lambda spec: spec.get("restartPolicy") != "Never"),
    "no service links": _pod(lambda spec: spec.get("enableServiceLinks") is not False),
    "no names": _pod(
        lambda spec: (
            spec.get("dnsPolicy") != "None"
            or (spec.get("dnsConfig") or {}) != {"nameservers": ["127.0.0.1"]}
            or bool(spec.get("hostAliases"))
        )
    ),
    "nothing of the rollout in its host name": _pod(lambda spec: spec.get("hostname") != "sandbox"),
    "no environment": _each_container(lambda each: bool(each.get("env") or each.get("envFrom"))),
    "no input, devices or ports": _each_container(
        lambda each: bool({"stdin", "tty", "volumeDevices", "ports"} & set(each))
    ),
    "no claims on devices by others": _pod(lambda spec: bool(spec.get("resourceClaims"))),
    "data is read-only": _writable_data,
    "what can be written is memory of a size": _disk_backed,
    "no orders to network plug-ins or runtimes": _annotation(
        "k8s.v1.cni.cncf.io/",
        "io.kubernetes.cri-o.",
        "io.katacontainers.",
        "dev.gvisor.",
        "cni.projectcalico.org/",
    ),
}


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches, as Kubernetes evaluates it; an empty one matches everything."""
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or ()
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(each, labels) for each in expressions
    )


def _holds(expression: Json, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    answers = {
        "In": key in labels and labels[key] in values,
        "NotIn": key not in labels or labels[key] not in values,
        "Exists": key in labels,
        "DoesNotExist": key not in labels,
    }
    return answers[expression["operator"]]
