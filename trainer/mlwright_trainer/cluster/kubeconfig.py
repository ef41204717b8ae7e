"""Which cluster, as whom, in which namespace: the usual rules of kubectl, and inside of a pod the pod's own."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlwright_trainer.cluster.errors import ClusterRefused

POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True)
class Place:
    """What the user chose; None: what the kubeconfig says."""

    context: str | None = None
    namespace: str | None = None


@dataclass(frozen=True)
class Login:
    """Everything that a client needs; `configuration` is the kubernetes package's."""

    configuration: Any
    namespace: str
    described: str
    """For people: address and context."""


def kubeconfig_paths() -> str:
    """$KUBECONFIG, or ~/.kube/config; several are joined as in $PATH."""
    return os.environ.get("KUBECONFIG") or str(Path.home() / ".kube/config")


async def log_in(place: Place) -> Login:
    """Read the kubeconfig (exec plugins included), or the pod's own account where there is no kubeconfig.

    Errors: ClusterRefused, which says which file or context is missing.
    """
    from kubernetes.aio import client, config

    configuration = type.__call__(client.Configuration)
    configuration.host = ""
    if any(Path(path).expanduser().is_file() for path in kubeconfig_paths().split(os.pathsep) if path):
        return await _from_kubeconfig(place, configuration, config)
    if "KUBERNETES_SERVICE_HOST" in os.environ and place.context is None:
        return _from_pod(place, configuration, config)
    raise ClusterRefused(
        f"no cluster is known: there is no kubeconfig at {kubeconfig_paths()}; set KUBECONFIG, or make one "
        "(for a test cluster of your own: make cluster-up)"
    )


async def _from_kubeconfig(place: Place, configuration: Any, config: Any) -> Login:
    files = kubeconfig_paths()
    try:
        loader = await config.load_kube_config(
            config_file=files,
            context=place.context,
            client_configuration=configuration,
            persist_config=False,
        )
        current = loader.current_context
    except Exception as error:  # the package raises what its parsers raise: yaml, KeyError, ssl, its own
        raise ClusterRefused(_unusable(files, place, error)) from error
    namespace = place.namespace or current["context"].get("namespace") or DEFAULT_NAMESPACE
    if not configuration.host:
        raise ClusterRefused(f"{files}: the cluster of context {current['name']} has no server")
    return Login(configuration, namespace, f"{configuration.host} (context {current['name']} of {files})")


def _unusable(files: str, place: Place, error: Exception) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    if place.context is not None:
        return (
            f"--context {place.context}: cannot be used from {files}: {said}; the contexts that there are: "
            "kubectl config get-contexts"
        )
    return (
        f"{files}: cannot be used: {said}; choose a context with --context, or another file with KUBECONFIG"
    )


def _from_pod(place: Place, configuration: Any, config: Any) -> Login:
    try:
        config.load_incluster_config(client_configuration=configuration)
        own = POD_NAMESPACE.read_text("utf-8").strip()
    except (OSError, config.ConfigException) as error:
        raise ClusterRefused(f"this pod has no service account to use: {error}") from error
    return Login(configuration, place.namespace or own, f"{configuration.host} (this pod's account)")
