"""The backend as its callers see it: slots, order, cancelling, retries, closing, and what a kill leaves behind."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from mlwright_api.rollout import Outcome
from mlwright_sandbox import cgroups
from mlwright_sandbox.backend import Finished, SandboxRequest, TaskMounts
from mlwright_sandbox.errors import IsolationError
from mlwright_sandbox.local import LocalBackend, UnisolatedWarning, check, open_backend, probe
from mlwright_sandbox.processes import all_processes, descendants

pytestmark = pytest.mark.sandbox
Run = Callable[..., Finished]
SLEEP = "import time\nprint('asleep', flush=True)\ntime.sleep(600)\n"


def request(task: TaskMounts, name: str, script: str, **options: object) -> SandboxRequest:
    return SandboxRequest(rollout=name, task=task, script=script, seed=1, **options)  # type: ignore[arg-type]  # options of the request


def collect(backend: LocalBackend, count: int) -> dict[str, Finished]:
    found: dict[str, Finished] = {}
    while len(found) < count:
        new = backend.collect(timeout=60)
        assert new, f"only {sorted(found)} came"
        found |= {finished.rollout: finished for finished in new}
    return found


def gone(pids: Iterable[int], *, seconds: float = 20) -> bool:
    """Whether all these processes end in time."""
    poller = select.poll()
    waiting = set()
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        poller.register(descriptor, select.POLLIN)
        waiting.add(descriptor)
    deadline = time.monotonic() + seconds
    while waiting and time.monotonic() < deadline:
        for descriptor, _ in poller.poll(1000):
            poller.unregister(descriptor)
            waiting.discard(descriptor)
    return not waiting


def started(*, before: Iterable[int] = ()) -> list[int]:
    """Living processes beneath this one, without those that were there before."""
    found = descendants(all_processes(), os.getpid())
    return [process.pid for process in found if not process.dead and process.pid not in before]


def test_slots_run_at_the_same_time_on_cores_of_their_own(two_slots: LocalBackend, task: TaskMounts) -> None:
    script = "import os, time\nprint(os.sched_getaffinity(0))\ntime.sleep(0.6)"
    for name in ("warm-a", "warm-b"):
        two_slots.submit(request(task, name, "pass"))
    collect(two_slots, 2)
    for name in ("a", "b"):
        two_slots.submit(request(task, name, script))
    found = collect(two_slots, 2)
    assert abs(found["a"].started_at - found["b"].started_at) < 0.6
    cores = {finished.status.output_tail for finished in found.values()}
    assert len(cores) == min(2, len(os.sched_getaffinity(0)))


def test_more_requests_than_slots_wait_their_turn(two_slots: LocalBackend, task: TaskMounts) -> None:
    for number in range(7):
        two_slots.submit(request(task, f"r{number}", f"print({number})"))
    found = collect(two_slots, 7)
    assert {name: finished.status.output_tail for name, finished in found.items()} == {
        f"r{number}": f"{number}\n" for number in range(7)
    }
    assert found["r6"].status.seconds.queued > found["r0"].status.seconds.queued


def test_a_rollout_in_flight_is_not_accepted_twice(two_slots: LocalBackend, task: TaskMounts) -> None:
    two_slots.submit(request(task, "twice", "pass"))
    with pytest.raises(ValueError, match="in flight"):
        two_slots.submit(request(task, "twice", "pass"))
    collect(two_slots, 1)
    two_slots.submit(request(task, "twice", "pass"))
    assert collect(two_slots, 1)["twice"].status.outcome is Outcome.NO_SUBMISSION


def test_collecting_nothing_returns_when_the_time_is_over(two_slots: LocalBackend) -> None:
    assert two_slots.collect(timeout=0.01) == []


def test_a_running_rollout_can_be_cancelled(two_slots: LocalBackend, task: TaskMounts) -> None:
    two_slots.submit(request(task, "running", SLEEP))
    assert two_slots.collect(timeout=1.0) == []
    two_slots.cancel("running")
    assert collect(two_slots, 1)["running"].status.outcome is Outcome.CANCELLED


def test_a_queued_rollout_can_be_cancelled_without_having_run(
    two_slots: LocalBackend, task: TaskMounts
) -> None:
    for name in ("first", "second", "third"):
        two_slots.submit(request(task, name, SLEEP))
    for name in ("third", "first", "second"):
        two_slots.cancel(name)
    found = collect(two_slots, 3)
    assert {finished.status.outcome for finished in found.values()} == {Outcome.CANCELLED}
    assert found["third"].status.seconds.execution == 0


def test_cancelling_what_is_unknown_does_nothing(two_slots: LocalBackend) -> None:
    two_slots.cancel("nobody")


def test_a_killed_fork_server_means_another_attempt_of_the_same_script(
    task: TaskMounts, solution: str
) -> None:
    slow = "import time; time.sleep(0.8)\n" + solution
    with open_backend("namespaces", slots=1) as backend:
        backend.submit(request(task, "warm", "pass"))
        collect(backend, 1)
        servers = [
            pid for pid in started() if b"fork_server" in Path("/proc", str(pid), "cmdline").read_bytes()
        ]
        backend.submit(request(task, "retried", slow))
        assert backend.collect(timeout=0.4) == []
        assert servers
        for pid in servers:
            with suppress(ProcessLookupError):  # one ends with the other
                os.kill(pid, signal.SIGKILL)
        status = collect(backend, 1)["retried"].status
    assert (status.attempt, status.outcome) == (2, Outcome.SCORED)


def test_after_the_retries_it_is_the_infrastructure_that_failed(make: Callable[..., TaskMounts]) -> None:
    task = make(name="vanishing")
    missing = TaskMounts("vanishing", task.spec, task.public / "gone", task.private)
    with open_backend("namespaces", slots=1) as backend:
        backend.submit(request(missing, "lost", "pass", retries=1))
        status = collect(backend, 1)["lost"].status
    assert (status.attempt, status.outcome) == (2, Outcome.INFRASTRUCTURE_FAILED)
    assert "gone" in status.reason


def test_a_task_whose_answers_are_broken_is_not_tried_again(
    make: Callable[..., TaskMounts], solution: str
) -> None:
    broken = make(name="broken")
    (broken.private / "answers.csv").write_text("id,target,split\n60,1,Nowhere\n")
    with open_backend("namespaces", slots=1) as backend:
        backend.submit(request(broken, "broken", solution))
        status = collect(backend, 1)["broken"].status
    assert (status.attempt, status.outcome) == (1, Outcome.INFRASTRUCTURE_FAILED)
    assert "answers" in status.reason


def test_many_scripts_leave_no_descriptor_and_no_process_behind(
    two_slots: LocalBackend, task: TaskMounts
) -> None:
    def run_many() -> tuple[int, int]:
        for number in range(30):
            two_slots.submit(request(task, f"many-{number}", "open('submission.csv', 'w').write('id')"))
        collect(two_slots, 30)
        return len(list(Path("/proc/self/fd").iterdir())), len(started())

    first = run_many()
    second = run_many()
    assert second[0] <= first[0]
    assert second[1] <= first[1] + 2  # a runner may still be on its way out


def test_closing_ends_what_runs_and_reports_it_as_cancelled(task: TaskMounts) -> None:
    before = started()
    backend = open_backend("namespaces", slots=1)
    backend.submit(request(task, "running", SLEEP))
    backend.submit(request(task, "queued", SLEEP))
    assert backend.collect(timeout=0.5) == []
    pids = started(before=before)
    assert pids
    backend.close()
    found = collect(backend, 2)
    assert {finished.status.outcome for finished in found.values()} == {Outcome.CANCELLED}
    assert gone(pids)
    backend.close()
    with pytest.raises(IsolationError, match="closed"):
        backend.submit(request(task, "late", "pass"))


def test_closing_leaves_no_control_group_and_no_folder(task: TaskMounts, run: Run) -> None:
    before = own_groups()
    with open_backend("lock", slots=1) as backend:
        run(backend, "open('left', 'w').write('x')")
        folder = backend.state_folder
        assert folder.exists()
    assert not folder.exists()
    assert own_groups() == before


def own_groups() -> set[Path]:
    parents = cgroups.find_hierarchies().parents.values()
    return {group for parent in parents for group in parent.glob(f"{cgroups.PREFIX}{os.getpid()}-*")}


PARENT = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from mlwright_api.mltask import MLTaskSpec
from mlwright_sandbox.backend import SandboxRequest, TaskMounts
from mlwright_sandbox.local import open_backend
spec = MLTaskSpec.model_validate_json({spec!r})
task = TaskMounts("small", spec, Path({public!r}), Path({private!r}))
backend = open_backend({kind!r}, slots=1)
backend.submit(SandboxRequest(rollout="r", task=task, script="pass", seed=1))
backend.collect()
backend.submit(SandboxRequest(rollout="s", task=task, script={script!r}, seed=1))
backend.collect(timeout=0.5)
print("ready", backend.state_folder, flush=True)
print(backend.collect()[0].status.output_tail, flush=True)
backend.close()
"""


def start_parent(task: TaskMounts, kind: str, script: str) -> tuple[subprocess.Popen[str], Path]:
    """A process with a backend in which a script is running, and the backend's state folder."""
    code = PARENT.format(
        paths=[path for path in sys.path if path],
        spec=task.spec.model_dump_json(by_alias=True),
        public=str(task.public),
        private=str(task.private),
        kind=kind,
        script=script,
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert parent.stdout is not None
    word, folder = parent.stdout.readline().split()
    assert word == "ready"
    return parent, Path(folder)


@pytest.mark.parametrize("kind", ["namespaces", "lock"])
def test_killing_the_parent_leaves_no_process(task: TaskMounts, kind: str) -> None:
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\ntime.sleep(600)"
    parent, _ = start_parent(task, kind, daemon)
    pids = [process.pid for process in descendants(all_processes(), parent.pid)]
    assert len(pids) > 4
    parent.kill()
    parent.communicate()
    assert gone(pids)


def test_the_folders_of_a_killed_parent_are_removed_at_the_next_start(task: TaskMounts) -> None:
    parent, folder = start_parent(task, "lock", SLEEP)
    pids = [process.pid for process in descendants(all_processes(), parent.pid)]
    parent.kill()
    parent.communicate()
    assert gone(pids)
    assert folder.exists()
    open_backend("lock", slots=1).close()
    assert not folder.exists()


def test_an_interrupt_at_the_terminal_does_not_reach_the_script(task: TaskMounts) -> None:
    parent, _ = start_parent(task, "namespaces", "import time\ntime.sleep(1.5)\nprint('undisturbed')")
    # To everybody in the parent's group but itself, as if it handled Ctrl-C without ending.
    for process in descendants(all_processes(), parent.pid):
        if os.getpgid(process.pid) == parent.pid:
            os.kill(process.pid, signal.SIGINT)
    output, _ = parent.communicate(timeout=60)
    assert "undisturbed" in output


def test_tasks_have_servers_of_their_own(
    two_slots: LocalBackend, make: Callable[..., TaskMounts], run: Run
) -> None:
    other = make(name="other")
    (other.public / "extra.txt").write_text("of the other")
    assert (
        run(two_slots, "print(open('data/extra.txt').read())", on=other).status.output_tail
        == "of the other\n"
    )
    assert "FileNotFoundError" in run(two_slots, "open('data/extra.txt')").status.reason


def test_plain_processes_come_with_a_loud_warning_and_an_honest_receipt(
    task: TaskMounts, solution: str
) -> None:
    with pytest.warns(UnisolatedWarning, match="NO ISOLATION"):
        backend = open_backend("plain", slots=1)
    with backend:
        backend.submit(request(task, "plain", solution))
        status = collect(backend, 1)["plain"].status
    assert status.outcome is Outcome.SCORED
    assert status.isolation is not None
    assert (status.isolation.backend, status.isolation.isolated) == ("Plain", False)


def test_auto_takes_the_best_that_works_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_backend("auto", slots=1).close()


def test_without_namespaces_auto_takes_the_lock_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlwright_sandbox.namespaces.find_bwrap", lambda: None)
    with pytest.warns(UserWarning, match="bwrap is missing"):
        backend = open_backend("auto", slots=1)
    with backend:
        assert backend.kind == "Lock"


def test_with_neither_auto_falls_back_to_plain_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kind: str) -> None:
        raise IsolationError(f"{kind}: not on this machine")

    monkeypatch.setattr("mlwright_sandbox.local.check", broken)
    with pytest.warns(UnisolatedWarning, match="Lock: not on this machine"):
        backend = open_backend("auto", slots=1)
    with backend:
        assert backend.kind == "Plain"


def test_probe_reports_every_kind_with_its_receipt() -> None:
    found = {capability.kind: capability for capability in probe()}
    assert set(found) == {"Namespaces", "Lock"}
    assert all(
        capability.receipt is not None and capability.receipt.isolated for capability in found.values()
    )


def test_namespaces_hold_the_network_and_the_answers_before_the_lock_does() -> None:
    receipt = check("Namespaces")
    assert receipt is not None
    unlocked = {each.name: each.unlocked for each in receipt.checks}
    assert unlocked["ApiServerUnreachable"]
    assert unlocked["AnswersAbsent"]
    assert unlocked["OutsideReadOnly"]


def test_temporary_folders_are_where_the_user_wants_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with open_backend("lock", slots=1) as backend:
        assert backend.state_folder.parent == tmp_path
