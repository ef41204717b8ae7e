"""How etcd and the API server are started; and, where there is a node, the controllers and the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mlwright_cluster.plan import SERVICES, Component, Endpoint, Layout

ETCD = "unix://etcd:2379"
"""A socket named `etcd:2379` in the cluster's folder, which is both processes' working directory: no port is taken."""
PEERS = "unix://etcd:2380"


def etcd(program: Path, layout: Layout) -> Component:
    """The store. It syncs nothing to disk: a test cluster that loses power is thrown away."""
    arguments = {
        "name": "mlwright",
        "data-dir": str(layout / "etcd"),
        "listen-client-urls": ETCD,
        "advertise-client-urls": ETCD,
        "listen-peer-urls": PEERS,
        "initial-advertise-peer-urls": PEERS,
        "initial-cluster": f"mlwright={PEERS}",
        "log-level": "warn",
    }
    argv = (str(program), "--unsafe-no-fsync", *flags(arguments))
    return Component("etcd", argv, ready=str(layout / "etcd:2379"))


def api_server(program: Path, layout: Layout, *, endpoint: Endpoint) -> Component:
    """The API server with Kubernetes' default admission, RBAC and the Node authorizer."""
    arguments = {
        "etcd-servers": ETCD,
        "bind-address": endpoint.address,
        "advertise-address": endpoint.address,
        "secure-port": str(endpoint.port),
        "tls-cert-file": str(layout / "server.crt"),
        "tls-private-key-file": str(layout / "server.key"),
        "client-ca-file": str(layout / "ca.crt"),
        "token-auth-file": str(layout / "tokens.csv"),
        "authorization-mode": "Node,RBAC",
        "service-cluster-ip-range": SERVICES,
        "service-account-issuer": "https://kubernetes.default.svc",
        "service-account-key-file": str(layout / "service-accounts.crt"),
        "service-account-signing-key-file": str(layout / "service-accounts.key"),
        "kubelet-client-certificate": str(layout / "kubelet-client.crt"),
        "kubelet-client-key": str(layout / "kubelet-client.key"),
        "kubelet-preferred-address-types": "InternalIP",
        "allow-privileged": "true",
        "profiling": "false",
    } | ({} if endpoint.gateway else {"endpoint-reconciler-type": "none"})  # It refuses loopback addresses.
    return Component("kube-apiserver", (str(program), *flags(arguments)), ready=f"{endpoint.url}/readyz")


def controllers(program: Path, layout: Layout) -> Component:
    """The controller manager. It serves nothing itself: that it works shows in the cluster."""
    arguments = {
        "kubeconfig": str(layout / "controllers.kubeconfig"),
        "service-account-private-key-file": str(layout / "service-accounts.key"),
        "root-ca-file": str(layout / "ca.crt"),
        "use-service-account-credentials": "true",
        "leader-elect": "false",
        "secure-port": "0",
    }
    return Component("kube-controller-manager", (str(program), *flags(arguments)))


def scheduler(program: Path, layout: Layout) -> Component:
    """The scheduler."""
    arguments = {
        "kubeconfig": str(layout / "scheduler.kubeconfig"),
        "leader-elect": "false",
        "secure-port": "0",
    }
    return Component("kube-scheduler", (str(program), *flags(arguments)))


def flags(arguments: Mapping[str, str]) -> list[str]:
    """Arguments as `--name=value`."""
    return [f"--{name}={value}" for name, value in arguments.items()]
