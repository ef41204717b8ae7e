"""One slot: takes a request through as many attempts as it needs, each in a fresh sandbox on the slot's core."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from mlwright_api.conclusion import concluded
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Receipt, RunnerResult
from mlwright_api.rollout import Outcome

from mlwright_sandbox import fork_server, leftovers, wire
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_sandbox.cgroups import SlotGroup
from mlwright_sandbox.conclusion import Attempt, classified, gradable, runner_result
from mlwright_sandbox.errors import AnswersError, GraderDied, IsolationError, SubmissionError
from mlwright_sandbox.leftovers import StateFolder
from mlwright_sandbox.pool import Servers
from mlwright_sandbox.servers import Cancellation, ForkServer, Site, run_job
from mlwright_sandbox.submission import read_submission
from mlwright_sandbox.wire import Job

KEPT_SUBMISSION_BYTES = 512 * 1024 * 1024


class FolderGrader(Protocol):
    """Grades the work folder behind a descriptor; AnswersError: the task is wrong, GraderDied: the machine is."""

    def grade_folder(self, task: TaskMounts, work_fd: int, splits: tuple[Split, ...]) -> GraderResult: ...


@dataclass
class Ticket:
    """A request in flight."""

    request: SandboxRequest
    submitted: float = field(default_factory=time.monotonic)
    cancellation: Cancellation = field(default_factory=Cancellation)


@dataclass(frozen=True)
class _Tried:
    attempt: Attempt
    started_at: float
    submission: bytes | None = None
    hopeless: bool = False
    """Whether another attempt would end the same way."""


class Slot:
    """Runs one script at a time, on one core, in one set of control groups."""

    def __init__(
        self,
        number: int,
        *,
        kind: str,
        cpu: int | None,
        group: SlotGroup,
        servers: Servers,
        state: StateFolder,
    ) -> None:
        self._number = number
        self._kind = kind
        self._cpu = cpu
        self._group = group
        self._servers = servers
        self._state = state
        self._channels: dict[ForkServer, socket.socket] = {}

    def run(self, ticket: Ticket, grader: FolderGrader) -> Finished:
        """Take a request to its end; never raises for what a script or the machine does."""
        request = ticket.request
        queued = time.monotonic() - ticket.submitted
        limits = request.task.spec.limits
        for number in range(1, request.retries + 2):
            tried = self._try(ticket, grader)
            verdict = classified(tried.attempt, limits, grade_partial=request.grade_partial)
            again = verdict.rerun and not tried.hopeless and not ticket.cancellation.asked
            if not again or number > request.retries:
                break
        attempt = tried.attempt
        status = concluded(verdict, attempt.result, attempt.grader, attempt=number, queued_seconds=queued)
        kept = tried.submission if status.outcome is not Outcome.CANCELLED else None
        return Finished(request.rollout, status, tried.started_at, kept)

    def close(self) -> None:
        """Let go of the fork servers."""
        for channel in self._channels.values():
            channel.close()
        self._channels.clear()
        self._group.close()

    def _try(self, ticket: Ticket, grader: FolderGrader) -> _Tried:
        """One attempt; whatever breaks that is not the script's doing becomes its failure."""
        now = time.time()
        if ticket.cancellation.asked:
            return _Tried(Attempt(cancelled=True), now)
        try:
            with self._servers.use(site_of(self._kind, ticket.request.task)) as server:
                try:
                    return self._attempt(ticket, grader, server)
                except IsolationError:
                    self._forget(server)
                    raise
        except (IsolationError, AnswersError) as error:
            failed = Attempt(failure=str(error), cancelled=ticket.cancellation.asked)
            return _Tried(failed, now, hopeless=isinstance(error, AnswersError))

    def _attempt(self, ticket: Ticket, grader: FolderGrader, server: ForkServer) -> _Tried:
        channel = self._channel(server)
        receipt = self._receipt(server, channel)
        job = self._job(ticket.request)
        begun, kills = time.monotonic(), self._group.kills()
        with self._folder() as folder:
            report, work = run_job(channel, job, folder=folder, cancellation=ticket.cancellation)
            try:
                if report.cancelled:
                    return _Tried(Attempt(cancelled=True), report.started_at or time.time())
                result = runner_result(
                    report,
                    receipt,
                    starting_seconds=report.started_monotonic - begun,
                    out_of_memory=self._group.kills() > kills,
                )
                return _judge(ticket.request, grader, result, work, report.started_at)
            finally:
                os.close(work)

    def _job(self, request: SandboxRequest) -> Job:
        limits = request.task.spec.limits
        self._group.limit_memory(limits.memory.bytes)
        return Job(
            script=request.script,
            seed=request.seed,
            timeout_seconds=limits.timeout_seconds,
            memory_bytes=limits.memory.bytes,
            work_bytes=limits.work_size.bytes,
            submission=request.task.spec.submission.file_name,
            instrument=request.instrument,
            poll_memory=not self._group.holds_memory,
            poll_processes=not self._group.holds_processes,
        )

    def _receipt(self, server: ForkServer, channel: socket.socket) -> Receipt:
        if server.known_receipt is not None:
            return server.known_receipt
        with self._folder() as first, self._folder() as second:
            return server.receipt(channel, (first, second))

    def _channel(self, server: ForkServer) -> socket.socket:
        """This slot's own process in a fork server, started at the first use."""
        if server not in self._channels:
            entries = self._group.open_entries()
            try:
                self._channels[server] = server.open_slot(cpu=self._cpu, entries=entries)
            finally:
                wire.close_all(entries)
        return self._channels[server]

    def _forget(self, server: ForkServer) -> None:
        """The next attempt gets a fresh process; and a fresh server, if that is what died."""
        channel = self._channels.pop(server, None)
        if channel is not None:
            channel.close()
        if not server.alive:
            self._servers.discard(server)

    @contextmanager
    def _folder(self) -> Iterator[Path | None]:
        """A folder on disk for one attempt, where there is no namespace with a mount for it."""
        if self._kind == fork_server.NAMESPACES:
            yield None
            return
        folder = self._state.fresh(self._number)
        try:
            yield folder
        finally:
            leftovers.remove(folder)


def site_of(kind: str, task: TaskMounts) -> Site:
    """Which fork server a task needs."""
    secrets = [folder for folder in (task.private, task.sealed) if folder is not None]
    return Site(kind, task.public.resolve(), tuple(folder.resolve() for folder in secrets))


def _judge(
    request: SandboxRequest, grader: FolderGrader, result: RunnerResult, work: int, started_at: float
) -> _Tried:
    graded = None
    if gradable(result, grade_partial=request.grade_partial):
        with suppress(GraderDied):  # then there is no result, which `classify` knows how to name
            graded = grader.grade_folder(request.task, work, request.splits)
    kept = _read(request, work) if request.keep_submission else None
    return _Tried(Attempt(result=result, grader=graded), started_at, kept)


def _read(request: SandboxRequest, work: int) -> bytes | None:
    try:
        return read_submission(work, request.task.spec.submission.file_name, cap=KEPT_SUBMISSION_BYTES)
    except SubmissionError:
        return None
