"""The hand-over: the grader reads after the agent's end, however it ends, and never before."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlwright_sandbox import handover
from mlwright_sandbox.errors import HandoverError
from mlwright_sandbox.handover import AgentLock, wait_for_agent

AGENT = """
import sys
from pathlib import Path
from mlwright_sandbox.handover import AgentLock
lock = AgentLock(Path(sys.argv[1]))
print("held", flush=True)
if sys.stdin.readline() == "clean\\n":
    lock.clean()
"""
WAITED_SECONDS = 0.05


class Clock:
    """Counts what is slept, and does something meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slept: list[float] = []
        self.meanwhile: dict[int, object] = {}
        monkeypatch.setattr(handover.time, "sleep", self.sleep)
        monkeypatch.setattr(handover.time, "monotonic", lambda: sum(self.slept))

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        act = self.meanwhile.get(len(self.slept))
        if callable(act):
            act()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock: locks do not stand between the threads of one."""
    command = [sys.executable, "-I", "-c", AGENT, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def end(agent: subprocess.Popen[str], word: str) -> None:
    assert agent.stdin is not None
    agent.stdin.write(word)
    agent.stdin.close()
    agent.wait()


def test_an_agent_that_never_starts_is_named(tmp_path: Path, clock: Clock) -> None:
    with pytest.raises(HandoverError, match="the agent has not started"):
        wait_for_agent(tmp_path / "lock", seconds=1)
    assert sum(clock.slept) == pytest.approx(1, abs=0.1)


def test_a_file_that_is_not_locked_yet_is_not_taken(tmp_path: Path, clock: Clock) -> None:
    """Between making the file and locking it, anybody could have the lock."""
    (tmp_path / "lock").touch()
    with pytest.raises(HandoverError, match="the agent has not started"):
        wait_for_agent(tmp_path / "lock", seconds=1)


def test_an_agent_that_does_not_end_is_named(
    tmp_path: Path, clock: Clock, agent: subprocess.Popen[str]
) -> None:
    with pytest.raises(HandoverError, match=r"the agent has not ended within 1.5 s"):
        wait_for_agent(tmp_path / "lock", seconds=1.5)


def test_after_a_clean_end_there_is_nothing_to_wait_for(
    tmp_path: Path, clock: Clock, agent: subprocess.Popen[str]
) -> None:
    end(agent, "clean\n")
    wait_for_agent(tmp_path / "lock", seconds=1)
    assert clock.slept == []


@pytest.mark.parametrize("how", ["killed", "ended"])
def test_after_an_unclean_end_the_rest_is_given_time_to_die(
    tmp_path: Path, clock: Clock, agent: subprocess.Popen[str], how: str
) -> None:
    if how == "killed":
        agent.kill()
        agent.wait()
    else:
        end(agent, "\n")
    wait_for_agent(tmp_path / "lock", seconds=1)
    assert clock.slept == [handover.SETTLING_SECONDS]


def test_the_lock_is_taken_when_the_agent_dies_while_somebody_waits(
    tmp_path: Path, clock: Clock, agent: subprocess.Popen[str]
) -> None:
    def kill() -> None:
        agent.kill()
        agent.wait()

    clock.meanwhile = {5: kill}
    wait_for_agent(tmp_path / "lock", seconds=10)
    assert len(clock.slept) == 6
    assert clock.slept[-1] == handover.SETTLING_SECONDS


def test_a_grader_that_came_first_waits_for_the_agent_to_start(tmp_path: Path, clock: Clock) -> None:
    def whole_life() -> None:
        lock = AgentLock(tmp_path / "lock")
        lock.clean()
        lock.close()

    clock.meanwhile = {3: whole_life}
    wait_for_agent(tmp_path / "lock", seconds=10)
    assert len(clock.slept) == 3


def test_a_child_of_the_agent_does_not_hold_the_lock(tmp_path: Path) -> None:
    """Not inherited by fork: a script that outlives its runner would else keep the grader waiting."""
    lock = AgentLock(tmp_path / "lock")
    waiting, ours = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        os.read(waiting, 1)
        os._exit(0)
    os.close(waiting)
    lock.clean()
    lock.close()
    started = time.monotonic()
    wait_for_agent(tmp_path / "lock", seconds=10)
    assert time.monotonic() - started < 10
    os.close(ours)
    os.waitpid(child, 0)


def test_a_second_agent_is_refused(tmp_path: Path, agent: subprocess.Popen[str]) -> None:
    with pytest.raises(BlockingIOError):
        AgentLock(tmp_path / "lock")


def test_a_link_in_the_locks_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        AgentLock(tmp_path / "lock")
    with pytest.raises(OSError, match="symbolic links"):
        wait_for_agent(tmp_path / "lock", seconds=0)


def test_the_lock_is_held_before_the_byte_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    locked, written = fcntl.lockf, os.pwrite
    monkeypatch.setattr(handover.fcntl, "lockf", lambda *each: (order.append("lock"), locked(*each)))
    monkeypatch.setattr(handover.os, "pwrite", lambda *each: (order.append("byte"), written(*each)))
    AgentLock(tmp_path / "lock").close()
    assert order == ["lock", "byte"]
