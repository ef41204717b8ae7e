"""The handle of a running cluster: start one or find it again, ask it, stop parts of it, end it.

with running(Level.CONTROL_PLANE, folder) as cluster:
    cluster.kubectl("get", "--raw", "/version")
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from mlwright_cluster import control_plane, credentials, machine, node
from mlwright_cluster.errors import ClusterError, ProgramsMissing, StartFailed
from mlwright_cluster.images import write_program_image
from mlwright_cluster.plan import API_SERVICE, Component, Endpoint, Layout, Level, Plan, kubeconfig
from mlwright_cluster.programs import CONTROL_PLANE, PROGRAMS, require

START_SECONDS = 240.0
NODE_COMMANDS = {"ip": "iproute2", "unshare": "util-linux", "nft": "nftables", "mount": "mount"}
"""What a node needs from the machine, and the Debian package that has it."""


@dataclass(frozen=True)
class Cluster:
    """A cluster: where it lives and how it is reached. `token` is the administrator's."""

    folder: Path
    level: Level
    endpoint: Endpoint
    token: str

    @property
    def layout(self) -> Layout:
        """The names within its folder."""
        return Layout(self.folder)

    @property
    def url(self) -> str:
        """The API server's URL."""
        return self.endpoint.url

    @property
    def ca(self) -> Path:
        """The certificate of the authority that signed the API server's."""
        return self.layout / "ca.crt"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""
        return self.layout.kubeconfig

    @property
    def node_name(self) -> str:
        """The name of the node, where there is one."""
        return machine.short_name(self.folder)

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl prints, as the administrator. Raises CommandFailed with its complaint."""
        program = require(CONTROL_PLANE)["kubectl"]
        return machine.run(str(program), f"--kubeconfig={self.kubeconfig}", *arguments, stdin=stdin)

    def ctr(self, *arguments: str) -> str:
        """What containerd's own client prints, in Kubernetes' namespace of images and containers."""
        program = require(PROGRAMS)["ctr"]
        address = f"--address={self.layout / 'containerd.sock'}"
        return machine.run(str(program), address, "--namespace=k8s.io", *arguments)

    def load_image(self, archive: Path) -> None:
        """Loads an image from an OCI or Docker archive into the node; no registry is asked."""
        self.ctr("images", "import", "--no-unpack=false", str(archive))

    def stop(self, component: str) -> None:
        """Kills one component and leaves it away, as a fault. Returns when it is gone."""
        self._tell(f"stop {component}")
        machine.wait_until(lambda: component not in self._running(), what=f"the end of {component}")

    def start(self, component: str) -> None:
        """Starts a stopped component again. Returns when it is ready."""
        self._tell(f"start {component}")
        machine.wait_until(
            lambda: component in self._running() or not self.is_running(), what=f"the start of {component}"
        )
        _wait(self.layout)

    @contextmanager
    def without(self, component: str) -> Iterator[None]:
        """The cluster with one component away, such as its API server."""
        self.stop(component)
        try:
            yield
        finally:
            self.start(component)

    def is_running(self) -> bool:
        """Whether its supervisor is alive."""
        return supervisor_of(self.layout) is not None

    def _running(self) -> dict[str, int]:
        return _state(self.layout).running

    def _tell(self, line: str) -> None:
        _command(self.layout, line)


def up(level: Level, folder: Path, *, detached: bool = False) -> Cluster:
    """Starts a cluster in `folder`, or finds the one that runs there; also after everything was killed.

    detached: it outlives this process; otherwise it ends with it, however that ends.
    Raises ProgramsMissing, StartFailed (with the tail of the log of what failed), CommandFailed.
    """
    folder = folder.resolve()
    layout = Layout(folder)
    if supervisor_of(layout) is not None:
        cluster = found(folder)
        if cluster.level is not level:
            raise ClusterError(f"{folder} has a {cluster.level} cluster: end it first (make cluster-down)")
        _wait(layout)
        return cluster
    programs = require(PROGRAMS if level is Level.NODE else CONTROL_PLANE)
    if level is Level.NODE and (why := lacks_node()):
        raise ProgramsMissing(why)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    cluster = _prepared(level, folder)
    _write(layout, {"plan.json": _plan(cluster, programs).to_json()})
    _launch(cluster, detached=detached)
    _wait(layout)
    if level is Level.NODE:
        _settle(cluster, programs)
    return cluster


def down(folder: Path) -> bool:
    """Ends the cluster of `folder` with all that it left on the machine, and removes the folder.

    Returns whether there was one. Ends no process but its supervisor, which is known by number and start time.
    """
    folder = folder.resolve()
    layout = Layout(folder)
    if not layout.process.exists():
        return False
    if (process := supervisor_of(layout)) is not None:
        try:
            _command(layout, "end")
            machine.wait_until(lambda: not process.is_alive(), what="the supervisor's end")
        except ClusterError:  # It is ending, or it hangs.
            if process.is_alive():
                os.kill(process.pid, signal.SIGKILL)
            machine.wait_until(lambda: not process.is_alive(), what="the supervisor's end")
    _clean_machine(folder)
    shutil.rmtree(folder)
    return True


@contextmanager
def running(level: Level, folder: Path) -> Iterator[Cluster]:
    """A cluster for as long as the block runs."""
    try:
        yield up(level, folder)
    finally:
        down(folder)


def found(folder: Path) -> Cluster:
    """The cluster that lives in `folder`. Raises ClusterError where there is none."""
    try:
        read = json.loads((folder / "cluster.json").read_text())
    except FileNotFoundError as error:
        raise ClusterError(f"no cluster in {folder} (make cluster-up)") from error
    endpoint = Endpoint(**read["endpoint"])
    return Cluster(folder=folder, level=Level(read["level"]), endpoint=endpoint, token=read["token"])


def supervisor_of(layout: Layout) -> machine.ProcessIdentity | None:
    """The process that runs the cluster of a folder, if it is alive."""
    try:
        process = machine.ProcessIdentity(**json.loads(layout.process.read_text()))
    except FileNotFoundError:
        return None
    return process if process.is_alive() else None


def lacks_node() -> str | None:
    """Why this machine cannot run a node, if it cannot; what is built is not looked at."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a node needs Linux and root"
    missing = [package for command, package in NODE_COMMANDS.items() if shutil.which(command) is None]
    return f"missing: {', '.join(missing)} (apt-get install {' '.join(missing)})" if missing else None


def _prepared(level: Level, folder: Path) -> Cluster:
    """The cluster with its credentials: those it had, where it is started again."""
    if (folder / "cluster.json").exists():
        return found(folder)
    cluster = Cluster(
        folder=folder, level=level, endpoint=_endpoint(level, folder), token=credentials.new_token()
    )
    credentials.make_certificates(folder, addresses=[cluster.endpoint.address, API_SERVICE])
    tokens = {
        credentials.ADMIN: cluster.token,
        credentials.CONTROLLERS: credentials.new_token(),
        credentials.SCHEDULER: credentials.new_token(),
        credentials.PROXY: credentials.new_token(),
        credentials.kubelet_user(cluster.node_name): credentials.new_token(),
    }
    files = {"tokens.csv": credentials.token_file(tokens)}
    names = (
        "kubeconfig",
        "controllers.kubeconfig",
        "scheduler.kubeconfig",
        "proxy.kubeconfig",
        "kubelet.kubeconfig",
    )
    for name, (user, token) in zip(names, tokens.items(), strict=True):
        files[name] = kubeconfig(url=cluster.url, ca=cluster.ca, token=token, user=user.name)
    read = {"level": level, "endpoint": asdict(cluster.endpoint), "token": cluster.token}
    _write(cluster.layout, files | {"cluster.json": json.dumps(read)})
    return cluster


def _endpoint(level: Level, folder: Path) -> Endpoint:
    if level is Level.NODE:
        return machine.free_endpoint(machine.taken_networks(), seed=str(folder))
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Endpoint(address="127.0.0.1", port=server.getsockname()[1])


def _plan(cluster: Cluster, programs: Mapping[str, Path]) -> Plan:
    layout = cluster.layout
    base = (
        control_plane.etcd(programs["etcd"], layout),
        control_plane.api_server(programs["kube-apiserver"], layout, endpoint=cluster.endpoint),
    )
    if cluster.level is Level.CONTROL_PLANE:
        return Plan(components=base, ca=str(cluster.ca))
    return Plan(
        components=(*base, *_node_components(cluster, programs)),
        prepare=node.preparation(layout, endpoint=cluster.endpoint),
        ca=str(cluster.ca),
    )


def _node_components(cluster: Cluster, programs: Mapping[str, Path]) -> tuple[Component, ...]:
    layout = cluster.layout
    it = node.Node(
        name=cluster.node_name, cgroup=cluster.node_name, endpoint=cluster.endpoint, programs=programs
    )
    files = {
        "containerd.toml": node.containerd_config(layout, it),
        "kubelet.json": node.kubelet_config(layout, it),
        "proxy.json": node.proxy_config(layout, it),
        "cni/10-mlwright.conflist": node.network_config(),
        "resolv.conf": "nameserver 127.0.0.1\n",
    }
    settings = {f"sysctl/{name}": f"{value}\n" for name, value in node.KERNEL_SETTINGS.items()}
    _write(layout, files | settings)
    for name in ("var-lib", "var-lib.work", "kubelet"):
        (layout / name).mkdir(exist_ok=True)
    return (
        control_plane.controllers(programs["kube-controller-manager"], layout),
        control_plane.scheduler(programs["kube-scheduler"], layout),
        node.containerd(layout, it),
        node.kubelet(layout, it),
        node.proxy(layout, it),
    )


def _write(layout: Layout, files: Mapping[str, str]) -> None:
    """Writes files that only their owner may read: some have tokens in them."""
    for name, text in files.items():
        path = layout / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)


def _launch(cluster: Cluster, *, detached: bool) -> None:
    layout = cluster.layout
    for stale in (layout.state, layout.control):
        stale.unlink(missing_ok=True)
    os.mkfifo(layout.control, mode=0o600)
    layout.log("supervisor").parent.mkdir(exist_ok=True)
    if cluster.level is Level.NODE:
        _clean_machine(cluster.folder)
        machine.make_cgroup(cluster.node_name)
    namespaces = node.UNSHARE if cluster.level is Level.NODE else ()
    command = [*namespaces, sys.executable, "-m", "mlwright_cluster.supervisor", str(layout.folder)]
    with layout.log("supervisor").open("ab") as log:
        process = subprocess.Popen(
            command if detached else [*command, "--with-stdin"],
            env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
            stdin=subprocess.DEVNULL if detached else subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    identity = machine.ProcessIdentity.of(process.pid)
    if identity is None:
        raise StartFailed(f"the supervisor ended at once: {layout.log('supervisor').read_text()[-2000:]}")
    _write(layout, {"process.json": json.dumps(asdict(identity))})
    _KEPT[layout.folder] = process
    if cluster.level is Level.NODE:
        machine.lay_cable(cluster.node_name, process.pid, endpoint=cluster.endpoint)


_KEPT: dict[Path, subprocess.Popen[bytes]] = {}
"""Supervisors that end when this process closes their standard input; that is, when it ends."""


def _wait(layout: Layout) -> None:
    """Waits until every component is ready. Raises StartFailed with the log of the one that is not."""
    deadline = time.monotonic() + START_SECONDS
    while (state := _state(layout)).phase != "Ready":
        if state.phase in ("Failed", "Ended") or supervisor_of(layout) is None:
            log = layout.log("supervisor")
            raise StartFailed(state.message or f"it ended; the end of {log}:\n{log.read_text()[-2000:]}")
        if time.monotonic() > deadline:
            raise StartFailed(f"not ready after {START_SECONDS:.0f} s; see {layout / 'logs'}")
        time.sleep(machine.POLL_SECONDS)


def _settle(cluster: Cluster, programs: Mapping[str, Path]) -> None:
    """Gives the node the image that holds pods, and waits until it takes pods."""
    archive = cluster.layout / "pause.tar"
    write_program_image(archive, name=node.PAUSE_IMAGE, program=programs["pause"])
    cluster.load_image(archive)
    name = f"node/{cluster.node_name}"
    machine.wait_until(
        lambda: name in cluster.kubectl("get", "nodes", "--output=name"),
        what="the node",
        seconds=START_SECONDS,
    )
    cluster.kubectl("wait", "--for=condition=Ready", name, f"--timeout={START_SECONDS:.0f}s")
    machine.wait_until(
        lambda: "default" in cluster.kubectl("get", "serviceaccounts", "--output=name"),
        what="the controllers",
    )


def _clean_machine(folder: Path) -> None:
    """Removes what a node of this folder left: pods end with the supervisor, names on the machine do not."""
    if os.geteuid() == 0:
        machine.remove_cable(machine.short_name(folder))
        machine.remove_cgroup(machine.short_name(folder))


@dataclass(frozen=True)
class _State:
    """What the supervisor says: its phase, what is wrong, and the process of each component that runs."""

    phase: str = "Unknown"
    message: str = ""
    running: dict[str, int] = field(default_factory=dict)


def _state(layout: Layout) -> _State:
    try:
        return _State(**json.loads(layout.state.read_text()))
    except FileNotFoundError:
        return _State()


def _command(layout: Layout, line: str) -> None:
    try:
        descriptor = os.open(layout.control, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        raise ClusterError(f"nobody listens at {layout.control}") from error
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)
