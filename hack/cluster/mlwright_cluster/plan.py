"""What a cluster is to be, as values: where it lives, how it is reached, and which processes it is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path

SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"


class Level(StrEnum):
    """How much of a cluster: etcd and the API server (any user), or a node that runs pods, too (root)."""

    CONTROL_PLANE = "control-plane"
    NODE = "node"


@dataclass(frozen=True)
class Endpoint:
    """Where the API server listens. For a node also the address on this machine's side of the cable to it."""

    address: str
    port: int
    gateway: str = ""

    @property
    def url(self) -> str:
        """The API server's URL."""
        return f"https://{self.address}:{self.port}"


@dataclass(frozen=True)
class Component:
    """One process of a cluster, and how to see that it is ready.

    ready: the path of a unix socket that accepts connections, a URL that answers 200, or "" (at once).
    """

    name: str
    argv: tuple[str, ...]
    ready: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """Everything that the supervisor needs: commands that prepare its namespaces, then components in their order."""

    components: tuple[Component, ...]
    prepare: tuple[tuple[str, ...], ...] = ()
    ca: str = ""

    def to_json(self) -> str:
        """The plan as the supervisor reads it."""
        return json.dumps(asdict(self), indent=1)

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that `to_json` wrote."""
        read = json.loads(text)
        components = tuple(Component(**each | {"argv": tuple(each["argv"])}) for each in read["components"])
        prepare = tuple(tuple(command) for command in read["prepare"])
        return Plan(components=components, prepare=prepare, ca=read["ca"])


@dataclass(frozen=True)
class Layout:
    """The names within a cluster's folder."""

    folder: Path

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    @property
    def state(self) -> Path:
        """What the supervisor says about itself."""
        return self.folder / "state.json"

    @property
    def process(self) -> Path:
        """Which process the supervisor is, with its start time: nothing else is ever ended."""
        return self.folder / "process.json"

    @property
    def control(self) -> Path:
        """A named pipe: `start NAME`, `stop NAME`, `end`."""
        return self.folder / "control"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.folder / "kubeconfig"

    def log(self, name: str) -> Path:
        """Where a component's output goes."""
        return self.folder / "logs" / f"{name}.log"


def kubeconfig(*, url: str, ca: Path, token: str, user: str) -> str:
    """A kubeconfig with one cluster and one user, in the part of YAML that is JSON."""
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "mlwright", "cluster": {"server": url, "certificate-authority": str(ca)}}],
            "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "mlwright", "context": {"cluster": "mlwright", "user": user}}],
            "current-context": "mlwright",
        },
        indent=1,
    )
