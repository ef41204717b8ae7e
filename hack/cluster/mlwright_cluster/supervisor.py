"""The process that runs a cluster: starts each component once its predecessor is ready, and ends them all.

    python -m mlwright_cluster.supervisor FOLDER [--with-stdin]

It ends when it is told so (SIGTERM, `end` on its named pipe), when a component ends unasked, and, with
--with-stdin, when its standard input is closed: that is how it ends with a test session, however that one dies.
If it is killed itself, the kernel kills its components. As process 1 of a namespace it also reaps what pods leave.
"""

from __future__ import annotations

import ctypes
import json
import os
import selectors
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from mlwright_cluster.plan import Component, Layout, Plan

TICK_SECONDS = 0.05
IDLE_SECONDS = 0.25
READY_SECONDS = 120.0
PROBE_SECONDS = 5.0
TAIL_BYTES = 2000
PR_SET_PDEATHSIG = 1

LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent() -> None:
    """Asks the kernel to kill this process when the one that started it is gone."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def is_ready(component: Component, *, context: ssl.SSLContext | None) -> bool:
    """Whether what the component promised answers now."""
    if component.ready.startswith(("http://", "https://")):
        return _answers(component.ready, context)
    return not component.ready or _accepts(component.ready)


def _answers(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(url, context=context, timeout=PROBE_SECONDS) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _accepts(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(path)
        except OSError:
            return False
        return True


def tail(path: Path) -> str:
    """The last two kilobytes of a log."""
    return path.read_bytes()[-TAIL_BYTES:].decode(errors="replace").strip() if path.exists() else ""


class Supervisor:
    """The components of one cluster and their processes."""

    def __init__(self, layout: Layout, plan: Plan) -> None:
        self.layout = layout
        self.plan = plan
        self.waiting = list(plan.components)
        self.current: Component | None = None
        self.deadline = 0.0
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self.stopping: set[str] = set()
        self.ending = False
        self.failure = ""
        self.context = ssl.create_default_context(cafile=plan.ca) if plan.ca else None

    @property
    def starting(self) -> bool:
        """Whether a component is still to be started or to become ready."""
        return self.current is not None or bool(self.waiting)

    def start(self, component: Component) -> None:
        """Starts one component in the cluster's folder, its output in its log."""
        log = self.layout.log(component.name)
        log.parent.mkdir(exist_ok=True)
        with log.open("ab") as output:
            self.running[component.name] = subprocess.Popen(
                component.argv,
                cwd=self.layout.folder,
                env=os.environ | dict(component.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent,
            )
        self.current = component
        self.deadline = time.monotonic() + READY_SECONDS
        self.report()

    def advance(self) -> None:
        """Starts the next component if the current one is ready."""
        if self.current is not None:
            if not is_ready(self.current, context=self.context):
                if time.monotonic() > self.deadline:
                    self.fail(self.current.name, f"was not ready after {READY_SECONDS:.0f} s")
                return
            self.current = None
            self.report()
        if self.waiting:
            self.start(self.waiting.pop(0))

    def reap(self) -> None:
        """Takes note of whatever ended: components, and orphans where this is process 1."""
        for pid, status in ended_children():
            for name, process in list(self.running.items()):
                if process.pid == pid:
                    process.returncode = os.waitstatus_to_exitcode(status)
                    del self.running[name]
                    self.ended(name, process.returncode)

    def ended(self, name: str, code: int) -> None:
        """A component ended: as asked, or the whole cluster ends with it."""
        if self.current is not None and self.current.name == name:
            self.current = None
        if name in self.stopping:
            self.stopping.discard(name)
            self.report()
        elif not self.ending:
            self.fail(name, f"ended with status {code}")

    def fail(self, name: str, what: str) -> None:
        """Ends everything, leaving the reason with the tail of the component's log."""
        self.failure = f"{name} {what}; the end of {self.layout.log(name)}:\n{tail(self.layout.log(name))}"
        self.ending = True

    def obey(self, line: str) -> None:
        """Carries out one line from the named pipe."""
        verb, _, name = line.strip().partition(" ")
        if verb == "end":
            self.ending = True
        elif verb == "stop" and name in self.running:
            self.stopping.add(name)
            self.running[name].kill()
        elif verb == "start" and name not in self.running:
            self.waiting += [each for each in self.plan.components if each.name == name]
        self.report()

    def on_signal(self, *_: object) -> None:
        """Asks for the end; the loop sees it at its next turn."""
        self.ending = True

    def report(self, *, over: bool = False) -> None:
        """Writes what is running; readers see the old or the new file, never half of one."""
        phase = "Failed" if self.failure else "Ended" if over else "Starting" if self.starting else "Ready"
        running = {name: process.pid for name, process in self.running.items()}
        state = {"phase": phase, "message": self.failure, "running": running}
        partial = self.layout.state.with_suffix(".partial")
        partial.write_text(json.dumps(state))
        partial.rename(self.layout.state)

    def end(self) -> None:
        """Kills every component, and waits for each: there is nothing that a test cluster has to finish."""
        for process in self.running.values():
            process.kill()
        while self.running:
            self.reap()
            time.sleep(TICK_SECONDS / 5)


def ended_children() -> Iterator[tuple[int, int]]:
    """Process id and wait status of every child that has ended by now."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            return
        yield pid, status


def prepare(supervisor: Supervisor) -> None:
    """Runs the commands that come before the first component; the first that fails ends the cluster."""
    log = supervisor.layout.log("prepare")
    log.parent.mkdir(exist_ok=True)
    for command in supervisor.plan.prepare:
        with log.open("ab") as output:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            supervisor.fail("prepare", f"({' '.join(command)}) ended with status {done.returncode}")
            return


def watch(supervisor: Supervisor, *, with_stdin: bool) -> None:
    """The loop: until something asks for the end."""
    control = os.open(supervisor.layout.control, os.O_RDWR | os.O_NONBLOCK)
    with selectors.DefaultSelector() as selector:
        selector.register(control, selectors.EVENT_READ)
        if with_stdin:
            selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while not supervisor.ending:
            supervisor.advance()
            supervisor.reap()
            for key, _ in selector.select(TICK_SECONDS if supervisor.starting else IDLE_SECONDS):
                text = os.read(key.fd, 4096).decode()
                for line in text.splitlines() or ["end"]:
                    supervisor.obey(line)
    os.close(control)


def main(arguments: list[str]) -> int:
    """Runs the plan in the folder until the end; status 1 if a component failed."""
    layout = Layout(Path(arguments[0]))
    supervisor = Supervisor(layout, Plan.from_json((layout / "plan.json").read_text()))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, supervisor.on_signal)
    prepare(supervisor)
    watch(supervisor, with_stdin="--with-stdin" in arguments)
    supervisor.end()
    supervisor.report(over=True)
    return 1 if supervisor.failure else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
