"""Names and addresses on the machine: free ones are found, and only what is ours is taken for ours."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_cluster import machine
from mlwright_cluster.errors import CommandFailed
from mlwright_cluster.machine import (
    NETWORKS,
    ProcessIdentity,
    cgroup_folders,
    free_endpoint,
    run,
    short_name,
    wait_until,
)

VERSION_1 = """\
31 28 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:28 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
33 31 0:29 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory
40 31 0:36 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
VERSION_2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup rw,nsdelegate\n"


def test_a_control_group_has_a_folder_in_every_hierarchy() -> None:
    base = Path("/sys/fs/cgroup")
    assert cgroup_folders("x", VERSION_1) == [base / "cpu/x", base / "memory/x", base / "unified/x"]
    assert cgroup_folders("x", VERSION_2) == [base / "x"]


def test_an_endpoint_is_one_cable_of_two_addresses() -> None:
    endpoint = free_endpoint([], seed="a")
    assert endpoint == free_endpoint([], seed="a")
    assert endpoint != free_endpoint([], seed="b")
    assert endpoint.url == f"https://{endpoint.address}:6443"


@given(st.text(), st.lists(st.integers(0, 255).map(lambda byte: f"10.213.{byte}.9/24"), max_size=20))
def test_an_endpoint_overlaps_no_network_that_is_taken(seed: str, taken: list[str]) -> None:
    endpoint = free_endpoint(taken, seed=seed)
    assert not {each.rsplit(".", 1)[0] for each in taken} & {
        endpoint.address.rsplit(".", 1)[0],
        endpoint.gateway.rsplit(".", 1)[0],
    }


def test_where_every_network_is_taken_it_says_so() -> None:
    with pytest.raises(CommandFailed, match=r"no network is free in 10\.213"):
        free_endpoint([str(NETWORKS)], seed="a")


def test_a_name_fits_an_interface_and_belongs_to_its_folder() -> None:
    assert len(short_name(Path("/a/very/long/folder" * 20))) <= 15
    assert short_name(Path("/a")) != short_name(Path("/b"))


def test_a_process_is_itself_and_not_the_next_one_with_its_number() -> None:
    this = ProcessIdentity.of(os.getpid())
    assert this is not None
    assert this.is_alive()
    assert not ProcessIdentity(pid=this.pid, started=this.started + 1).is_alive()


def test_a_process_that_ended_is_not_alive_even_before_its_parent_noticed() -> None:
    process = subprocess.Popen(["sleep", "60"])
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    process.kill()
    wait_until(lambda: not identity.is_alive(), what="the end")
    assert process.returncode is None
    process.wait()


def test_a_name_with_brackets_and_spaces_does_not_confuse_it(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        identity = ProcessIdentity.of(process.pid)
        process.kill()
    assert identity is not None
    assert identity.started > 1


def test_waiting_in_vain_says_what_for() -> None:
    with pytest.raises(CommandFailed, match="waited 0 s in vain for Godot"):
        wait_until(lambda: False, what="Godot", seconds=0.0)


def test_a_command_that_fails_is_quoted() -> None:
    assert run("echo", "yes") == "yes\n"
    with pytest.raises(CommandFailed, match="sh -c echo no >&2; exit 1: no"):
        run("sh", "-c", "echo no >&2; exit 1")
    with pytest.raises(CommandFailed, match="no-such-program is missing"):
        run("no-such-program")


def test_an_interface_that_is_not_there_needs_no_removal() -> None:
    machine.remove_cable("mlwright-none")
