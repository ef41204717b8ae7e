"""The script's own process: from a fork of the server to the first line of the script, and to its end."""

from __future__ import annotations

import atexit
import builtins
import errno
import gc
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import traceback
import types
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import NoReturn

import numpy
from mlwright_api.results import Limit

from mlwright_sandbox import kernel, namespaces
from mlwright_sandbox.errors import SourceError
from mlwright_sandbox.lock import Lock, engage, engaged
from mlwright_sandbox.mark import Mark
from mlwright_sandbox.milestones import MARK_NAME, instrument
from mlwright_sandbox.receipt import attempts
from mlwright_sandbox.wire import Job

_NONCE_BYTES = 16
_REPORTED_CHARACTERS = 512
_NAME_OF_ENVIRONMENT = "MLWRIGHT_TIMEOUT_SECONDS"
STARTED, MARK, ENDED, PROBED, BROKEN = b"s", b"m", b"e", b"p", b"b"
"""Kinds of messages from the script's process to the runner."""


@dataclass(frozen=True)
class Place:
    """Where a script runs, and what surrounds and holds it."""

    work: Path
    environment: dict[str, str]
    lock: Lock | None
    """None: plain processes."""
    own_namespaces: bool = False
    """Whether the runner has to furnish namespaces that were made for this script alone."""
    first_process: bool = False
    """Whether the runner is PID 1 of a namespace in which everybody else is the script's."""
    shown_again: tuple[Path, ...] = ()
    """What of the interpreter the script's own mounts would cover."""
    mounts: tuple[Path, ...] = ()
    """Sized, memory-backed mounts that the script alone writes to."""
    walked: tuple[Path, ...] = ()
    """Folders without a size of their own, which the runner has to count."""


class Line:
    """The private way from the script's process to the runner: lines that begin with a secret of this rollout."""

    def __init__(self, descriptor: int, nonce: bytes) -> None:
        self.descriptor = descriptor
        self._nonce = nonce
        # Bound now: a script that replaces os.write must not be handed the secret.
        self._write = os.write

    @staticmethod
    def new_nonce() -> bytes:
        return os.urandom(_NONCE_BYTES // 2).hex().encode()

    def say(self, kind: bytes, text: bytes = b"") -> None:
        """Never raises: the script may have closed the descriptor."""
        with suppress(OSError):
            self._write(self.descriptor, self._nonce + kind + text + b"\n")


def parse_line(line: bytes, nonce: bytes) -> tuple[bytes, bytes] | None:
    """(kind, text) of one line; None for what anybody else wrote."""
    if not line.startswith(nonce) or len(line) <= len(nonce):
        return None
    return line[len(nonce) : len(nonce) + 1], line[len(nonce) + 1 :]


def become(job: Job, place: Place, *, line: Line, output: int) -> NoReturn:
    """Turn this freshly forked process into the script's; never returns."""
    try:
        _own_process(output, line.descriptor)
        _own_world(job, place)
        _lock(job, place)
    except BaseException as error:
        line.say(BROKEN, repr(error).encode()[:_REPORTED_CHARACTERS])
        os._exit(1)
    line.say(STARTED, json.dumps([time.time(), time.monotonic()]).encode())
    if job.probe is not None:
        line.say(PROBED, json.dumps(attempts(job.probe)).encode())
        os._exit(0)
    os._exit(_run(job, place, line))


def _lock(job: Job, place: Place) -> None:
    if place.own_namespaces:
        namespaces.seal()
    if place.lock is None or (job.probe is not None and not job.probe.locked):
        return
    engage(place.lock, memory_bytes=job.memory_bytes, file_bytes=job.work_bytes)
    if not engaged(place.lock):
        raise OSError("the lock did not hold")


def _own_process(output: int, keep: int) -> None:
    """A session of its own, no descriptor but output and line, no signal handler of ours."""
    os.setsid()
    if kernel.LINUX:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
        with suppress(OSError):  # the kernel, short of memory, shall end the script and not its runner
            Path("/proc/self/oom_score_adj").write_text("1000")
    silence = os.open(os.devnull, os.O_RDONLY)
    os.dup2(silence, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    low, high = sorted((keep, 2))
    os.closerange(low + 1, keep)
    os.closerange(high + 1, os.sysconf("SC_OPEN_MAX"))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _own_world(job: Job, place: Place) -> None:
    """Working directory, environment, arguments and seeds."""
    os.chdir(place.work)
    os.umask(0o077)
    os.environ.clear()
    os.environ.update(place.environment)
    os.environ[_NAME_OF_ENVIRONMENT] = f"{job.timeout_seconds:g}"
    tempfile.tempdir = None  # the server's answer is not this process's
    sys.argv = [job.entrypoint]
    sys.path.insert(0, str(place.work))
    _open_streams()
    random.seed(job.seed)
    numpy.random.seed(job.seed % 2**32)
    gc.enable()


def _open_streams() -> None:
    """Text streams on the new descriptors, where the server's own would still be buffered for its."""
    reading = TextIOWrapper(BufferedReader(FileIO(0, closefd=False)), encoding="utf-8")
    writing = [
        TextIOWrapper(
            BufferedWriter(FileIO(number, "w", closefd=False)), "utf-8", "backslashreplace", None, True
        )
        for number in (1, 2)
    ]
    for name, stream in zip(("stdin", "stdout", "stderr"), (reading, *writing), strict=True):
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _run(job: Job, place: Place, line: Line) -> int:
    """Run the script as __main__ and everything that Python does at an interpreter's end; the exit code."""
    try:
        code = _end_of(lambda: _execute(job, place, line), line)
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads, as an interpreter's end does
        atexit._run_exitfuncs()
    except BaseException as error:
        code = _failed(error, line)
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()
    return code


def _execute(job: Job, place: Place, line: Line) -> None:
    path = str(place.work / job.entrypoint)
    code = _compiled(job, path)
    mark = Mark(lambda index, say=line.say: say(MARK, b"%d" % index))  # type: ignore[misc]  # bound now, as above
    main = types.ModuleType("__main__")
    main.__dict__.update({"__file__": path, "__builtins__": builtins, MARK_NAME: mark})
    builtins.__dict__[MARK_NAME] = mark
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _compiled(job: Job, path: str) -> types.CodeType:
    if not job.instrument:
        return compile(job.script, path, "exec", dont_inherit=True)
    try:
        return instrument(job.script, path, submission=job.submission)
    except SourceError as error:
        raise (error.__cause__ or error) from None  # as if Python had been given the file


def _end_of(script: Callable[[], None], line: Line) -> int:
    """The exit code that the interpreter would have given."""
    try:
        script()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        line.say(ENDED, _last_words(str(end.code), None))
        return 1
    except BaseException as error:
        return _failed(error, line)
    return 0


def _failed(error: BaseException, line: Line) -> int:
    limit = _limit_of(error)
    with suppress(BaseException):
        line.say(ENDED, _last_words(_in_one_line(error), limit))
    with suppress(BaseException):
        shown = error.with_traceback(_of_the_script(error.__traceback__))
        sys.excepthook(type(shown), shown, shown.__traceback__)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _in_one_line(error: BaseException) -> str:
    """The last line that Python prints of it; of a syntax error also where it is."""
    text = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return f"{text} (line {error.lineno})"
    return text


def _of_the_script(trace: types.TracebackType | None) -> types.TracebackType | None:
    """A traceback without our own frames before the script's."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _last_words(text: str, limit: Limit | None) -> bytes:
    short = text.strip()[:_REPORTED_CHARACTERS]
    return json.dumps({"error": short, "limit": limit.value if limit is not None else None}).encode()


_BY_ERRNO = {
    errno.ENOSPC: Limit.DISK,
    errno.EDQUOT: Limit.DISK,
    errno.EFBIG: Limit.DISK,
    errno.EMFILE: Limit.FILES,
    errno.ENFILE: Limit.FILES,
    errno.EAGAIN: Limit.PROCESSES,
}


def _limit_of(error: BaseException | None) -> Limit | None:
    """The limit that an uncaught exception, or one that it was raised from, stands for."""
    if error is None:
        return None
    if isinstance(error, MemoryError):
        return Limit.MEMORY
    if isinstance(error, OSError) and error.errno in _BY_ERRNO:
        return _BY_ERRNO[error.errno]
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return Limit.PROCESSES
    return _limit_of(error.__cause__)
