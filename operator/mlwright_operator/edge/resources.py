"""How each kind is addressed in the API, and what part of it is listed and watched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlwright_api.base import API_VERSION

from mlwright_operator.actions import Kind

OURS = "app.kubernetes.io/managed-by=mlwright"
"""Label selector of what the operator made: the rest of a cluster's Jobs and pods never comes over the wire."""


@dataclass(frozen=True)
class Resource:
    """One kind, as the API server addresses it."""

    kind: Kind
    api_version: str
    plural: str
    selector: str = ""
    """Label selector, applied by the API server to lists and watches."""
    namespaced: bool = True

    @property
    def group(self) -> str:
        """Empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Of one object (with `name`), or of the collection in a namespace or (without) in all of them."""
        root = f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"
        within = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        tail = "".join(f"/{part}" for part in (name, subresource) if part)
        return f"{root}{within}/{self.plural}{tail}"


_RESOURCES = (
    Resource(Kind.NAMESPACE, "v1", "namespaces", namespaced=False),
    Resource(Kind.TRAINING_RUN, API_VERSION, "trainingruns"),
    Resource(Kind.TASK, API_VERSION, "mltasks"),
    Resource(Kind.CLAIM, "v1", "persistentvolumeclaims"),
    Resource(Kind.NETWORK_POLICY, "networking.k8s.io/v1", "networkpolicies", selector=OURS),
    Resource(Kind.JOB, "batch/v1", "jobs", selector=OURS),
    Resource(Kind.POD, "v1", "pods", selector=OURS),
    Resource(Kind.ROLLOUT, API_VERSION, "rollouts"),
)

RESOURCES: Mapping[Kind, Resource] = {each.kind: each for each in _RESOURCES}
"""In the order in which they are listed: what rollouts depend on comes before them."""


def watched(*, everywhere: bool) -> tuple[Resource, ...]:
    """What is listed and watched; namespaces only where the operator may see all of them."""
    return tuple(each for each in _RESOURCES if everywhere or each.namespaced)
