"""An operator as a process: its store, its watches (which may lie by omission), its passes, and its death."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from mlwright_operator.actions import Action, Apply, Delete, Emit, Kind, WriteStatus
from mlwright_operator.config import OperatorConfig
from mlwright_operator.edge.store import Store
from mlwright_operator.errors import ApiFailure
from mlwright_operator.failures import Failures
from mlwright_operator.observed import AnySeen, Observed
from mlwright_operator.observing import gather, see
from mlwright_operator.reconcile import PassReport, reconcile

from operator_world.api import ApiServer, Event

_RUNNER = asyncio.Runner()
"""One event loop for all of them: making one takes longer than a pass."""


class Killed(Exception):
    """The process is no more."""


Fault = Callable[[Action, int], None]
"""Called before the n-th write (from 0): may raise ApiFailure, in whose place the write is not made."""


def no_fault(_action: Action, _number: int) -> None:
    return None


@dataclass
class Lossy:
    """A watch that loses, doubles and reorders events, each with a probability."""

    random: random.Random
    lose: float = 0.0
    double: float = 0.0
    reorder: float = 0.0
    held: list[Event] = field(default_factory=list)

    def through(self, events: list[Event]) -> list[Event]:
        heard: list[Event] = []
        for event in [*self.held, *events]:
            if self.random.random() < self.lose:
                continue
            heard.append(event)
            if self.random.random() < self.double:
                heard.append(event)
        self.held = [event for event in heard if self.random.random() < self.reorder]
        now = [event for event in heard if event not in self.held]
        if self.reorder:
            self.random.shuffle(now)
        return now


@dataclass
class Operator:
    """One process; `carry_out` makes it the Cluster of its own passes."""

    api: ApiServer
    config: OperatorConfig
    fault: Fault = no_fault
    dies_after: int | None = None
    """Writes that it makes in its life; the answer to the last never reaches it."""
    watch: Lossy | None = None
    clock_error: timedelta = timedelta(0)
    writes: int = 0
    dead: bool = False
    failures: Failures = field(default_factory=dict)
    reports: list[PassReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.store: Store[AnySeen | None] = Store(see)
        self._heard = 0
        self.resync()

    def resync(self) -> None:
        """List everything, as at the start and every now and then."""
        self._heard = len(self.api.log)
        for kind in Kind:
            objects = self.api.listed(kind)
            for raw in objects:
                self.store.put(kind, raw)
            uids = {raw["metadata"]["uid"] for raw in objects}
            self.store.keep_only(kind, uids, version=str(self.api.version))

    def hear(self) -> bool:
        """What the watches have to say; whether it was anything."""
        events = self.api.log[self._heard :]
        self._heard = len(self.api.log)
        if self.watch is not None:
            events = self.watch.through(events)
        for event in events:
            self.store.take(event.kind, event.type, event.raw)
        return bool(events)

    def observed(self) -> Observed:
        return gather(self.store.values())

    def one_pass(self) -> PassReport:
        """Raises Killed where it dies on the way."""
        now = self.api.now + self.clock_error
        report = _RUNNER.run(reconcile(self.observed(), self, self.config, now=now, failures=self.failures))
        self.failures = report.failures
        self.reports.append(report)
        return report

    async def carry_out(self, action: Action) -> Mapping[str, Any] | None:
        """As Cluster."""
        if self.dead:
            raise Killed
        number, self.writes = self.writes, self.writes + 1
        self.fault(action, number)
        try:
            answer = self.api.carry_out(action)
        except ApiFailure as failure:
            if failure.gone and isinstance(action, WriteStatus):
                self.store.gone(action.ref.kind, action.ref.uid)
            raise
        if self.dies_after is not None and self.writes >= self.dies_after:
            self.dead = True
            raise Killed
        self._remember(action, answer)
        return answer

    def _remember(self, action: Action, answer: Mapping[str, Any] | None) -> None:
        match action:
            case Apply():
                assert answer is not None
                self.store.put(action.kind, answer)
            case WriteStatus():
                assert answer is not None
                self.store.put(action.ref.kind, answer)
            case Delete():
                self.store.gone(action.ref.kind, action.ref.uid)
            case Emit():
                pass
