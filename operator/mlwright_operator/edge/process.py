"""The process: everything wired together, started in order, and ended so that nothing is left half done."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
import socket
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration

from mlwright_operator.config import OperatorConfig
from mlwright_operator.edge.connection import Api, configured
from mlwright_operator.edge.election import Election, LeaseTimes
from mlwright_operator.edge.gate import Gate
from mlwright_operator.edge.health import Health, Verdict
from mlwright_operator.edge.kube import KubeCluster
from mlwright_operator.edge.listing import Lister
from mlwright_operator.edge.loop import Worker
from mlwright_operator.edge.metrics import Metrics
from mlwright_operator.edge.passes import Passes
from mlwright_operator.edge.probes import Probes
from mlwright_operator.edge.resources import watched
from mlwright_operator.edge.resync import Resync
from mlwright_operator.edge.store import Store
from mlwright_operator.edge.watching import Watch
from mlwright_operator.errors import LeaseLost
from mlwright_operator.observed import AnySeen
from mlwright_operator.observing import see

log = logging.getLogger(__name__)

LEASE = "mlwright-operator"
LOST_LEASE = 75
"""Exit code, as sysexits' EX_TEMPFAIL: start me again."""
_POD_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    namespaces: Sequence[str] | None = None
    """Instead of the configuration's."""
    kubeconfig: str | None = None
    election: bool = True
    lease_namespace: str | None = None
    listen: tuple[str, int] = ("0.0.0.0", 8080)
    lease_times: LeaseTimes = field(default_factory=LeaseTimes)


async def run(config: OperatorConfig, options: Options) -> int:
    """Run until SIGTERM, SIGINT or the loss of the lease; the exit code. Raises ConfigError."""
    operator = Operator(config, options, await configured(options.kubeconfig))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, operator.stop)
    return await operator.run()


class Operator:
    """One operator in one event loop."""

    def __init__(self, config: OperatorConfig, options: Options, configuration: Configuration) -> None:
        self._options = options
        namespaces = tuple(config.namespaces if options.namespaces is None else options.namespaces)
        identity = f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}"
        self._stopping = asyncio.Event()
        self.metrics = metrics = Metrics()
        self.gate = gate = Gate()
        self.health = health = Health(resync_seconds=config.resync_seconds)
        self.api = Api(_client(configuration), count=self._answered)
        self.store: Store[AnySeen | None] = Store(see)
        cluster = KubeCluster(self.api, gate=gate, memory=self.store, instance=identity)
        self.passes = Passes(self.store, cluster, config, metrics=metrics)
        self.worker = Worker(self.passes.one, gate=gate, health=health, failed=metrics.failure)
        self.watch = Watch(
            configuration=configuration,
            resources=watched(everywhere=not namespaces),
            namespaces=namespaces,
            take=self.store.take,
            wake=self.worker.wake,
            failed=metrics.failure,
        )
        self.resync = Resync(
            Lister(self.api, store=self.store, namespaces=namespaces).refresh,
            wanted=self.watch.relisted,
            wake=self.worker.wake,
            failed=metrics.failure,
            health=health,
            seconds=config.resync_seconds,
        )
        self.election = Election(
            self.api,
            gate=gate,
            namespace=options.lease_namespace or own_namespace(),
            name=LEASE,
            identity=identity,
            times=options.lease_times,
        )
        self.probes = Probes(alive=health.alive, ready=self._ready, metrics=self._exposition)

    def stop(self) -> None:
        """End soon: what is being written is finished, nothing else is begun."""
        self._stopping.set()

    async def run(self) -> int:
        """Work until told to stop; the exit code."""
        host, port = self._options.listen
        port = await self.probes.start(host=host, port=port)
        log.info("started", extra={"listen": f"{host}:{port}"})
        try:
            return await self._work()
        finally:
            await self.probes.stop()
            await self.api.close()

    async def _work(self) -> int:
        electing, working = asyncio.create_task(self._elect()), asyncio.create_task(self._operate())
        stopping = asyncio.create_task(self._stopping.wait())
        await asyncio.wait([electing, working, stopping], return_when=asyncio.FIRST_COMPLETED)
        ended = [task for task in (electing, working) if task.done()]
        self.gate.shut()
        await self.gate.drained()
        await _cancel([electing])
        await self.election.release()
        await _cancel([working, stopping])
        for task in ended:
            if isinstance(lost := task.exception(), LeaseLost):
                log.error("another operator leads: %s", lost)
                return LOST_LEASE
            task.result()
        log.info("stopped")
        return 0

    async def _elect(self) -> None:
        if self._options.election:
            await self.election.run()
        self.gate.open_until(math.inf)
        await asyncio.Event().wait()

    async def _operate(self) -> None:
        await self.resync.first()
        async with asyncio.TaskGroup() as group:
            for forever in (self.watch.run(), self.resync.run(), self.worker.run()):
                group.create_task(forever)

    def _answered(self, verb: str, code: int) -> None:
        self.metrics.request(verb, code)
        self.health.answered(code)

    def _ready(self) -> Verdict:
        return self.health.ready(leading=self.gate.open)

    def _exposition(self) -> bytes:
        self.metrics.leader.set(self.gate.open)
        self.metrics.objects(self.store.counts())
        return self.metrics.exposition()


async def _cancel(tasks: Sequence[asyncio.Task[object]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _client(configuration: Configuration) -> ApiClient:
    # With proxies and netrc from the environment, aiohttp would ask two threads before each request.
    configuration.client_session_kwargs = {"trust_env": False}
    # Each connection has a quarter of a megabyte of buffers; more than this the API server would queue anyway.
    configuration.connection_pool_maxsize = 16
    client = ApiClient(configuration)
    client.user_agent = "mlwright-operator"
    return client


def own_namespace() -> str:
    """Where this process runs: $POD_NAMESPACE, the service account's, else `default`."""
    if named := os.environ.get("POD_NAMESPACE"):
        return named
    try:
        return _POD_NAMESPACE.read_text().strip() or "default"
    except OSError:
        return "default"
