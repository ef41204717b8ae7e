"""LocalGrader's process: keeps libraries and answers warm, and forks a limited child for every grading."""

from __future__ import annotations

import gc
import math
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections import OrderedDict
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult

from mlwright_sandbox import kernel
from mlwright_sandbox.answers import TaskAnswers, load_answers
from mlwright_sandbox.backend import ANSWERS_FILE, SAMPLE_FILE
from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.grading import grade_bytes, grade_folder
from mlwright_sandbox.grading_wire import PASSED_FDS, GradingReply, GradingRequest, read_memory
from mlwright_sandbox.reasons import one_line

CHILD_MEMORY_BYTES = 4 << 30
"""Address space that one grading may add to what the warm process has."""
_CACHED_TASKS = 32


@dataclass
class _Child:
    pid: int
    reply: socket.socket
    deadline: float
    late: bool = False


class AnswersCache:
    """Answers by task, read again when a file of the task changes."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, TaskAnswers] = OrderedDict()

    def get(self, request: GradingRequest) -> TaskAnswers:
        """The answers of the asked splits. Errors: AnswersError."""
        sealed = Split.FINAL in request.splits
        key = _state_of(request, sealed=sealed)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        answers = load_answers(request.task, sealed=sealed)
        if request.grader is not None:
            import mlwright_sandbox.own_grader  # noqa: F401  # pandas, once for all later children
        self._known[key] = answers
        if len(self._known) > _CACHED_TASKS:
            self._known.popitem(last=False)
        gc.collect()
        gc.freeze()  # so that a child's collections do not copy pages of what it only reads
        return answers


def _state_of(request: GradingRequest, *, sealed: bool) -> Hashable:
    files = [request.public / SAMPLE_FILE, request.private / ANSWERS_FILE]
    if sealed and request.sealed is not None:
        files.append(request.sealed / ANSWERS_FILE)
    return (request.spec.model_dump_json(), request.grader, sealed, *map(_state, files))


def _state(path: Path) -> Hashable:
    try:
        found = path.stat()
    except OSError:
        return (path, None)
    return (path, found.st_mtime_ns, found.st_size, found.st_ino)


class GradingProcess:
    """Serves requests from `control` until its other end is closed."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._answers = AnswersCache()
        self._children: dict[int, _Child] = {}
        """By pidfd."""

    def serve(self) -> None:
        """Returns when the parent is gone; what is still being graded is killed."""
        while True:
            for descriptor in self._wait():
                if descriptor in self._children:
                    self._reap(descriptor)
                elif not self._receive():
                    self._kill_all()
                    return
            self._kill_late()

    def _wait(self) -> list[int]:
        poll = select.poll()
        for descriptor in (self._control.fileno(), *self._children):
            poll.register(descriptor, select.POLLIN)
        nearest = min((child.deadline for child in self._children.values() if not child.late), default=None)
        timeout = None if nearest is None else max(0.0, nearest - monotonic()) * 1000
        return [descriptor for descriptor, _ in poll.poll(timeout)]

    def _receive(self) -> bool:
        """Take one request; False at the end of the control socket."""
        message, descriptors, _, _ = socket.recv_fds(self._control, 64, PASSED_FDS)
        if not message:
            return False
        reply_fd, request_fd, payload_fd = descriptors
        reply = socket.socket(fileno=reply_fd)
        try:
            self._start(reply, GradingRequest.model_validate_json(read_memory(request_fd)), payload_fd)
        except AnswersError as error:
            _send(reply, GradingReply(answers_error=one_line(str(error))))
        except OSError as error:
            _send(reply, GradingReply(died=f"it could not be started: {error.strerror}"))
        finally:
            os.close(request_fd)
            os.close(payload_fd)
        return True

    def _start(self, reply: socket.socket, request: GradingRequest, payload_fd: int) -> None:
        answers = self._answers.get(request)
        pid = os.fork()
        if pid == 0:
            self._be_child(reply, request, payload_fd, answers)
        self._children[os.pidfd_open(pid)] = _Child(pid, reply, monotonic() + request.deadline_seconds)

    def _be_child(
        self, reply: socket.socket, request: GradingRequest, payload_fd: int, answers: TaskAnswers
    ) -> None:
        """Never returns; any exception is an exit code that the process reports as a death."""
        code = 70
        try:
            self._let_go()
            _limit(request.deadline_seconds)
            grade = _grade_folder if request.payload == "Folder" else _grade_memory
            _send(reply, GradingReply(result=grade(answers, request, payload_fd)))
            code = 0
        except AnswersError as error:
            _send(reply, GradingReply(answers_error=one_line(str(error))))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def _let_go(self) -> None:
        """Close what belongs to the process and to gradings beside this one."""
        self._control.close()
        for descriptor, other in self._children.items():
            os.close(descriptor)
            other.reply.close()

    def _reap(self, descriptor: int) -> None:
        child = self._children.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(child.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code != 0:
            _send(child.reply, GradingReply(died=_death(code, late=child.late)))
        child.reply.close()

    def _kill_late(self) -> None:
        now = monotonic()
        for descriptor, child in self._children.items():
            if not child.late and child.deadline <= now:
                child.late = True
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)

    def _kill_all(self) -> None:
        for descriptor in self._children:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)


def _death(code: int, *, late: bool) -> str:
    if late:
        return "it did not end in time"
    return f"it ended with signal {-code}" if code < 0 else f"it ended with exit code {code}"


def _grade_folder(answers: TaskAnswers, request: GradingRequest, payload_fd: int) -> GraderResult:
    return grade_folder(answers, payload_fd, request.splits, intervals=request.intervals)


def _grade_memory(answers: TaskAnswers, request: GradingRequest, payload_fd: int) -> GraderResult:
    content = read_memory(payload_fd)
    return grade_bytes(answers, content, request.splits, intervals=request.intervals)


def _limit(deadline_seconds: float) -> None:
    """Limits of a child: it dies with the process, makes no core file, and has bounded time and memory."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = math.ceil(deadline_seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + CHILD_MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _send(reply: socket.socket, message: GradingReply) -> None:
    """A client that no longer waits is not our concern."""
    with suppress(BrokenPipeError, ConnectionResetError):
        reply.sendall(message.model_dump_json(by_alias=True, exclude_defaults=True).encode() + b"\n")


def main() -> None:
    """`python -I -m mlwright_sandbox.grading_process FD`: FD is the control socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's; we end when it does
    GradingProcess(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
