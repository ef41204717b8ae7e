"""The command line: it teaches, and says what is wrong before anything begins."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlwright_operator.__main__ import address, main, parser
from mlwright_operator.edge.heap import keep_small


@pytest.fixture(autouse=True)
def _logging() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


def test_help_shows_a_configuration_an_example_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    shown = capsys.readouterr().out
    assert caught.value.code == 0
    for part in ("profiles:", "--no-election", "75", "/readyz", "operator/rbac.yaml"):
        assert part in shown


def test_a_bad_configuration_ends_with_2_and_says_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "operator.yaml"
    path.write_text("profiles:\n  default:\n    imag: x\n")
    assert main(["--config", str(path)]) == 2
    assert f"{path}:3: profiles.default.imag" in capsys.readouterr().err


def test_a_missing_kubeconfig_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "operator.yaml"
    path.write_text("profiles: {default: {image: x}}\n")
    assert main(["--config", str(path), "--kubeconfig", str(tmp_path / "none")]) == 2
    assert "--kubeconfig" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1:0", ("127.0.0.1", 0)), (":8080", ("0.0.0.0", 8080)), ("[::1]:9", ("::1", 9))],
)
def test_an_address_is_a_host_and_a_port(text: str, expected: tuple[str, int]) -> None:
    assert address(text) == expected


@pytest.mark.parametrize("text", ["8080", "localhost", "host:http", "host:70000", ""])
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="HOST:PORT"):
        address(text)


def test_namespaces_may_be_several() -> None:
    given = parser().parse_args(["--config", "x", "--namespace", "a", "--namespace", "b"])
    assert given.namespace == ["a", "b"]


def test_the_heap_can_be_told() -> None:
    assert keep_small() is sys.platform.startswith("linux")
