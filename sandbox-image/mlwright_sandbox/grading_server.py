"""LocalGrader: grades on this machine in milliseconds, through a warm process that forks for every grading."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
from typing import IO, Self

from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Verdict
from pydantic import ValidationError

from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError, GraderDied
from mlwright_sandbox.grading_wire import (
    CONTROL_MESSAGE,
    GradingReply,
    GradingRequest,
    in_memory,
    make_request,
)
from mlwright_sandbox.reasons import one_line

DEADLINE_SECONDS = 60.0
INTERVALS_DEADLINE_SECONDS = 600.0
_GRACE_SECONDS = 30.0
"""Longer than the process's own deadline: reading a task's answers comes before it starts."""
_ATTEMPTS = 2
_CLOSING_SECONDS = 5.0
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"), "1"
)
"""A fork of a process with running threads of a numerical library may hang."""
_LOG_TAIL_BYTES = 2048


class _ServerGone(Exception):
    """The process died, or did not answer, before it could say anything about this grading."""


class _Server:
    """One process and the control socket to it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control = ours
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # closed in stop()
        with theirs:
            command = [sys.executable, "-I", "-m", "mlwright_sandbox.grading_process", str(theirs.fileno())]
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(),),
                cwd="/",
                env={"PATH": os.defpath, "LANG": "C.UTF-8"} | _ONE_THREAD,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._log,
            )

    def ask(self, request: GradingRequest, payload_fd: int) -> GradingReply:
        """One grading, from any thread. Errors: _ServerGone."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with ours:
            request_fd = in_memory(request.model_dump_json(by_alias=True).encode())
            try:
                socket.send_fds(self._control, [CONTROL_MESSAGE], [theirs.fileno(), request_fd, payload_fd])
            except OSError as error:
                raise _ServerGone(f"the grading process cannot be reached: {error.strerror}") from error
            finally:
                theirs.close()
                os.close(request_fd)
            ours.settimeout(request.deadline_seconds + _GRACE_SECONDS)
            return _read_reply(ours)

    def stop(self) -> str:
        """End the process; returns the last line that it wrote to its log."""
        self._control.close()
        try:
            self._process.wait(_CLOSING_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with self._log:
            self._log.seek(max(0, self._log.seek(0, os.SEEK_END) - _LOG_TAIL_BYTES))
            lines = self._log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def _read_reply(reply: socket.socket) -> GradingReply:
    received = bytearray()
    try:
        while not received.endswith(b"\n"):
            part = reply.recv(65_536)
            if not part:
                raise _ServerGone("the grading process ended without an answer")
            received += part
        return GradingReply.model_validate_json(bytes(received))
    except (OSError, ValidationError) as error:
        raise _ServerGone(f"the grading process did not answer: {error}") from error


class LocalGrader:
    """Grades submissions on this machine; a hostile one can end nothing but its own forked child.

    The process starts with the first grading, is started again if it dies, and ends with `close` or with this
    process. Use it from as many threads as you like; gradings then run beside one another.
    """

    def __init__(self, *, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._deadline_seconds = deadline_seconds
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; idempotent."""
        with self._lock:
            server, self._server, self._closed = self._server, None, True
        if server is not None:
            server.stop()

    def grade(
        self, task: TaskMounts, submission: bytes, splits: tuple[Split, ...], *, intervals: bool = False
    ) -> GraderResult:
        """Score the bytes of one submission on the asked splits; `intervals` adds bootstrap intervals.

        Errors: AnswersError where the task is at fault, GraderDied where the machine is.
        """
        seconds = INTERVALS_DEADLINE_SECONDS if intervals else self._deadline_seconds
        payload_fd = in_memory(submission)
        try:
            request = make_request(
                task, splits, payload="Submission", intervals=intervals, deadline_seconds=seconds
            )
            return self._answer(request, payload_fd)
        finally:
            os.close(payload_fd)

    def grade_folder(self, task: TaskMounts, work_fd: int, splits: tuple[Split, ...]) -> GraderResult:
        """Score what a script left in the folder behind `work_fd`; errors as `grade`."""
        request = make_request(
            task, splits, payload="Folder", intervals=False, deadline_seconds=self._deadline_seconds
        )
        return self._answer(request, work_fd)

    def _answer(self, request: GradingRequest, payload_fd: int) -> GraderResult:
        died = ""
        for attempt in range(_ATTEMPTS):
            server = self._running()
            try:
                reply = server.ask(request, payload_fd)
            except _ServerGone as error:
                log = self._discard(server)
                if attempt == _ATTEMPTS - 1:
                    raise GraderDied(one_line(f"{error} {log}")) from error
                continue
            if reply.answers_error is not None:
                raise AnswersError(reply.answers_error)
            if reply.result is not None:
                return reply.result
            died = reply.died or "it said nothing"
        return GraderResult(verdict=Verdict.INVALID, reason=one_line(f"GraderDied: on every attempt {died}"))

    def _running(self) -> _Server:
        with self._lock:
            if self._closed:
                raise GraderDied("the grader is closed")
            if self._server is None:
                self._server = _start()
            return self._server

    def _discard(self, server: _Server) -> str:
        """Stop a server that does not answer, unless another thread has done so."""
        with self._lock:
            if self._server is not server:
                return ""
            self._server = None
        return server.stop()


def _start() -> _Server:
    try:
        return _Server()
    except OSError as error:
        raise GraderDied(f"the grading process cannot be started: {error.strerror}") from error
