"""The probe tries more than fifty ways out of a sandbox: none works in a pod, in namespaces, or with the lock alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_pod import SUBMIT, WORK, LocalPod, small_task
from mlwright_api.results import OUTPUT_TAIL_BYTES, RUNNER_MESSAGE_BYTES
from mlwright_api.rollout import Outcome
from mlwright_sandbox.backend import SandboxRequest, TaskMounts
from mlwright_sandbox.local import open_backend

PROBE = Path(__file__).parents[2] / "sandbox-image/probe/probe.py"
NAMES = re.findall(r'yield \(?\s*"(\w+)"', PROBE.read_text())
FLOODS = ["shmFill", "tmpFill", "workFill", "forks"]
pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> TaskMounts:
    return small_task(tmp_path_factory.mktemp("task"))


@pytest.fixture
def pod(task: TaskMounts, tmp_path: Path) -> Iterator[LocalPod]:
    made = LocalPod(tmp_path, task)
    yield made
    made.close()


def told(output: str) -> dict[str, Any]:
    """What the probe's whole lines say, put together."""
    lines: dict[str, Any] = {}
    for line in output.splitlines():
        if line.startswith("{"):
            lines |= json.loads(line)
    return lines


def check_denied(lines: dict[str, Any], outcome: Outcome, reason: str) -> None:
    """Everything was tried and refused; of the floods, one may have ended the script."""
    assert lines["got"] == [], [lines[name] for name in lines["got"]]
    assert lines["tried"] > 50
    reached = [name for name in FLOODS if name in lines]
    assert not [name for name in reached if isinstance(lines[name], dict)], lines
    if reached == FLOODS:
        assert outcome is Outcome.INVALID_SUBMISSION
        assert "symbolic link" in reason
    else:
        assert outcome in (Outcome.OVER_LIMIT, Outcome.OUT_OF_MEMORY), (outcome, reason, reached)


def test_the_probe_tries_at_least_what_a_sandbox_has_to_hold() -> None:
    wanted = "resolve answers hostFiles ptrace mount controlWrite message request setuid keyring ioUring userNamespace"
    assert {*wanted.split(), "signals", "forks", "memory", "workFill", "rootWrite", "lock"} <= set(NAMES)
    assert len(set(NAMES)) == len(NAMES) >= 50  # and five addresses


def test_nothing_works_in_a_pod_and_the_receipt_says_so(pod: LocalPod) -> None:
    ended = pod.run(PROBE.read_text())
    assert (ended.agent_exit, ended.grader_exit) == (0, 0)
    check_denied(told(ended.result.output_tail), ended.verdict.outcome, ended.verdict.reason)
    assert ended.result.isolation.isolated
    assert len(ended.message) <= RUNNER_MESSAGE_BYTES
    # All that it says fits into a status.
    assert len(ended.result.output_tail.encode()) < OUTPUT_TAIL_BYTES
    assert ended.result.output_tail.startswith('{"apiServer":')


@pytest.mark.parametrize("kind", ["namespaces", "lock"])
def test_nothing_works_on_one_machine(kind: Any, task: TaskMounts) -> None:
    paths = {"paths": {"answers": str(task.private / "answers.csv")}}
    script = PROBE.read_text().replace('Path("probe.json").read_text()', repr(json.dumps(paths)))
    with open_backend(kind, slots=1) as backend:
        backend.submit(SandboxRequest(rollout="probe", task=task, script=script, seed=1))
        (finished,) = backend.collect(timeout=120)
    status = finished.status
    assert status.outcome is not None
    check_denied(told(status.output_tail), status.outcome, status.reason)
    assert status.isolation is not None
    assert status.isolation.isolated


def test_the_probe_would_find_a_hole(pod: LocalPod) -> None:
    """In the same pod without the lock: what only the lock holds is found, with evidence."""
    pod.ask({"script.py": ""})
    (pod.root / "control/lock").write_text("h")
    container = pod.start_unlocked(PROBE.read_text())
    container.wait()
    found = told(container.said)
    expected = {"request", "control", "controlWrite", "lock", "message", "roundabout", "udp", "signals"}
    assert expected <= set(found["got"]), found
    assert not {"answers", "apiServer", "rootWrite", "hostFiles"} & set(found["got"])


def test_a_probes_rollout_does_not_disturb_the_next_one(task: TaskMounts, tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    first, second = LocalPod(tmp_path / "first", task), LocalPod(tmp_path / "second", task)
    first.run(PROBE.read_text())
    assert second.run(SUBMIT).verdict.outcome is Outcome.SCORED
    assert (tmp_path / "second/work/data").readlink() == Path("/public"), WORK
