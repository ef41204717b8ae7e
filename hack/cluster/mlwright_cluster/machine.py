"""What a node touches on the machine: a cable, a control group, and the process that holds it; and their removal."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mlwright_cluster.errors import CommandFailed
from mlwright_cluster.node import CABLE
from mlwright_cluster.plan import Endpoint

API_PORT = 6443
NETWORKS = ipaddress.ip_network("10.213.0.0/16")
POLL_SECONDS = 0.02
GONE_SECONDS = 20.0


@dataclass(frozen=True)
class ProcessIdentity:
    """A process that cannot be mistaken for another one that got its number later."""

    pid: int
    started: int

    @staticmethod
    def of(pid: int) -> ProcessIdentity | None:
        """The process with this number now, if there is one that has not ended."""
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else ProcessIdentity(pid=pid, started=int(fields[19]))

    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return ProcessIdentity.of(self.pid) == self


def short_name(folder: Path) -> str:
    """The name of a cluster on the machine: derived from its folder, so that the next one finds what it left."""
    return "mlw" + hashlib.sha256(str(folder).encode()).hexdigest()[:8]


def free_endpoint(taken: Iterable[str], *, seed: str) -> Endpoint:
    """The first free network of four addresses, beginning at one that the seed chooses."""
    used = [ipaddress.ip_network(each, strict=False) for each in taken]
    count = NETWORKS.num_addresses // 4
    first = int(hashlib.sha256(seed.encode()).hexdigest()[:8], 16) % count
    for index in range(count):
        start = int(NETWORKS.network_address) + 4 * ((first + index) % count)
        network = ipaddress.ip_network((start, 30))
        if not any(network.overlaps(other) for other in used):
            return Endpoint(address=str(network[2]), port=API_PORT, gateway=str(network[1]))
    raise CommandFailed(f"no network is free in {NETWORKS}")


def taken_networks() -> list[str]:
    """The networks of this machine's addresses (IPv4)."""
    links = json.loads(run("ip", "-json", "-4", "address"))
    return [f"{each['local']}/{each['prefixlen']}" for link in links for each in link.get("addr_info", [])]


def lay_cable(name: str, pid: int, *, endpoint: Endpoint) -> None:
    """Connects this machine to the network namespace of a process. The cable ends with the namespace."""
    own = Path("/proc/self/ns/net").readlink()
    wait_until(lambda: Path(f"/proc/{pid}/ns/net").readlink() != own, what="a network namespace of its own")
    remove_cable(name)
    run("ip", "link", "add", name, "type", "veth", "peer", "name", CABLE, "netns", str(pid))
    run("ip", "address", "add", f"{endpoint.gateway}/30", "dev", name)
    run("ip", "link", "set", name, "up")


def remove_cable(name: str) -> None:
    """Removes the cable, if it is there."""
    if Path("/sys/class/net", name).exists():
        run("ip", "link", "delete", name)


def cgroup_folders(name: str, mounts: str) -> list[Path]:
    """The folders of a control group in every mounted hierarchy. mounts: the text of /proc/self/mountinfo."""
    lines = [line.partition(" - ") for line in mounts.splitlines()]
    return [
        Path(left.split()[4]) / name for left, _, right in lines if right.split()[0] in ("cgroup", "cgroup2")
    ]


def make_cgroup(name: str) -> None:
    """Makes the control group that the kubelet puts every pod under."""
    for folder in cgroup_folders(name, Path("/proc/self/mountinfo").read_text()):
        folder.mkdir(exist_ok=True)
        for file in ("cpuset.cpus", "cpuset.mems"):  # Version 1 wants them before a process can come in.
            if (folder.parent / file).exists() and not (folder / file).read_text().strip():
                (folder / file).write_text((folder.parent / file).read_text())


def remove_cgroup(name: str) -> None:
    """Removes the control group with all that pods left below it. No process may be in it any more."""
    for folder in cgroup_folders(name, Path("/proc/self/mountinfo").read_text()):
        wait_until(partial(_removed, folder), what=f"the end of {folder}")


def _removed(folder: Path) -> bool:
    for path, _, _ in os.walk(folder, topdown=False):
        try:
            Path(path).rmdir()
        except OSError:  # Busy: its last process is being taken away.
            return False
    return not folder.exists()


def wait_until(condition: Callable[[], bool], *, what: str, seconds: float = GONE_SECONDS) -> None:
    """Waits for something that has to happen soon. Raises CommandFailed when it has not after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise CommandFailed(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(POLL_SECONDS)


def run(*command: str, stdin: str | None = None) -> str:
    """What a command prints. Raises CommandFailed with its last words."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise CommandFailed(f"{command[0]} is missing") from error
    if done.returncode != 0:
        raise CommandFailed(f"{' '.join(command)}: {done.stderr.strip()[-2000:]}")
    return done.stdout
