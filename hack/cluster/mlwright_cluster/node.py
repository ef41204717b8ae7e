"""How a node is set up: its namespaces, the container runtime, the kubelet, the service proxy; all as text.

A node lives in a network, a mount and a process namespace of its own. So it takes no port and no name of a bridge
from the machine, writes nothing into /run or /var/lib, and whatever it mounts or starts ends with its first process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlwright_cluster.plan import Component, Endpoint, Layout

PODS = "10.244.0.0/16"
BRIDGE = "mlwright0"
CABLE = "eth0"
"""The node's end of the cable to the machine."""
KUBELET_HEALTH, PROXY_HEALTH = "127.0.0.1:10248", "127.0.0.1:10256"
PAUSE_IMAGE = "localhost/mlwright-pause:1"

UNSHARE = (
    *("unshare", "--mount", "--propagation", "slave", "--net", "--pid", "--fork"),
    *("--kill-child=KILL", "--mount-proc"),
)
"""Whoever ends this process ends the node, every pod in it, and every mount."""

KERNEL_SETTINGS = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
"""What the kubelet insists on (`protectKernelDefaults`): it is shown these, and the machine keeps its own."""


@dataclass(frozen=True)
class Node:
    """The names that a node has on the machine, and where its programs are."""

    name: str
    cgroup: str
    endpoint: Endpoint
    programs: Mapping[str, Path]

    @property
    def bin(self) -> Path:
        """The folder that has the runtime's shim and the network plugins."""
        return self.programs["containerd"].parent


def preparation(layout: Layout, *, endpoint: Endpoint) -> tuple[tuple[str, ...], ...]:
    """The commands that make the new namespaces a node: private /run, /var/log and /var/lib, and a network."""
    overlay = f"lowerdir=/var/lib,upperdir={layout / 'var-lib'},workdir={layout / 'var-lib.work'}"
    wait = f"for i in $(seq 300); do ip link show {CABLE} && exit 0; sleep 0.1; done; exit 1"
    return (
        ("mount", "--make-rshared", "/"),
        ("mount", "-t", "tmpfs", "-o", "mode=755", "mlwright-run", "/run"),
        ("mount", "-t", "tmpfs", "-o", "mode=755", "mlwright-log", "/var/log"),
        ("mount", "-t", "overlay", "-o", overlay, "mlwright-lib", "/var/lib"),
        ("ip", "link", "set", "lo", "up"),
        ("sh", "-c", wait),
        ("ip", "address", "add", f"{endpoint.address}/30", "dev", CABLE),
        ("ip", "link", "set", CABLE, "up"),
        ("ip", "route", "add", "default", "via", endpoint.gateway),
        ("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
    )


def containerd(layout: Layout, node: Node) -> Component:
    """The container runtime."""
    argv = (str(node.programs["containerd"]), "--config", str(layout / "containerd.toml"))
    path = f"{node.bin}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    return Component("containerd", argv, ready=str(layout / "containerd.sock"), environment={"PATH": path})


def containerd_config(layout: Layout, node: Node) -> str:
    """The runtime's TOML. Without CAP_SYS_RESOURCE, scores of the OOM killer can only be raised: hence restrict."""
    return f"""\
version = 3
root = "{layout / "containerd"}"
state = "/run/mlwright-containerd"
disabled_plugins = ["io.containerd.nri.v1.nri"]

[grpc]
address = "{layout / "containerd.sock"}"

[plugins."io.containerd.cri.v1.images"]
snapshotter = "overlayfs"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{PAUSE_IMAGE}"

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["{node.bin}"]
conf_dir = "{layout / "cni"}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "{node.programs["runc"]}"
SystemdCgroup = false
"""


def network_config() -> str:
    """The pods' network: a bridge inside the node. It does not translate addresses: no pod reaches the world."""
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": "/run/mlwright-networks",
            "ranges": [[{"subnet": PODS}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "mlwright", "plugins": [bridge]}, indent=1)


def kubelet(layout: Layout, node: Node) -> Component:
    """The kubelet, which sees the kernel settings it wants; nobody else does."""
    shown = [f"mount --bind {layout / 'sysctl' / name} /proc/sys/{name}" for name in KERNEL_SETTINGS]
    arguments = [
        f"--config={layout / 'kubelet.json'}",
        f"--kubeconfig={layout / 'kubelet.kubeconfig'}",
        f"--root-dir={layout / 'kubelet'}",
        f"--cert-dir={layout / 'kubelet-certificates'}",
        f"--hostname-override={node.name}",
        f"--node-ip={node.endpoint.address}",
    ]
    script = "\n".join(["set -e", "mount --make-private /proc", *shown, 'exec "$@"'])
    own_view = ("unshare", "--mount", "--propagation", "unchanged", "sh", "-c", script, "kubelet")
    argv = (*own_view, str(node.programs["kubelet"]), *arguments)
    return Component("kubelet", argv, ready=f"http://{KUBELET_HEALTH}/healthz")


def kubelet_config(layout: Layout, node: Node) -> str:
    """The kubelet's configuration. Thresholds are low: what evicts a test's pod is to be the test."""
    config = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(layout / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{layout / 'containerd.sock'}",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "protectKernelDefaults": True,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "serializeImagePulls": False,
        "podLogsDir": "/var/log/pods",
        "volumePluginDir": "/run/mlwright-volume-plugins",
        "resolvConf": str(layout / "resolv.conf"),
        "clusterDomain": "cluster.local",
        "healthzBindAddress": KUBELET_HEALTH.partition(":")[0],
        "healthzPort": int(KUBELET_HEALTH.partition(":")[2]),
    }
    return json.dumps(config, indent=1)


def proxy(layout: Layout, node: Node) -> Component:
    """The service proxy: makes 10.96.0.1 reachable from pods."""
    argv = (str(node.programs["kube-proxy"]), f"--config={layout / 'proxy.json'}")
    return Component("kube-proxy", argv, ready=f"http://{PROXY_HEALTH}/healthz")


def proxy_config(layout: Layout, node: Node) -> str:
    """The proxy's configuration. The machine's connection tracking is left as it is."""
    config = {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clusterCIDR": PODS,
        "hostnameOverride": node.name,
        "clientConnection": {"kubeconfig": str(layout / "proxy.kubeconfig")},
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpEstablishedTimeout": "0s",
            "tcpCloseWaitTimeout": "0s",
        },
        "healthzBindAddress": PROXY_HEALTH,
        "metricsBindAddress": "127.0.0.1:10249",
    }
    return json.dumps(config, indent=1)
