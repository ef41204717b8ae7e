"""Process trees: reading /proc, finding descendants, and ending them whatever they do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_sandbox.processes import Process, count_of_user, descendants, own_tree, parse_stat, reap


def test_a_line_of_stat_is_read() -> None:
    assert parse_stat("12 (python) S 3 12 12 0 -1") == Process(12, 3, "S")


@given(st.text(max_size=15))
def test_no_name_of_a_program_misleads(name: str) -> None:
    assert parse_stat(f"7 ({name}) R 1 7 7") == Process(7, 1, "R")


def test_a_name_that_looks_like_the_rest_of_the_line_does_not_mislead() -> None:
    assert parse_stat("7 (x) Z 999 ) S 5 7 7").parent == 5


@pytest.mark.parametrize(
    ("state", "dead"), [("Z", True), ("X", True), ("S", False), ("T", False), ("D", False)]
)
def test_zombies_are_dead(state: str, dead: bool) -> None:
    assert Process(1, 0, state).dead is dead


def test_descendants_are_found_at_any_depth_and_nobody_else() -> None:
    table = [
        Process(1, 0, "S"),
        Process(2, 1, "S"),
        Process(3, 2, "S"),
        Process(4, 3, "Z"),
        Process(5, 1, "S"),
    ]
    assert {process.pid for process in descendants(table, 2)} == {3, 4}
    assert descendants(table, 5) == []


def test_own_children_are_in_the_own_tree_until_they_end() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as child:
        assert child.pid in {process.pid for process in own_tree()}
        child.communicate()
    assert child.pid not in {process.pid for process in own_tree()}


def test_this_user_has_at_least_this_process() -> None:
    assert count_of_user(os.getuid()) >= 1


KILLER = """
import os, signal, sys, time
from mlwright_sandbox import processes
processes.become_subreaper()
reading, writing = os.pipe()
if os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setsid()
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.write(writing, b"x")
                signal.pause()
            os._exit(0)
    signal.pause()
count = 0
while count < 5:
    count += len(os.read(reading, 1))
processes.kill_descendants()
assert processes.own_tree() == [], processes.own_tree()
assert processes.reap()
print("none left")
"""


def test_a_subreaper_ends_daemons_that_left_their_session_and_parents() -> None:
    done = subprocess.run([sys.executable, "-c", KILLER], capture_output=True, text=True, timeout=60)
    assert done.stdout == "none left\n", done.stderr


def test_reaping_without_children_says_that_none_is_left() -> None:
    code = "from mlwright_sandbox.processes import reap; print(reap())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr
    assert callable(reap)
