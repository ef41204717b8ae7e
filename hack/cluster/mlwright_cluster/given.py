"""A cluster that somebody else runs, for the node tests: known by its kubeconfig only."""

from __future__ import annotations

import base64
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

from mlwright_cluster.errors import ClusterError
from mlwright_cluster.machine import run
from mlwright_cluster.programs import CONTROL_PLANE, require


@dataclass(frozen=True)
class GivenCluster:
    """What node tests may ask of a cluster that is not ours: everything but taking parts of it away."""

    kubeconfig: Path
    url: str
    ca: Path
    token: str

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints. Raises CommandFailed with its complaint."""
        return _kubectl(self.kubeconfig, *arguments, stdin=stdin)

    @property
    def node_name(self) -> str:
        """The name of the first node."""
        return self.kubectl("get", "nodes", "--output=jsonpath={.items[0].metadata.name}")

    def load_image(self, archive: Path) -> None:
        """Says that this has been done by hand, since only the cluster's owner can."""
        raise ClusterError(f"load {archive} into the cluster of {self.kubeconfig} yourself: it is not ours")


def given(kubeconfig: Path) -> GivenCluster:
    """The cluster of a kubeconfig's current context. Raises CommandFailed where kubectl cannot read it."""
    view = ("config", "view", "--raw", "--minify", "--flatten", "--output=json")
    read = json.loads(_kubectl(kubeconfig, *view))
    cluster, user = read["clusters"][0]["cluster"], read["users"][0]["user"]
    ca = Path(tempfile.mkdtemp(prefix="mlwright-"), "ca.crt")
    ca.write_bytes(base64.b64decode(cluster.get("certificate-authority-data", "")))
    return GivenCluster(kubeconfig=kubeconfig, url=cluster["server"], ca=ca, token=user.get("token", ""))


def _kubectl(kubeconfig: Path, *arguments: str, stdin: str | None = None) -> str:
    program = require(CONTROL_PLANE)["kubectl"]
    return run(str(program), f"--kubeconfig={kubeconfig}", *arguments, stdin=stdin)
