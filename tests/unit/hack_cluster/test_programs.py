"""Which programs are built, where they lie, and that a change of anything in them gives them another place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mlwright_cluster import programs
from mlwright_cluster.errors import CommandFailed, ProgramsMissing
from mlwright_cluster.programs import (
    CONTROL_PLANE,
    MODULES,
    NODE,
    PROGRAMS,
    Program,
    build,
    find,
    module_key,
    require,
)

SOURCES = [("go.mod", b"module a"), ("go.sum", b"")]
KEY = {"sources": SOURCES, "go": "go1", "programs": [Program("one", "a", "./one")]}
FAKE_GO = """#!/bin/sh
if [ "$1" = version ]; then echo go version fake; exit; fi
echo "$PWD $CGO_ENABLED $*" >> {log}
while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done
case $1 in *broken*) echo cannot compile >&2; exit 1;; esac
echo built > "$out"
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `go` that notes what it is asked for, instead of the real one; returns its notes."""
    log = tmp_path / "asked"
    log.touch()
    (tmp_path / "go").write_text(FAKE_GO.format(log=log))
    (tmp_path / "go").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv(programs.ASSETS, raising=False)
    monkeypatch.setattr(programs, "CACHE", tmp_path / "cache")
    return log


def test_the_key_is_the_same_for_the_same_content_in_any_order() -> None:
    assert module_key(**KEY) == module_key(**KEY | {"sources": SOURCES[::-1]})
    assert len(module_key(**KEY)) == 12


@pytest.mark.parametrize(
    "change",
    [
        {"go": "go2"},
        {"sources": [("go.mod", b"module b"), ("go.sum", b"")]},
        {"sources": [("go.mod", b"module a"), ("go.sumx", b"")]},
        {"programs": [Program("one", "a", "./one", tags="seccomp")]},
        {"programs": [Program("one", "a", "./one", cgo=True)]},
        {"programs": [Program("one", "a", "./one", variables=("v=1",))]},
    ],
)
def test_whatever_goes_into_a_program_changes_the_key(change: dict[str, object]) -> None:
    assert module_key(**KEY | change) != module_key(**KEY)  # type: ignore[arg-type]  # a table of mixed values


def test_every_program_belongs_to_a_module_with_pinned_sums() -> None:
    for program in PROGRAMS:
        assert (MODULES / program.module / "go.mod").is_file(), program.name


@pytest.mark.parametrize(
    "program", [each for each in PROGRAMS if each.package != "."], ids=lambda each: each.name
)
def test_a_programs_package_is_imported_by_its_module_so_that_tidy_keeps_it(program: Program) -> None:
    assert f'"{program.package}"' in (MODULES / program.module / "tools.go").read_text()


def test_versions_that_are_linked_in_are_those_of_the_modules() -> None:
    pinned = "".join((MODULES / name / "go.mod").read_text() for name in ("kubernetes", "containerd"))
    for line in (
        f"k8s.io/kubernetes {programs.KUBERNETES}",
        f"containerd/containerd/v2 {programs.CONTAINERD}",
        f"containernetworking/plugins {programs.PLUGINS}",
    ):
        assert line in pinned


def test_names_are_distinct() -> None:
    assert len({program.name for program in PROGRAMS}) == len(PROGRAMS) == len(CONTROL_PLANE) + len(NODE)


def test_given_assets_are_used_for_the_control_plane_and_need_no_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(programs.ASSETS, str(tmp_path))
    monkeypatch.setenv("PATH", "")
    assert find(CONTROL_PLANE) == {name: tmp_path / name for name in ("etcd", "kube-apiserver", "kubectl")}
    with pytest.raises(ProgramsMissing, match="not built: etcd, kube-apiserver, kubectl"):
        require(CONTROL_PLANE)
    for name in ("etcd", "kube-apiserver", "kubectl"):
        (tmp_path / name).touch()
    assert require(CONTROL_PLANE)["etcd"] == tmp_path / "etcd"


def test_without_go_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(programs.ASSETS, raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ProgramsMissing, match="Go is missing: install it"):
        find(CONTROL_PLANE)


def test_a_program_is_built_once(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (etcd, *_) = CONTROL_PLANE
    first = build([etcd])
    assert build([etcd]) == first == require([etcd])
    (asked,) = go.read_text().splitlines()
    assert asked.startswith(f"{MODULES / 'kubernetes'} 0 build -trimpath ")
    assert capsys.readouterr().err.startswith("cluster: building etcd ...\ncluster: building etcd: ")


def test_two_who_ask_at_once_build_it_once(go: Path) -> None:
    code = "from pathlib import Path; from mlwright_cluster import programs; "
    code += f"programs.CACHE = Path({str(programs.CACHE)!r}); programs.build(programs.CONTROL_PLANE[:1])"
    environment = {"PATH": f"{go.parent}:/usr/bin:/bin", "PYTHONPATH": str(MODULES)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(2)]
    assert [each.wait() for each in both] == [0, 0]
    assert len(go.read_text().splitlines()) == 1


def test_a_program_that_does_not_compile_leaves_nothing_and_says_why(go: Path) -> None:
    broken = Program("broken", "pause", "./broken")
    with pytest.raises(CommandFailed, match="building broken: cannot compile"):
        build([broken])
    assert not find([broken])["broken"].exists()
