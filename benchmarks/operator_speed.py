"""How fast the operator is, beside a raw asynchronous client that makes the same three writes in the same run.

    python benchmarks/operator_speed.py [--rounds 5] [--rollouts 150] [--many 1000]

Against a control plane of its own (hack/cluster: etcd and kube-apiserver; no Job controller, so Jobs stay as they are
made). Prints one JSON document; medians of the rounds, in which both ways take turns.

throughput   Rollouts created by this program at once (16 in flight) until each has its Job and its status, a second:
             the operator's, and a client's that knows what to write and just does (create, apply, apply status).
             Both need the same three writes; the operator has to be told by a watch, and this program, too.
             cpu_ms_each is what a Rollout costs all processes together (API server, etcd, whoever writes and watches):
             on a machine that others use, too, cpu_ratio says more than ratio.
idle         from the answer to a Rollout's creation to its Job's arrival at a watch, the operator having been idle.
no_op        write requests that the operator sends while it lists 1,000 Rollouts again and again.
memory       of the operator with 1,000 Rollouts and their Jobs (scripts of 2 KiB each).
restart      from the start of a new process to its first successful pass over these 1,000.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import ssl
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "hack/cluster"), str(ROOT / "tests/support")]
# Not this file's folder, in case a script there has a module's name.
sys.path[:] = [path for path in sys.path if Path(path) != ROOT / "benchmarks"]

from mlwright_cluster.cluster import Cluster, running  # noqa: E402
from mlwright_cluster.plan import Level  # noqa: E402
from mlwright_operator.actions import Kind  # noqa: E402
from mlwright_operator.observing import see  # noqa: E402
from mlwright_operator.sandbox import sandbox_job  # noqa: E402
from operator_objects import config, ready_status, rollout  # noqa: E402
from operator_process import OperatorProcess, install, namespace_with_task, until  # noqa: E402

OURS, RAW = "bench", "raw"
IN_FLIGHT = 16
GOALS = {
    "throughput_ratio_at_least": 0.75,
    "idle_p50_ms_at_most": 30,
    "no_op_writes": 0,
    "memory_mb_at_most": 160,
    "restart_seconds_at_most": 15,
}
UNLIMITED = "admission: {sandboxes: 100000, sandboxesPerRun: 100000}\n"
SCRIPT = "# A script of an ordinary length.\n" * 60


class Client:
    """The administrator, as fast as aiohttp is."""

    def __init__(self, cluster: Cluster, session: aiohttp.ClientSession) -> None:
        self._url = cluster.url
        self._session = session

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        kind = "application/apply-patch+yaml" if method == "PATCH" else "application/json"
        async with self._session.request(
            method, self._url + path, data=json.dumps(body), headers={"Content-Type": kind}
        ) as answer:
            found: dict[str, Any] = await answer.json()
            assert answer.status < 300, found
            return found

    async def create(self, namespace: str, name: str) -> dict[str, Any]:
        return await self.send("POST", rollouts(namespace), rollout(namespace, name, script=SCRIPT))

    async def watch(self, path: str) -> AsyncGenerator[dict[str, Any], None]:
        """Objects of a collection as they change, from now on."""
        version = (await self.send("GET", path + "?limit=1"))["metadata"]["resourceVersion"]
        address = f"{self._url}{path}?watch=true&resourceVersion={version}"
        async with self._session.get(address, timeout=aiohttp.ClientTimeout(total=None)) as stream:
            yield {}
            async for line in stream.content:
                yield json.loads(line)

    async def clear(self, namespace: str) -> None:
        """First what owns, so that nobody makes again what is owned."""
        await self.send("DELETE", rollouts(namespace))
        await self.send("DELETE", jobs(namespace) + "?propagationPolicy=Background")


def rollouts(namespace: str) -> str:
    return f"/apis/mlwright.dev/v1alpha1/namespaces/{namespace}/rollouts"


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


@asynccontextmanager
async def client(cluster: Cluster) -> AsyncIterator[Client]:
    context = ssl.create_default_context(cafile=str(cluster.ca))
    headers = {"Authorization": f"Bearer {cluster.token}"}
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(connector=connector, headers=headers, read_bufsize=2**21) as session:
        yield Client(cluster, session)


async def at_once(names: list[str], one: Callable[[str], Any]) -> None:
    """All of them, so many in flight."""
    turns = asyncio.Semaphore(IN_FLIGHT)

    async def each(name: str) -> None:
        async with turns:
            await one(name)

    await asyncio.gather(*(each(name) for name in names))


async def raw_round(api: Client, names: list[str]) -> float:
    """Seconds of the three writes for each name, by a client that knows them."""
    judged = see(
        Kind.TASK, await api.send("GET", f"/apis/mlwright.dev/v1alpha1/namespaces/{RAW}/mltasks/churn")
    )
    profile = config().profiles["default"]

    async def one(name: str) -> None:
        made = await api.create(RAW, name)
        job = sandbox_job(rollout=see(Kind.ROLLOUT, made), task=judged, profile=profile, attempt=1)  # type: ignore[arg-type]  # see() of these kinds
        query = "?fieldManager=raw&force=true"
        await api.send("PATCH", f"{jobs(RAW)}/{job['metadata']['name']}{query}", job)
        status = {
            "apiVersion": made["apiVersion"],
            "kind": made["kind"],
            "metadata": {
                "name": name,
                "namespace": RAW,
                "resourceVersion": made["metadata"]["resourceVersion"],
            },
            "status": {"attempt": 1, "conditions": ready_status()["conditions"]},
        }
        await api.send("PATCH", f"{rollouts(RAW)}/{name}/status{query}", status)

    began = time.perf_counter()
    await at_once(names, one)
    return time.perf_counter() - began


async def operator_round(api: Client, names: list[str]) -> float:
    """Seconds from the first creation until the operator has written every status."""
    missing = set(names)
    watching = asyncio.Event()

    async def follow() -> None:
        async for event in api.watch(rollouts(OURS)):
            watching.set()
            if event and event["object"].get("status", {}).get("attempt") == 1:
                missing.discard(event["object"]["metadata"]["name"])
            if not missing:
                return

    following = asyncio.create_task(follow())
    await watching.wait()
    began = time.perf_counter()
    await at_once(names, lambda name: api.create(OURS, name))
    async with asyncio.timeout(300):
        await following
    return time.perf_counter() - began


async def idle(api: Client, count: int) -> list[float]:
    """Seconds from a creation's answer to its Job's arrival."""
    found: list[float] = []
    stream = api.watch(jobs(OURS))
    await anext(stream)
    for number in range(count):
        await asyncio.sleep(0.3)
        await api.create(OURS, f"idle-{number}")
        began = time.perf_counter()
        while (await anext(stream))["type"] != "ADDED":
            pass
        found.append(time.perf_counter() - began)
    await stream.aclose()
    return found


def cpu_seconds(folder: Path) -> float:
    """That this program, and every process whose command line names the folder, have taken so far."""
    total = time.process_time()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(folder).encode() in (process / "cmdline").read_bytes():
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except OSError:
            # It has ended meanwhile.
            continue
    return total


async def throughput(api: Client, folder: Path, rounds: int, count: int) -> dict[str, Any]:
    raw, ours, costs = [], [], []
    for turn in range(rounds + 1):
        names = [f"r{turn}-{number}" for number in range(count)]
        first = cpu_seconds(folder)
        raw.append(count / await raw_round(api, names))
        second = cpu_seconds(folder)
        ours.append(count / await operator_round(api, names))
        costs.append((1000 * (second - first) / count, 1000 * (cpu_seconds(folder) - second) / count))
        await api.clear(RAW)
        await api.clear(OURS)
        await asyncio.sleep(2)
    # The first of each warms caches and connections.
    raw, ours, costs = raw[1:], ours[1:], costs[1:]
    ratios = [one / other for one, other in zip(ours, raw, strict=True)]
    return {
        "operator_per_second": round(statistics.median(ours), 1),
        "raw_per_second": round(statistics.median(raw), 1),
        "ratio": round(statistics.median(ratios), 3),
        "ratios": [round(each, 3) for each in ratios],
        "cpu_ms_each": {
            "operator": round(statistics.median(ours for _, ours in costs), 1),
            "raw": round(statistics.median(raw for raw, _ in costs), 1),
        },
        "cpu_ratio": round(statistics.median(raw / ours for raw, ours in costs), 3),
    }


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1024, 1)


async def many(api: Client, operator: OperatorProcess, count: int) -> dict[str, Any]:
    """What so many Rollouts cost."""
    names = [f"many-{number}" for number in range(count)]
    seconds = await operator_round(api, names)
    before = await asyncio.to_thread(quiet, operator)
    lists = operator.requests()["list", "200"]
    await asyncio.to_thread(
        until, lambda: operator.requests()["list", "200"] >= lists + 24, what="three lists"
    )
    return {
        "rollouts": count,
        "seconds": round(seconds, 1),
        "no_op_writes": int(operator.writes() - before),
        "memory_mb": resident_mb(operator.pid),
    }


def quiet(operator: OperatorProcess) -> float:
    """Wait for a second without a write."""
    while True:
        before = operator.writes()
        time.sleep(1)
        if operator.writes() == before:
            return before


def restarts(operator: OperatorProcess, rounds: int) -> list[float]:
    """Seconds from the start of a process to its first successful pass."""
    found = []
    for _ in range(rounds):
        operator.kill()
        began = time.perf_counter()
        operator.start()
        until(operator.ready, what="ready")
        found.append(time.perf_counter() - began)
    return found


@contextmanager
def operating(cluster: Cluster, folder: Path, *, resync_seconds: float = 60) -> Iterator[OperatorProcess]:
    settings = f"{UNLIMITED}resyncSeconds: {resync_seconds}\n"
    arguments = ("--namespace", OURS, "--no-election", "--log-level", "info")
    operator = OperatorProcess(cluster, folder, *arguments, config=settings)
    operator.start()
    try:
        until(operator.ready, what="ready")
        yield operator
    finally:
        operator.stop()


async def measure(cluster: Cluster, folder: Path, chosen: argparse.Namespace) -> dict[str, Any]:
    async with client(cluster) as api:
        with operating(cluster, folder / "speed"):
            await asyncio.sleep(3)
            speed = await throughput(api, folder.parent, chosen.rounds, chosen.rollouts)
            reactions = await idle(api, 40)
            await api.clear(OURS)
        with operating(cluster, folder / "many", resync_seconds=2) as operator:
            cost = await many(api, operator, chosen.many)
            restart = await asyncio.to_thread(restarts, operator, chosen.rounds)
    return {
        "throughput": speed,
        "idle_ms": {
            "p50": round(1000 * statistics.median(reactions), 1),
            "p90": round(1000 * statistics.quantiles(reactions, n=10)[-1], 1),
        },
        "many": cost,
        "restart_seconds": round(statistics.median(restart), 2),
    }


def met(found: Mapping[str, Any]) -> bool:
    return bool(
        found["throughput"]["ratio"] >= GOALS["throughput_ratio_at_least"]
        and found["idle_ms"]["p50"] <= GOALS["idle_p50_ms_at_most"]
        and found["many"]["no_op_writes"] == GOALS["no_op_writes"]
        and found["many"]["memory_mb"] <= GOALS["memory_mb_at_most"]
        and found["restart_seconds"] <= GOALS["restart_seconds_at_most"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rollouts", type=int, default=150)
    parser.add_argument("--many", type=int, default=1000)
    chosen = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Level.CONTROL_PLANE, Path(folder) / "cluster") as cluster,
    ):
        install(cluster)
        for namespace in (OURS, RAW):
            namespace_with_task(cluster, namespace)
        found = asyncio.run(measure(cluster, Path(folder) / "operator", chosen))
    print(
        json.dumps(
            {
                **found,
                "goal": GOALS,
                "met": met(found),
                "load_average": os.getloadavg()[0],
                "cores": os.cpu_count(),
            },
            indent=2,
        )
    )
    return 0 if met(found) else 1


if __name__ == "__main__":
    sys.exit(main())
