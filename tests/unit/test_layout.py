"""The checkout itself: rooms, sizes, scripts, and examples that load."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlwright_api.consistency import check_reward
from mlwright_api.manifests import load_manifests
from mlwright_api.mltask import MLTask
from mlwright_api.presets import resolve
from mlwright_api.trainingrun import TrainingRun

ROOT = Path(__file__).parents[2]
PARTS = ("crds", "operator", "sandbox-image", "trainer")
SOURCES = sorted(path for part in PARTS for path in (ROOT / part).rglob("*.py"))
MODULES = [*SOURCES, *sorted((ROOT / "docs").glob("*.py")), *sorted((ROOT / "benchmarks").rglob("*.py"))]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
SCRIPTS = [ROOT / ".ci/run", *sorted((ROOT / "hack").glob("*.sh"))]
MANIFESTS = sorted(path for path in (ROOT / "examples").rglob("*.yaml"))

Function = ast.FunctionDef | ast.AsyncFunctionDef


def names(paths: list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


def functions() -> Iterator[tuple[str, Function]]:
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, Function):
                yield f"{path.relative_to(ROOT)}:{node.name}", node


def lines(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def positional(function: Function) -> int:
    arguments = [*function.args.posonlyargs, *function.args.args]
    return len([each for each in arguments if each.arg not in ("self", "cls")])


def test_nothing_shadows_the_standard_librarys_operator() -> None:
    assert not (ROOT / "operator/__init__.py").exists()


@pytest.mark.parametrize("path", [*MODULES, *TESTS], ids=names([*MODULES, *TESTS]))
def test_a_modules_first_line_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text()))
    assert docstring, "no docstring"
    assert path.read_text().startswith('"""')
    assert len(docstring.splitlines()[0]) > 10


@pytest.mark.parametrize("path", SOURCES, ids=names(SOURCES))
def test_a_room_has_a_name_that_says_what_is_in_it(path: Path) -> None:
    vague = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc"}
    assert vague.isdisjoint({part.removesuffix(".py") for part in path.relative_to(ROOT).parts})


def test_functions_are_small() -> None:
    sizes = sorted(lines(function) for _, function in functions())
    assert sizes[len(sizes) // 2] <= 8
    assert sizes[len(sizes) * 9 // 10] <= 30
    assert [name for name, function in functions() if lines(function) > 60] == []


def test_no_function_takes_more_than_five_positional_parameters() -> None:
    """But for the subcommands, whose parameters typer turns into options."""
    many = [name for name, function in functions() if positional(function) > 5]
    assert [name for name in many if "/command/" not in name] == []


def test_files_are_seldom_long() -> None:
    long = [str(path.relative_to(ROOT)) for path in SOURCES if len(path.read_text().splitlines()) > 400]
    assert len(long) * 20 <= len(SOURCES), long


@pytest.mark.parametrize("path", SCRIPTS, ids=names(SCRIPTS))
def test_a_script_can_be_run_and_stops_at_its_first_error(path: Path) -> None:
    text = path.read_text()
    assert os.access(path, os.X_OK)
    assert text.startswith("#!/usr/bin/env bash\n")
    assert "\nset -euo pipefail\n" in text


def test_make_alone_lists_every_target() -> None:
    shown = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (phony,) = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith(".PHONY:")]
    assert [target for target in phony.split()[1:] if f"  make {target} " not in shown] == []


@pytest.mark.parametrize("path", MANIFESTS, ids=names(MANIFESTS))
def test_an_example_loads(path: Path) -> None:
    assert load_manifests(path)


def test_there_are_examples() -> None:
    kinds = [type(manifest) for path in MANIFESTS for manifest in load_manifests(path)]
    assert kinds.count(TrainingRun) >= 1
    assert kinds.count(MLTask) >= 6


@pytest.mark.parametrize("path", MANIFESTS, ids=names(MANIFESTS))
def test_an_example_runs_reward_fits_its_tasks(path: Path) -> None:
    tasks = {
        each.metadata.name: each
        for file in MANIFESTS
        for each in load_manifests(file)
        if isinstance(each, MLTask)
    }
    for run in load_manifests(path):
        if isinstance(run, TrainingRun):
            spec = resolve(run.spec)
            assert [check_reward(spec.reward, tasks[task.name].spec) for task in spec.tasks] == [[]] * len(
                spec.tasks
            )


def test_the_api_is_imported_without_what_learns_or_reports() -> None:
    heavy = ("torch", "transformers", "pandas", "sklearn", "matplotlib")
    code = f"import mlwright_api.manifests, sys; sys.exit(any(name in sys.modules for name in {heavy!r}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
