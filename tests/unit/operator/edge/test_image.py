"""The operator's image: what it needs is named exactly, and it runs as nobody in particular."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[4]
CONTAINERFILE = (ROOT / "operator/Containerfile").read_text()
PINNED = dict(
    line.split("==") for line in (ROOT / "operator/requirements.txt").read_text().splitlines() if "==" in line
)


def needs(names: list[str]) -> set[str]:
    """All that these ask for, and what that asks for."""
    found: set[str] = set()
    while names:
        name = canonicalize_name(names.pop())
        if name not in found:
            found.add(name)
            asked = map(Requirement, distribution(name).requires or [])
            names += [
                each.name for each in asked if each.marker is None or each.marker.evaluate({"extra": ""})
            ]
    return found


def test_every_package_is_pinned_and_none_is_missing() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    ours = [Requirement(each).name for each in extras["operator"]]
    assert set(PINNED) == needs([*ours, "pydantic", "ruamel.yaml"])


def test_pins_hold_what_pyproject_asks_for() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for asked in map(Requirement, extras["operator"]):
        assert asked.specifier.contains(PINNED[canonicalize_name(asked.name)])


def test_it_does_not_run_as_root() -> None:
    users = re.findall(r"^USER (\S+)", CONTAINERFILE, flags=re.MULTILINE)
    assert users == ["65532:65532"]
    assert CONTAINERFILE.index("USER 65532") > CONTAINERFILE.rindex("FROM ")


def test_no_index_and_no_secret_is_in_it() -> None:
    text = CONTAINERFILE + (ROOT / "operator/requirements.txt").read_text()
    assert not re.search(r"https?://|--index-url|--trusted-host|password|token", text)
