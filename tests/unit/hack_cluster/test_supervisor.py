"""The supervisor, with shell scripts for components: order, failure, faults on request, and the end of it all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mlwright_cluster.machine import ProcessIdentity, wait_until
from mlwright_cluster.plan import Component, Layout, Plan
from mlwright_cluster.programs import MODULES

FOREVER = "exec sleep 600"
LISTEN = """
import socket, time
with socket.socket(socket.AF_UNIX) as server:
    server.bind("first.sock"); server.listen(); time.sleep(600)
"""


def script(name: str, text: str, *, ready: str = "") -> Component:
    return Component(name, ("sh", "-c", f"echo {name} >> order\n{text}"), ready=ready)


class Supervised:
    """A supervisor's process, as the handle sees it."""

    def __init__(self, layout: Layout, process: subprocess.Popen[bytes]) -> None:
        self.layout = layout
        self.process = process

    def state(self) -> dict[str, Any]:
        path = self.layout.state
        state: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return state

    def reach(self, phase: str) -> dict[str, Any]:
        wait_until(lambda: self.state().get("phase") == phase, what=f"{phase}: {self.state()}")
        return self.state()

    def tell(self, line: str) -> None:
        self.layout.control.write_text(f"{line}\n")

    def running(self) -> dict[str, ProcessIdentity | None]:
        return {name: ProcessIdentity.of(pid) for name, pid in self.state()["running"].items()}


@contextmanager
def supervised(
    folder: Path, *components: Component, prepare: tuple[tuple[str, ...], ...] = ()
) -> Iterator[Supervised]:
    layout = Layout(folder)
    (folder / "plan.json").write_text(Plan(components=components, prepare=prepare).to_json())
    os.mkfifo(layout.control)
    command = [sys.executable, "-m", "mlwright_cluster.supervisor", str(folder), "--with-stdin"]
    with subprocess.Popen(
        command, env=os.environ | {"PYTHONPATH": str(MODULES)}, stdin=subprocess.PIPE, cwd=folder
    ) as process:
        yield Supervised(layout, process)
        assert process.stdin is not None
        process.stdin.close()


def ended(processes: dict[str, ProcessIdentity | None]) -> bool:
    return not any(each is not None and each.is_alive() for each in processes.values())


def test_the_next_one_starts_when_the_one_before_it_is_ready(tmp_path: Path) -> None:
    socket = tmp_path / "first.sock"
    first = Component("first", (sys.executable, "-c", LISTEN), ready=str(socket))
    second = script("second", f"test -S {socket} && echo saw-it >> order; {FOREVER}")
    with supervised(tmp_path, first, second) as it:
        it.reach("Ready")
        wait_until(lambda: "saw-it" in (tmp_path / "order").read_text(), what="the second")


def test_a_component_that_ends_ends_all_and_leaves_its_last_words(tmp_path: Path) -> None:
    with supervised(tmp_path, script("one", FOREVER), script("two", "echo the disk is full; exit 7")) as it:
        state = it.reach("Failed")
        assert it.process.wait(20) == 1
        assert state["message"].startswith("two ended with status 7; ")
        assert state["message"].endswith("the disk is full")


def test_a_preparation_that_fails_is_named_and_nothing_starts(tmp_path: Path) -> None:
    prepare = (("true",), ("sh", "-c", "echo no such device; exit 2"), ("touch", "never"))
    with supervised(tmp_path, script("one", FOREVER), prepare=prepare) as it:
        assert "ended with status 2" in it.reach("Failed")["message"]
        assert it.process.wait(20) == 1
    assert not (tmp_path / "order").exists()
    assert not (tmp_path / "never").exists()


def test_a_component_can_be_taken_away_and_brought_back(tmp_path: Path) -> None:
    with supervised(tmp_path, script("one", FOREVER), script("two", FOREVER)) as it:
        it.reach("Ready")
        before = it.running()
        it.tell("stop one")
        wait_until(lambda: "one" not in it.state()["running"], what="its end")
        assert ended({"one": before["one"]})
        assert it.process.poll() is None
        it.tell("start one")
        wait_until(lambda: "one" in it.state()["running"], what="its return")
        assert it.reach("Ready")["running"].keys() == {"one", "two"}
        assert it.running()["two"] == before["two"]


@pytest.mark.parametrize("line", ["stop nobody", "start one", "what is this", ""])
def test_what_it_does_not_understand_changes_nothing(tmp_path: Path, line: str) -> None:
    with supervised(tmp_path, script("one", FOREVER)) as it:
        before = it.reach("Ready")["running"]
        it.tell(line)
        it.tell("stop one")
        wait_until(lambda: it.state()["running"] == {}, what="the line after it to be obeyed")
        assert before.keys() == {"one"}
        assert it.process.poll() is None


def how_to_end(it: Supervised, how: str) -> None:
    if how == "end":
        it.tell("end")
    elif how == "stdin":
        assert it.process.stdin is not None
        it.process.stdin.close()
    elif how == "TERM":
        it.process.terminate()
    else:
        it.process.kill()


@pytest.mark.parametrize("how", ["end", "stdin", "TERM", "KILL"])
def test_everything_ends_with_it_however_it_ends(tmp_path: Path, how: str) -> None:
    stubborn = script("stubborn", f"trap '' TERM; {FOREVER}")
    with supervised(tmp_path, script("one", FOREVER), stubborn) as it:
        it.reach("Ready")
        running = it.running()
        assert not ended(running)
        how_to_end(it, how)
        it.process.wait(20)
        wait_until(lambda: ended(running), what="the end of everything")
