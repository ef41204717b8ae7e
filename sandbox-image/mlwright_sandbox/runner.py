"""The runner: starts one script, watches it to its end or its limit, leaves nothing behind, and reports."""

from __future__ import annotations

import json
import os
import resource
import select
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from mlwright_api.results import MILESTONES, OUTPUT_TAIL_BYTES, Limit

from mlwright_sandbox import kernel, namespaces, processes, script, usage, wire
from mlwright_sandbox.errors import IsolationError
from mlwright_sandbox.lock import PROCESSES
from mlwright_sandbox.milestones import MilestoneLog
from mlwright_sandbox.script import Line, Place
from mlwright_sandbox.wire import Job, Report

OUTPUT_BYTES = 8 * 1024 * 1024
"""What a script may print before it counts as a flood."""
_LINE_BYTES = 1024 * 1024
"""What may come over the private line before the runner stops listening."""
_CHUNK = 1 << 16
_TICK_SECONDS = 0.05
_WALK_SECONDS = 0.25
"""Between two looks at a whole /proc or a folder without a size of its own."""
_START_SECONDS = 30.0
_NOBODY = -1
"""For poll(2): no descriptor."""


class Tail:
    """The last bytes of a stream, and how many there were."""

    def __init__(self, keep: int = OUTPUT_TAIL_BYTES) -> None:
        self._keep = keep
        self._last = b""
        self.total = 0

    def add(self, part: bytes) -> None:
        self.total += len(part)
        self._last = (self._last + part)[-self._keep :]

    def text(self) -> str:
        """As UTF-8 of at most `keep` bytes, whatever the bytes were."""
        # A replacement character is longer than the byte that it stands for, so cut once more.
        encoded = self._last.decode(errors="replace").encode()[-self._keep :]
        return encoded.decode(errors="ignore")


class Lines:
    """What the script's process said over its private line; everything else on it is ignored."""

    def __init__(self, nonce: bytes) -> None:
        self._nonce = nonce
        self._rest = b""
        self.total = 0
        self.started: tuple[float, float] | None = None
        self._log = MilestoneLog()
        self.broken = ""
        self.error = ""
        self.limit: Limit | None = None
        self.probed: dict[str, str | None] = {}

    def add(self, part: bytes) -> None:
        self.total += len(part)
        *whole, self._rest = (self._rest + part).split(b"\n")
        for line in whole:
            parsed = script.parse_line(line, self._nonce)
            if parsed is not None:
                # RecursionError: a script that finds the secret may nest its JSON.
                with suppress(ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    self._take(*parsed)

    def _take(self, kind: bytes, text: bytes) -> None:
        if kind == script.MARK:
            self._log.mark(int(text))
        elif kind == script.STARTED and self.started is None:
            wall, monotonic = json.loads(text)
            self.started = (float(wall), float(monotonic))
        elif kind == script.ENDED:
            last = json.loads(text)
            # What a script raises may be no text at all: JSON carries halves of characters, messages do not.
            self.error = str(last["error"])[:512].encode(errors="replace").decode()
            self.limit = Limit(last["limit"]) if last["limit"] is not None else None
        elif kind == script.PROBED:
            self.probed = dict(json.loads(text))
        elif kind == script.BROKEN and self.started is None:
            self.broken = text.decode(errors="replace") or "unknown"

    @property
    def milestones(self) -> list[int]:
        """Indices of those that count, in order."""
        return [MILESTONES.index(name) for name in self._log.reached]


@dataclass
class Watch:
    """One script under observation."""

    job: Job
    place: Place
    pid: int
    stop: int
    """A descriptor that becomes readable when the script has to end; -1: none."""
    output: int
    line: int
    lines: Lines
    inherited: int
    """Private memory that the script's process got from the one that forked it."""
    cpu_before: float
    """Seconds that earlier children of the runner have used."""
    tail: Tail = field(default_factory=Tail)
    born: float = field(default_factory=time.monotonic)
    status: int | None = None
    ended: float = 0.0
    timed_out: bool = False
    cancelled: bool = False
    limit: Limit | None = None
    failure: str = ""
    walked: float = 0.0

    @property
    def over(self) -> bool:
        """Whether the script has ended, or has to."""
        stopped = self.timed_out or self.cancelled or self.limit is not None or bool(self.failure)
        return self.status is not None or stopped


Progress = Callable[[Watch], None]
"""Is told again and again how far a script has come."""


def run(job: Job, place: Place, control: socket.socket) -> NoReturn:
    """Run one job in the calling process, which ends with it; the report and the work folder go to `control`."""
    descriptors: list[int] = []
    try:
        if place.own_namespaces:
            namespaces.furnish(job.work_bytes, shown_again=place.shown_again)
        descriptors.append(os.open(place.work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        report = finish(start(job, place, stop=control.fileno()))
    except BaseException as error:
        report, descriptors = Report(failure=f"runner: {error!r}"[:512]), []
    try:
        with suppress(OSError):  # nobody listens any more
            wire.send(control, report.to_message(), descriptors)
    finally:
        os._exit(0)


def start(job: Job, place: Place, *, stop: int = _NOBODY) -> Watch:
    """Write the job's files into the work folder and fork the process that becomes the script."""
    if job.probe is None:
        _write_files(job, place)
    output, output_end = os.pipe()
    line, line_end = os.pipe()
    nonce = Line.new_nonce()
    if not place.first_process:
        processes.become_subreaper()
    inherited, cpu_before = usage.memory_of("self").private, _cpu_of_children()
    pid = os.fork()
    if pid == 0:
        script.become(job, place, line=Line(line_end, nonce), output=output_end)
    os.close(output_end)
    os.close(line_end)
    if kernel.LINUX:
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    return Watch(job, place, pid, stop, output, line, Lines(nonce), inherited, cpu_before)


def finish(watch: Watch, *, progress: Progress | None = None) -> Report:
    """Watch a script to its end or its limit, end everything that it left, and report."""
    try:
        _watch(watch, progress or _silent)
    finally:
        _end_everything(watch.place, watch.pid)
    _drain(watch)
    return _report(watch)


def _silent(_watch: Watch) -> None:
    return


def _write_files(job: Job, place: Place) -> None:
    for name, text in {**job.files, job.entrypoint: job.script}.items():
        (place.work / name).write_bytes(text.encode("utf-8", errors="surrogatepass"))


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(watch: Watch, progress: Progress) -> None:
    """Until the script ends, or has to."""
    ending = os.pidfd_open(watch.pid) if kernel.LINUX else _NOBODY
    poller = select.poll()
    for readable in (watch.output, watch.line, watch.stop, ending):
        if readable != _NOBODY:
            poller.register(readable, select.POLLIN)
    while not watch.over:
        for ready, _ in poller.poll(_TICK_SECONDS * 1000):
            if ready == ending:
                continue
            if not _take(watch, ready):
                poller.unregister(ready)
        _tick(watch)
        progress(watch)
    watch.ended = watch.ended or time.monotonic()
    if ending != _NOBODY:
        os.close(ending)


def _take(watch: Watch, ready: int) -> bool:
    """Read what is there; whether there can be more."""
    if ready == watch.stop:
        watch.cancelled = True  # asked to, or nobody is left to want the result
        return False
    part = os.read(ready, _CHUNK)
    if ready == watch.output:
        watch.tail.add(part)
        if watch.tail.total > OUTPUT_BYTES:
            watch.limit = Limit.OUTPUT
    elif watch.lines.total <= _LINE_BYTES:
        watch.lines.add(part)
    return bool(part)


def _tick(watch: Watch) -> None:
    _collect_dead(watch)
    if watch.status is not None:
        return
    now = time.monotonic()
    if watch.lines.started is None:
        if now - watch.born > _START_SECONDS:
            watch.failure = f"the script did not start within {_START_SECONDS:g} s"
        return
    if now - watch.lines.started[1] >= watch.job.timeout_seconds:
        watch.timed_out = True
    elif watch.limit is None:
        watch.limit = _over_limit(watch, now)


def _collect_dead(watch: Watch) -> None:
    """Reap, orphans too; note how the script ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        if pid == watch.pid:
            watch.status, watch.ended = status, time.monotonic()


def _over_limit(watch: Watch, now: float) -> Limit | None:
    """The limit that the rollout as a whole is over, where nothing else holds it."""
    if watch.place.walked:
        if now - watch.walked < _WALK_SECONDS:
            return None
        watch.walked = now
        return _over_folders(watch) or _over_tree(watch)
    if usage.mount_entries(watch.place.mounts) > len(watch.place.mounts) * namespaces.FILES:
        return Limit.FILES
    if watch.job.poll_memory or watch.job.poll_processes:
        return _over_tree(watch)
    return None


def _over_tree(watch: Watch) -> Limit | None:
    if not kernel.LINUX:
        return None
    if watch.place.first_process:
        tree = [process for process in processes.all_processes() if process.pid != 1]
    else:
        tree = processes.own_tree()
    if watch.job.poll_processes and len(tree) > PROCESSES:
        return Limit.PROCESSES
    if not watch.job.poll_memory:
        return None
    used = usage.tree_memory((process.pid for process in tree), inherited=watch.inherited)
    files = usage.mount_bytes(watch.place.mounts)
    return Limit.MEMORY if used.private + max(used.shared, files) > watch.job.memory_bytes else None


def _over_folders(watch: Watch) -> Limit | None:
    sizes, entries = zip(*map(usage.folder_usage, watch.place.walked), strict=True)
    if sum(entries) >= usage.WALKED_ENTRIES:
        return Limit.FILES
    return Limit.DISK if sum(sizes) > watch.job.work_bytes else None


def _end_everything(place: Place, pid: int) -> None:
    if place.first_process:
        processes.kill_namespace()
    elif kernel.LINUX:
        processes.kill_descendants()
    else:
        processes.kill_group(pid)


def _drain(watch: Watch) -> None:
    """Read what was still in the pipes; all writers are dead."""
    for readable, sink in ((watch.output, watch.tail), (watch.line, watch.lines)):
        os.set_blocking(readable, False)
        with suppress(BlockingIOError):
            while (part := os.read(readable, _CHUNK)) and sink.total <= OUTPUT_BYTES:
                sink.add(part)
        os.close(readable)


def _report(watch: Watch) -> Report:
    started = watch.lines.started
    failure = watch.failure
    if started is None and not watch.cancelled:
        failure = failure or watch.lines.broken or "the script's process died before the script started"
    report = Report(
        failure=failure,
        cancelled=watch.cancelled,
        timed_out=watch.timed_out,
        milestones=watch.lines.milestones,
        output_tail=watch.tail.text(),
        started_at=started[0] if started else 0.0,
        started_monotonic=started[1] if started else 0.0,
        execution_seconds=_execution_seconds(watch),
        cpu_seconds=_cpu_of_children() - watch.cpu_before,
        probed=watch.lines.probed,
    )
    return _with_end(report, watch)


def _execution_seconds(watch: Watch) -> float:
    if watch.timed_out:
        return watch.job.timeout_seconds
    return max(watch.ended - watch.lines.started[1], 0.0) if watch.lines.started else 0.0


def _with_end(report: Report, watch: Watch) -> Report:
    """Add how it ended, and the limit that explains a bad end."""
    if watch.timed_out or watch.status is None:
        return replace(report, limit=watch.limit.value if watch.limit else None)
    code = os.waitstatus_to_exitcode(watch.status)
    limit = None if code == 0 else watch.limit or watch.lines.limit or _full_folder(watch.place.work)
    if limit is Limit.DISK and usage.out_of_files(watch.place.work):
        limit = Limit.FILES
    return replace(
        report,
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        limit=limit.value if limit else None,
        error=watch.lines.error if code != 0 else "",
    )


def _full_folder(work: Path) -> Limit | None:
    if usage.out_of_files(work):
        return Limit.FILES
    return Limit.DISK if usage.full(work) else None


def refuse(control: socket.socket, error: BaseException) -> None:
    """Report that a sandbox could not be made."""
    text = str(error) if isinstance(error, IsolationError) else repr(error)
    with suppress(OSError):
        wire.send(control, Report(failure=text[:512]).to_message())
