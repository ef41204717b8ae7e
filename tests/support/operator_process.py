"""An operator as a process of its own, against a real API server, with exactly the rights of operator/rbac.yaml."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlwright_cluster.cluster import Cluster
from mlwright_cluster.given import GivenCluster
from operator_objects import ready_status, task

ROOT = Path(__file__).parents[2]
SYSTEM = "mlwright-system"
NO_IMAGE: Mapping[str, Any] = {"default": {"image": "sandbox:test"}}
"""Profiles of sandboxes that no node runs."""
PATIENCE = 90.0
"""Seconds: the machine is shared."""

KUBECONFIG = """\
apiVersion: v1
kind: Config
current-context: operator
contexts: [{{name: operator, context: {{cluster: one, user: operator}}}}]
clusters: [{{name: one, cluster: {{server: "{url}", certificate-authority: "{ca}"}}}}]
users: [{{name: operator, user: {{token: "{token}"}}}}]
"""


def until(holds: Callable[[], Any], *, what: str, seconds: float = PATIENCE) -> Any:
    """What `holds` returns once that is true of it."""
    end = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(0.05)
    return found


def install(cluster: Cluster | GivenCluster) -> None:
    """CRDs and rights; again does no harm."""
    manifests = [str(path) for path in sorted((ROOT / "crds").glob("*.yaml"))]
    arguments = [part for path in manifests for part in ("-f", path)]
    cluster.kubectl("apply", "--server-side", *arguments, "-f", str(ROOT / "operator/rbac.yaml"))
    names = ("mltasks", "rollouts", "trainingruns")
    for name in names:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}.mlwright.dev", "--timeout=60s")


def get(cluster: Cluster | GivenCluster, kind: str, namespace: str, name: str = "", **options: str) -> Any:
    """One object, or the items of a kind."""
    extra = [f"--{option}={value}" for option, value in options.items()]
    found = json.loads(
        cluster.kubectl("get", kind, *filter(None, [name]), "-n", namespace, "-o", "json", *extra)
    )
    return found if name else found["items"]


def create(cluster: Cluster | GivenCluster, *objects: Mapping[str, Any]) -> None:
    """All of them in one go."""
    cluster.kubectl(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    )


def patch_status(
    cluster: Cluster | GivenCluster, kind: str, namespace: str, name: str, status: Mapping[str, Any]
) -> None:
    """As whoever owns that status would."""
    cluster.kubectl(
        "patch",
        kind,
        name,
        "-n",
        namespace,
        "--subresource=status",
        "--type=merge",
        "-p",
        json.dumps({"status": status}),
    )


def namespace_with_task(cluster: Cluster | GivenCluster, namespace: str) -> None:
    """A namespace with the task `churn`, which is ready."""
    cluster.kubectl("create", "namespace", namespace)
    create(cluster, task(namespace))
    patch_status(cluster, "mltask", namespace, "churn", ready_status())


def _end_with_parent() -> None:
    """However this process ends: nothing that it started is left."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class OperatorProcess:
    """`python -m mlwright_operator`, from start to end."""

    def __init__(
        self,
        cluster: Cluster | GivenCluster,
        folder: Path,
        *arguments: str,
        config: str = "",
        profiles: Mapping[str, Any] = NO_IMAGE,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "operator.log"
        token = cluster.kubectl("create", "token", "mlwright-operator", "-n", SYSTEM, "--duration=2h").strip()
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(KUBECONFIG.format(url=cluster.url, ca=cluster.ca, token=token))
        settings = folder / "operator.yaml"
        settings.write_text(f"profiles: {json.dumps(profiles)}\n{config}")
        self._command = [
            *(sys.executable, "-m", "mlwright_operator", "--config", str(settings)),
            *("--kubeconfig", str(kubeconfig), "--lease-namespace", SYSTEM),
            *("--listen", "127.0.0.1:0", "--log-level", "debug", *arguments),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Begin, and wait until the probes answer."""
        self._log.write_bytes(b"")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(str(ROOT / part) for part in ("operator", "crds")),
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stderr=log, env=environment, cwd=ROOT, preexec_fn=_end_with_parent
            )
        until(lambda: self.log("started") or self.ended is not None, what="the operator's start")
        assert self.ended is None, self._log.read_text()

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def began(self) -> bool:
        """Whether it has ever been started."""
        return self._process is not None

    @property
    def ended(self) -> int | None:
        """The exit code, where it has ended."""
        assert self._process is not None
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stop(self) -> int:
        """Ask it to end; the exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """End it between two instructions."""
        self.signal(signal.SIGKILL)
        self.wait()

    def wait(self) -> int:
        assert self._process is not None
        return self._process.wait(PATIENCE)

    def log(self, message: str) -> list[dict[str, Any]]:
        """The lines that say so."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if message in line["message"]]

    def errors(self) -> list[dict[str, Any]]:
        """What it complained of as its own fault."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if "exception" in line]

    def ask(self, path: str) -> tuple[int, str]:
        """The code and the text of a probe or of the metrics."""
        address = self.log("started")[0]["listen"]
        try:
            with urllib.request.urlopen(f"http://{address}{path}", timeout=10) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def ready(self) -> bool:
        return self.ask("/readyz")[0] == 200

    def writes(self) -> float:
        """Write requests so far, those of the lease aside."""
        return sum(value for (verb, _), value in self.requests().items() if verb in ("apply", "delete"))

    def requests(self) -> dict[tuple[str, str], float]:
        """By verb and code."""
        found = {}
        for line in self.ask("/metrics")[1].splitlines():
            if line.startswith("mlwright_operator_api_requests_total{"):
                labels, _, value = line.partition("} ")
                code, verb = (part.split('"')[1] for part in labels.split(","))
                found[verb, code] = float(value)
        return found


@contextmanager
def operating(
    cluster: Cluster | GivenCluster,
    folder: Path,
    *arguments: str,
    config: str = "",
    profiles: Mapping[str, Any] = NO_IMAGE,
) -> Iterator[OperatorProcess]:
    """An operator that runs, and has ended afterwards, without a fault of its own."""
    operator = OperatorProcess(cluster, folder, *arguments, config=config, profiles=profiles)
    operator.start()
    try:
        yield operator
        assert operator.errors() == []
    finally:
        if operator.ended is None:
            operator.signal(signal.SIGCONT)
            operator.stop()
