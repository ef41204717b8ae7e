"""Which programs a cluster is made of, and building them with Go from the module proxy, once per version.

Every Go module here has its own folder in the cache, named by all that goes into its programs. A program is built
to a temporary name and renamed, so one that is there is whole; two builders at once wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlwright_cluster.errors import CommandFailed, ProgramsMissing
from mlwright_cluster.progress import timed

MODULES = Path(__file__).parents[1]
CACHE = Path.home() / ".cache/mlwright/cluster"
ASSETS = "KUBEBUILDER_ASSETS"
"""Where this is set, etcd, kube-apiserver and kubectl come from that folder, as in every operator's tests."""

KUBERNETES, CONTAINERD, PLUGINS = "v1.36.3", "v2.4.2", "v1.10.0"
STRIPPED = ("-s", "-w")


@dataclass(frozen=True)
class Program:
    """One program: its name, the folder of its Go module, its package, and how it is linked."""

    name: str
    module: str
    package: str
    variables: tuple[str, ...] = ()
    tags: str = ""
    cgo: bool = False

    def arguments(self, target: Path) -> list[str]:
        """The arguments of `go` that build it to `target`."""
        flags = [*STRIPPED, *(f"-X {variable}" for variable in self.variables)]
        linking = ["-tags", self.tags, "-ldflags", " ".join(flags)]
        return ["build", "-trimpath", *linking, "-o", str(target), self.package]


def _kubernetes(name: str) -> Program:
    version = "k8s.io/component-base/version"
    _, minor, _ = KUBERNETES.split(".")
    variables = (
        f"{version}.gitVersion={KUBERNETES}",
        f"{version}.gitMajor=1",
        f"{version}.gitMinor={minor}",
        f"{version}.gitTreeState=clean",
    )
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", variables)


def _containerd(name: str) -> Program:
    variables = (f"github.com/containerd/containerd/v2/version.Version={CONTAINERD}",)
    package = f"github.com/containerd/containerd/v2/cmd/{name}"
    return Program(name, "containerd", package, variables, tags="no_btrfs no_devmapper no_zfs")


def _plugin(folder: str) -> Program:
    plugins = "github.com/containernetworking/plugins"
    variables = (f"{plugins}/pkg/utils/buildversion.BuildVersion={PLUGINS}",)
    return Program(Path(folder).name, "containerd", f"{plugins}/plugins/{folder}", variables)


CONTROL_PLANE = (
    Program("etcd", "kubernetes", "go.etcd.io/etcd/server/v3"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kubectl"),
)
NODE = (
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    _containerd("containerd"),
    _containerd("containerd-shim-runc-v2"),
    _containerd("ctr"),
    _plugin("main/bridge"),
    _plugin("main/loopback"),
    _plugin("ipam/host-local"),
    _plugin("meta/portmap"),
    Program("pause", "pause", "."),
    Program("runc", "runc", "github.com/opencontainers/runc", tags="seccomp", cgo=True),
)
PROGRAMS = CONTROL_PLANE + NODE


def module_key(*, sources: Iterable[tuple[str, bytes]], go: str, programs: Iterable[Program]) -> str:
    """The first 12 hexadecimal digits of a digest of a module's files, the Go version and how programs are linked."""
    digest = hashlib.sha256(go.encode())
    for program in programs:
        digest.update(repr((program.arguments(Path(program.name)), program.cgo)).encode())
    for name, content in sorted(sources):
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:12]


def go_version() -> str:
    """What `go version` says. Raises ProgramsMissing where there is no Go."""
    if shutil.which("go") is None:
        raise ProgramsMissing("Go is missing: install it (https://go.dev/dl), or set KUBEBUILDER_ASSETS")
    return subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout.strip()


def module_folder(module: str, *, go: str) -> Path:
    """The cache's folder of one Go module's programs, for what its files say now."""
    files = [path for path in (MODULES / module).rglob("*") if path.suffix in (".go", ".mod", ".sum")]
    sources = [(str(path.relative_to(MODULES)), path.read_bytes()) for path in files]
    programs = [program for program in PROGRAMS if program.module == module]
    return CACHE / f"{module}-{module_key(sources=sources, go=go, programs=programs)}"


def find(programs: Sequence[Program]) -> dict[str, Path]:
    """Where each program is or would be, by name; those of KUBEBUILDER_ASSETS are taken from there."""
    assets = os.environ.get(ASSETS)
    given = {each.name: Path(assets) / each.name for each in CONTROL_PLANE} if assets else {}
    rest = [program for program in programs if program.name not in given]
    if not rest:
        return {program.name: given[program.name] for program in programs}
    go = go_version()
    folders = {module: module_folder(module, go=go) for module in {program.module for program in rest}}
    return given | {program.name: folders[program.module] / program.name for program in rest}


def require(programs: Sequence[Program]) -> dict[str, Path]:
    """Where each program is, by name. Raises ProgramsMissing, naming those that are not built."""
    found = find(programs)
    missing = [program.name for program in programs if not found[program.name].is_file()]
    if missing:
        raise ProgramsMissing(
            f"not built: {', '.join(missing)} (make test or make cluster-up builds them: ten minutes, once)"
        )
    return found


def build(programs: Sequence[Program]) -> dict[str, Path]:
    """Builds what is missing, and says where each program is, by name.

    Raises ProgramsMissing where Go is not installed, CommandFailed where it says no.
    """
    found = find(programs)
    for program in programs:
        target = found[program.name]
        if not target.is_file():
            with alone(target.parent):
                _build_one(program, target)
    return found


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Waits until nobody else builds into the folder, and keeps others out for as long as the block runs."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_one(program: Program, target: Path) -> None:
    if target.is_file():  # The one who held the lock before us built it.
        return
    partial = target.with_name(f".{target.name}.partial")
    environment = os.environ | {"CGO_ENABLED": str(int(program.cgo))}
    command = ["go", *program.arguments(partial)]
    folder = MODULES / program.module
    with timed(f"building {program.name}"):
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise CommandFailed(f"building {program.name}: {done.stderr.strip()[-2000:]}")
    partial.rename(target)
