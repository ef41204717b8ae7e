"""A sandbox pod on this machine: the real agent and grader, each as PID 1 of a bwrap container with a pod's mounts.

What only a kubelet gives is missing: image, cgroups, network policy. Everything else is as the operator asks for it:
uid 65532 in a user namespace, a read-only root, the mounts under their own names, no network.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mlwright_api.classify import Classification, classify, local_pod_status
from mlwright_api.mltask import (
    MetricSpec,
    MLTaskSpec,
    SubmissionKind,
    SubmissionSpec,
    TaskLimits,
    TaskReference,
)
from mlwright_api.quantities import Quantity
from mlwright_api.results import (
    GraderResult,
    RunnerReport,
    RunnerResult,
    Unfinished,
    read_grader_result,
    read_runner_result,
)
from mlwright_sandbox import namespaces, world
from mlwright_sandbox.backend import TaskMounts

USER = "65532"
WORK = "/pod/work"
"""Not /work, beneath which a checkout may lie."""
SUBMIT = """
import pandas as pd
test = pd.read_csv("data/test.csv")
test.assign(target=test.x)[["id", "target"]].to_csv("submission.csv", index=False)
"""
"""A script that writes a valid submission of `small_task`."""
SIZED = 32 << 20
"""Bytes of /tmp, of /dev/shm and, where asked for, of the work folder."""
PATIENCE_SECONDS = 120.0
PASSWD = f"sandbox:x:{USER}:{USER}::/tmp:/bin/sh\n"


def small_task(root: Path) -> TaskMounts:
    """Probabilities for 60 rows from one column, with a second to run and little memory."""
    public, private = root / "public", root / "private"
    public.mkdir()
    private.mkdir()
    x = {number: (number * 37) % 101 / 101 for number in range(120)}
    target = {number: int(x[number] + ((number * 13) % 7) / 20 > 0.6) for number in x}
    split = {number: "Reward" if number % 2 else "Selection" for number in range(60, 120)}
    _table(public / "train.csv", "id,x,target", [f"{n},{x[n]},{target[n]}" for n in range(60)])
    _table(public / "test.csv", "id,x", [f"{n},{x[n]}" for n in split])
    _table(public / "sample_submission.csv", "id,target", [f"{n},0.5" for n in split])
    _table(private / "answers.csv", "id,target,split", [f"{n},{target[n]},{split[n]}" for n in split])
    spec = MLTaskSpec(
        title="Small",
        description="Predict target from x.",
        metric=MetricSpec(name="roc_auc"),
        submission=SubmissionSpec(target_columns=["target"], kind=SubmissionKind.PROBABILITIES),
        limits=TaskLimits(timeout_seconds=30, memory=Quantity("256Mi"), work_size=Quantity("32Mi")),
        reference=TaskReference(baseline=0.5),
    )
    return TaskMounts("small", spec, public, private)


def _table(path: Path, header: str, lines: list[str]) -> None:
    path.write_text("\n".join([header, *lines]) + "\n")


@dataclass
class Container:
    """A bwrap and the process that is PID 1 in it."""

    process: subprocess.Popen[bytes]
    first: int
    """Its PID 1, as this machine counts."""
    log: Path

    def wait(self) -> int:
        """The exit code; 128 + n for signal n."""
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.first, number)

    @property
    def said(self) -> str:
        return self.log.read_text()


@dataclass(frozen=True)
class Ended:
    """What there is to know about a pod when both containers have ended."""

    agent_exit: int
    message: bytes
    grader_exit: int
    graded: GraderResult | None
    verdict: Classification

    @property
    def read(self) -> RunnerReport:
        return read_runner_result(self.message.decode())

    @property
    def result(self) -> RunnerResult:
        assert isinstance(self.read, RunnerResult), (self.read, self.verdict)
        return self.read

    @property
    def unfinished(self) -> Unfinished:
        assert isinstance(self.read, Unfinished), self.read
        return self.read


@dataclass
class LocalPod:
    """The folders of one pod, and its containers."""

    root: Path
    task: TaskMounts
    sized_work: bool = False
    """The work folder as a memory-backed mount of its own, which no grader can see."""
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of job.json."""
    started: list[Container] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in ("work", "control", "request", "grader"):
            (self.root / name).mkdir()
        for name in ("agent-message", "grader-message"):
            (self.root / name).touch()
        (self.root / "passwd").write_text(PASSWD)
        spec = self.task.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
        (self.root / "grader/task.json").write_text(json.dumps(spec | {"description": "-"}))

    @property
    def message(self) -> bytes:
        """What the agent has written so far."""
        return (self.root / "agent-message").read_bytes()

    def ask(self, files: Mapping[str, str], entrypoint: str = "script.py") -> None:
        """Write the request as the downward API does."""
        limits = self.task.spec.limits
        job = {
            "entrypoint": entrypoint,
            "seed": 7,
            "timeoutSeconds": limits.timeout_seconds,
            "memoryBytes": limits.memory.bytes,
            "workBytes": limits.work_size.bytes,
            "submission": self.task.spec.submission.file_name,
            "instrument": True,
        }
        (self.root / "request/job.json").write_text(json.dumps(job | dict(self.changes)))
        texts = [{"path": path, "content": content} for path, content in files.items()]
        (self.root / "request/files.json").write_text(json.dumps(texts))

    def start_agent(self) -> Container:
        return self._start("agent", self._agent_mounts(), ["-m", "mlwright_sandbox.agent", "--work", WORK])

    def start_unlocked(self, script: str) -> Container:
        """A script in the agent's place: what the pod holds by itself."""
        (self.root / "work/script.py").write_text(script)
        command = f"import os, runpy; os.chdir({WORK!r}); runpy.run_path('script.py', run_name='__main__')"
        return self._start("agent", self._agent_mounts(), ["-c", command])

    def _agent_mounts(self) -> list[str]:
        work = ["--size", str(SIZED), "--tmpfs", WORK] if self.sized_work else self._bind("work", WORK)
        mounts = [*work, *self._bind("control", "/control"), *self._show("request", "/request")]
        return [*mounts, *self._bind("agent-message", "/dev/termination-log")]

    def start_grader(self, *, wait_seconds: float = PATIENCE_SECONDS) -> Container:
        mounts = [*self._show("work", WORK), *self._bind("control", "/control")]
        mounts += [*self._show("grader", "/request"), "--ro-bind", str(self.task.private), "/private"]
        mounts += self._bind("grader-message", "/dev/termination-log")
        arguments = ["-m", "mlwright_sandbox.grader", "--task", "/request/task.json", "--public", "/public"]
        arguments += ["--private", "/private", "--work", WORK, "--wait", "/control/lock"]
        arguments += ["--wait-seconds", str(wait_seconds), "--splits", "Reward,Selection"]
        return self._start("grader", mounts, [*arguments, "--result", "/dev/termination-log"])

    def run(self, script: str, files: Mapping[str, str] | None = None) -> Ended:
        """One script from request to outcome."""
        self.ask({"script.py": script, **(files or {})})
        return self.end(self.start_agent(), self.start_grader())

    def end(self, agent: Container, grader: Container) -> Ended:
        """Wait for both, and classify."""
        exits = [agent.wait(), grader.wait()]
        graded = read_grader_result((self.root / "grader-message").read_text())
        runner_exit, grader_exit = (code if code <= 128 else 128 - code for code in exits)
        pod = local_pod_status(runner_exit=runner_exit, grader_exit=grader_exit)
        said = read_runner_result(self.message.decode())
        verdict = classify(pod, said, graded, self.task.spec.limits)
        return Ended(exits[0], self.message, exits[1], graded, verdict)

    def close(self) -> None:
        for container in self.started:
            container.process.kill()
            container.process.wait()

    def _bind(self, name: str, place: str) -> list[str]:
        return ["--bind", str(self.root / name), place]

    def _show(self, name: str, place: str) -> list[str]:
        return ["--ro-bind", str(self.root / name), place]

    def _start(self, name: str, mounts: list[str], arguments: list[str]) -> Container:
        bwrap = namespaces.find_bwrap()
        assert bwrap is not None
        facts, theirs = os.pipe()
        log = self.root / f"{name}.log"
        command = [str(bwrap), *_container(), *_system(), *mounts]
        command += ["--ro-bind", str(self.task.public), "/public"]
        command += ["--ro-bind", str(self.root / "passwd"), "/etc/passwd", "--remount-ro", "/"]
        command += ["--info-fd", str(theirs), "--", sys.executable, "-I", *arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(command, pass_fds=[theirs], stdout=output, stderr=output)
        os.close(theirs)
        with os.fdopen(facts) as told:
            first = json.loads(told.read() or "{}").get("child-pid", 0)
        assert first, log.read_text()
        self.started.append(Container(process, first, log))
        return self.started[-1]


def _container() -> list[str]:
    command = ["--unshare-user", "--uid", USER, "--gid", USER, "--unshare-all", "--as-pid-1"]
    command += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    command += ["--setenv", "KUBERNETES_SERVICE_HOST", "10.96.0.1", "--setenv", "OPERATORS_SECRET", "hunter2"]
    command += ["--proc", "/proc", "--dev", "/dev"]
    for place in ("/tmp", "/dev/shm"):
        command += ["--size", str(SIZED), "--tmpfs", place]
    return command


def _system() -> list[str]:
    """The image: the system, the interpreter, and two of our packages."""
    command: list[str] = []
    seen = world.this_world()
    for tree in seen.trees:
        linked = tree.is_symlink() and tree.parent == Path("/")
        command += (
            ["--symlink", str(tree.readlink()), str(tree)] if linked else ["--ro-bind", str(tree), str(tree)]
        )
    for hidden in seen.hidden:
        command += ["--tmpfs", str(hidden)]
    for path in seen.shown:
        command += ["--ro-bind", str(path), str(path)]
    return command


def until(condition: Any, what: str) -> None:
    """Look until something is so; for what another process does in its own time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
