"""The receipt says what was tried and how it was refused, and never more than that."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_sandbox import kernel, receipt
from mlwright_sandbox.receipt import METADATA_ADDRESS, attempts, make_receipt, network_targets
from mlwright_sandbox.wire import Probe

NOWHERE = (("127.0.0.1", 1), ("127.0.0.1", 1))
"""Port 1: refused at once."""


def test_the_api_server_is_the_one_of_the_cluster_if_there_is_one() -> None:
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.9", "KUBERNETES_SERVICE_PORT": "6443"}
    assert network_targets(environment) == (("10.0.0.9", 6443), METADATA_ADDRESS)
    assert network_targets({}) == (("10.96.0.1", 443), METADATA_ADDRESS)


@pytest.mark.parametrize("port", ["", "https", "-1"])
def test_a_port_that_is_none_does_no_harm(port: str) -> None:
    assert network_targets({"KUBERNETES_SERVICE_PORT": port})[0][1] == 443


def test_answers_that_can_be_read_are_a_check_that_failed(tmp_path: Path) -> None:
    (tmp_path / "answers.csv").write_text("id\n")
    found = attempts(Probe(locked=False, answers=(str(tmp_path),), network=NOWHERE))
    assert found["AnswersAbsent"] is None


def test_answers_that_are_not_there_are_a_check_that_held(tmp_path: Path) -> None:
    found = attempts(Probe(locked=False, answers=(str(tmp_path / "gone"),), network=NOWHERE))
    assert found["AnswersAbsent"] == "No such file or directory"


def test_one_readable_answer_among_many_is_enough_to_fail(tmp_path: Path) -> None:
    (tmp_path / "sealed").mkdir()
    found = attempts(
        Probe(locked=False, answers=(str(tmp_path / "gone"), str(tmp_path / "sealed")), network=NOWHERE)
    )
    assert found["AnswersAbsent"] is None


def test_unlocked_only_harmless_attempts_are_made() -> None:
    found = attempts(Probe(locked=False, network=NOWHERE))
    assert not {"NoMounts", "NoTracing", "NoSignalsOutside", "NoUserNamespaces"} & set(found)
    assert found["ApiServerUnreachable"] is not None


def test_an_unlocked_process_can_write_somewhere_and_the_check_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt, "_OUTSIDE", (str(tmp_path),))
    assert attempts(Probe(locked=False, network=NOWHERE))["OutsideReadOnly"] is None
    assert list(tmp_path.iterdir()) == []


def test_a_receipt_joins_both_attempts() -> None:
    made = make_receipt(
        "Namespaces",
        unlocked={"A": None},
        locked={"A": "denied", "B": "denied"},
        seccomp=True,
        user_namespace=True,
    )
    first, second = made.checks
    assert (first.name, first.unlocked, first.locked, first.detail) == ("A", False, True, "denied")
    assert (second.unlocked, second.locked) == (None, True)
    assert made.isolated
    assert made.user_namespace
    assert made.landlock_abi == kernel.landlock_abi()


def test_one_attempt_that_succeeded_locked_is_not_isolated() -> None:
    made = make_receipt(
        "Lock", unlocked={}, locked={"A": "denied", "B": None}, seccomp=True, user_namespace=False
    )
    assert not made.isolated
    assert not made.user_namespace
    assert made.checks[1].detail == "succeeded"


def test_plain_processes_have_no_checks_and_are_not_isolated() -> None:
    made = make_receipt("Plain", unlocked={}, locked={}, seccomp=False, user_namespace=False)
    assert (made.checks, made.isolated) == ([], False)


@pytest.mark.parametrize(
    ("uid_map", "own"),
    [
        ("         0          0 4294967295\n", False),
        ("         0 3505848320      65536\n", True),
        ("     65532      65532          1\n", True),
        ("", True),
    ],
)
def test_a_user_namespace_is_one_that_does_not_map_everybody(uid_map: str, own: bool) -> None:
    assert receipt.in_user_namespace(uid_map) is own


def test_control_files_are_tried_only_where_there_are_some(tmp_path: Path) -> None:
    assert "ControlUnreachable" not in attempts(Probe(locked=False, network=NOWHERE))
    gone = Probe(locked=False, network=NOWHERE, hidden=(str(tmp_path / "gone"),))
    assert attempts(gone)["ControlUnreachable"] == "No such file or directory"


@pytest.mark.parametrize("reachable", ["lock", ""])
def test_a_control_file_or_folder_that_can_be_opened_is_a_check_that_failed(
    tmp_path: Path, reachable: str
) -> None:
    (tmp_path / "lock").write_text("h")
    probe = Probe(locked=False, network=NOWHERE, hidden=(str(tmp_path / "gone"), str(tmp_path / reachable)))
    assert attempts(probe)["ControlUnreachable"] is None
    assert (tmp_path / "lock").read_text() == "h"
    assert len(list(tmp_path.iterdir())) == 1
