"""The local backend: queue, slots and results behind the port `SandboxBackend`; and the choice of isolation."""

from __future__ import annotations

import os
import queue
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from mlwright_api.results import Receipt
from mlwright_api.rollout import Outcome, RolloutStatus

from mlwright_sandbox import cgroups, fork_server
from mlwright_sandbox.backend import Finished, SandboxRequest
from mlwright_sandbox.errors import IsolationError
from mlwright_sandbox.grading_server import LocalGrader
from mlwright_sandbox.leftovers import StateFolder
from mlwright_sandbox.pool import Servers
from mlwright_sandbox.servers import ForkServer, Site
from mlwright_sandbox.slot import FolderGrader, Slot, Ticket

BackendKind = Literal["auto", "namespaces", "lock", "plain"]
_KINDS = {"namespaces": fork_server.NAMESPACES, "lock": fork_server.LOCK, "plain": fork_server.PLAIN}
_PLAIN_WARNING = (
    "mlwright: NO ISOLATION. Scripts run as plain processes with all your rights: they can read your files and the "
    "answers, and use the network. Run only scripts that you trust."
)


class UnisolatedWarning(UserWarning):
    """Scripts run without isolation."""


class LocalBackend:
    """Runs scripts on this machine, one a slot, each slot a thread with a core of its own."""

    def __init__(self, kind: str, *, slots: int, grader: FolderGrader | None = None) -> None:
        self.kind = kind
        self._own_grader = LocalGrader() if grader is None else None
        self._grader: FolderGrader = grader or self._own_grader  # type: ignore[assignment]  # one of them is set
        self._state = StateFolder()
        self._servers = Servers()
        self._waiting: queue.SimpleQueue[Ticket | None] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._tickets: dict[str, Ticket] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._all_served = threading.Barrier(slots)
        self._threads = [
            threading.Thread(target=self._serve, args=(slot,), name=f"mlwright-slot-{number}", daemon=True)
            for number, slot in enumerate(self._make_slots(slots))
        ]
        for thread in self._threads:
            thread.start()

    def _make_slots(self, count: int) -> list[Slot]:
        cpus: list[int | None] = [*own_cpus()] or [None]
        groups = cgroups.open_groups(count)
        return [
            Slot(
                number,
                kind=self.kind,
                cpu=cpus[number % len(cpus)],
                group=group,
                servers=self._servers,
                state=self._state,
            )
            for number, group in enumerate(groups)
        ]

    @property
    def slots(self) -> int:
        return len(self._threads)

    @property
    def state_folder(self) -> Path:
        """Where sandboxes without namespaces have their work folders; removed by `close`, or at a later start."""
        return self._state.path

    def submit(self, request: SandboxRequest) -> None:
        """Queue a script; raises ValueError if its rollout is in flight, IsolationError after `close`."""
        ticket = Ticket(request)
        with self._lock:
            if self._closed:
                raise IsolationError("the backend is closed")
            if request.rollout in self._tickets:
                raise ValueError(f"rollout {request.rollout!r} is in flight already")
            self._tickets[request.rollout] = ticket
        self._waiting.put(ticket)

    def collect(self, timeout: float | None = None) -> Sequence[Finished]:
        """What has finished; see the port."""
        found: list[Finished] = []
        try:
            found.append(self._finished.get(timeout=timeout))
            while True:
                found.append(self._finished.get_nowait())
        except queue.Empty:
            return found

    def cancel(self, rollout: str) -> None:
        """End a rollout, queued or running; unknown ones have ended."""
        with self._lock:
            ticket = self._tickets.get(rollout)
        if ticket is not None:
            ticket.cancellation.ask()

    def release(self, rollout: str) -> None:
        """Nothing: a result that was collected is all there is of it."""

    def close(self) -> None:
        """End everything; idempotent. What was in flight can still be collected, as Cancelled."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            tickets = list(self._tickets.values())
        for ticket in tickets:
            ticket.cancellation.ask()
        for _ in self._threads:
            self._waiting.put(None)
        for thread in self._threads:
            thread.join()
        self._servers.close()
        self._state.close()
        if self._own_grader is not None:
            self._own_grader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _serve(self, slot: Slot) -> None:
        """A slot's thread. It ends after the last script of all slots: the servers that it started end with it."""
        try:
            while (ticket := self._waiting.get()) is not None:
                finished = self._run(slot, ticket)
                with self._lock:
                    del self._tickets[ticket.request.rollout]
                self._finished.put(finished)
            self._all_served.wait()
        finally:
            slot.close()

    def _run(self, slot: Slot, ticket: Ticket) -> Finished:
        try:
            return slot.run(ticket, self._grader)
        except Exception as error:  # a fault of ours must not leave the caller waiting for ever
            status = RolloutStatus(
                outcome=Outcome.INFRASTRUCTURE_FAILED, reason=f"Internal: {error!r}"[:1024]
            )
            return Finished(ticket.request.rollout, status, time.time())


def own_cpus() -> list[int]:
    """The cores that this process may use; empty where the system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return []


def open_backend(kind: BackendKind = "auto", *, slots: int | None = None) -> LocalBackend:
    """The backend of that kind, or the best that this machine allows; close it, or use it in a `with`.

    Warns (UnisolatedWarning) where scripts run as plain processes. Errors: IsolationError if the kind asked for
    cannot be had.
    """
    count = slots or len(own_cpus()) or os.cpu_count() or 1
    if kind != "auto":
        check(_KINDS[kind])
        return _opened(_KINDS[kind], count)
    problems = []
    for candidate in (fork_server.NAMESPACES, fork_server.LOCK):
        try:
            check(candidate)
        except IsolationError as error:
            problems.append(str(error))
        else:
            return _opened(candidate, count, problems)
    return _opened(fork_server.PLAIN, count, problems)


def _opened(kind: str, slots: int, problems: Sequence[str] = ()) -> LocalBackend:
    if kind == fork_server.PLAIN:
        warnings.warn(" ".join([_PLAIN_WARNING, *problems]), UnisolatedWarning, stacklevel=3)
    elif problems:
        warnings.warn(f"mlwright: isolation by {kind} only: {'; '.join(problems)}", UserWarning, stacklevel=3)
    return LocalBackend(kind, slots=slots)


@dataclass(frozen=True)
class Capability:
    """Whether one kind of isolation works on this machine."""

    kind: str
    receipt: Receipt | None
    problem: str = ""


def probe() -> list[Capability]:
    """Try every kind of isolation for real, best first."""
    return [_capability(kind) for kind in (fork_server.NAMESPACES, fork_server.LOCK)]


def _capability(kind: str) -> Capability:
    try:
        return Capability(kind, check(kind))
    except IsolationError as error:
        return Capability(kind, None, str(error))


def check(kind: str) -> Receipt | None:
    """The receipt of a sandbox of this kind, made on the spot; None for plain processes.

    Errors: IsolationError if it cannot be made, or if it does not hold what the kind promises.
    """
    if kind == fork_server.PLAIN:
        return None
    with _bare_server(kind) as (server, folders):
        channel = server.open_slot(cpu=None)
        with channel:
            receipt = server.receipt(channel, folders)
    if kind == fork_server.LOCK and not (receipt.seccomp and receipt.landlock_abi):
        raise IsolationError("lock: this machine has no " + ("Landlock" if receipt.seccomp else "libseccomp"))
    return receipt


@contextmanager
def _bare_server(kind: str) -> Iterator[tuple[ForkServer, tuple[Path, Path]]]:
    """A fork server without libraries or data, and two folders for its receipt."""
    state = StateFolder()
    try:
        public, private, first, second = (state.fresh(0) for _ in range(4))
        (private / "answers.csv").write_text("id\n")
        server = ForkServer(Site(kind, public, (private,)), preload=False)
        try:
            yield server, (first, second)
        finally:
            server.close()
    finally:
        state.close()
