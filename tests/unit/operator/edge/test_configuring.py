"""The configuration file: what is wrong is said by line and field, all at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_operator.edge.configuring import load_config
from mlwright_operator.errors import ConfigError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "operator.yaml"
    path.write_text(text)
    return path


def problem(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, text))
    return str(caught.value)


def test_the_smallest_configuration_is_one_image(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "profiles: {default: {image: sandbox:1}}\n"))
    assert config.profiles["default"].image == "sandbox:1"
    assert config.namespaces == []


def test_json_will_do(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, '{"profiles": {"default": {"image": "x"}}, "ttlSeconds": 0}'))
    assert config.ttl_seconds == 0


def test_an_unknown_field_is_named_with_its_line_and_the_nearest_one(tmp_path: Path) -> None:
    said = problem(tmp_path, "profiles:\n  default:\n    image: x\n    runtimClass: gvisor\n")
    assert ":4: profiles.default.runtimClass" in said
    assert "did you mean runtimeClass" in said


def test_every_problem_is_said_at_once(tmp_path: Path) -> None:
    said = problem(
        tmp_path,
        "profiles: {default: {image: x, startingSeconds: 1}}\nadmission: {sandboxes: 0}\nresyncSeconds: -1\n",
    )
    assert len(said.splitlines()) == 3


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "profiles"),
        ("[1]", "profiles"),
        ("a: 1\n---\nb: 2\n", "one mapping"),
        ("profiles: {default: {}}\n", "profiles.default.image"),
        ("profiles: {'Not A Label': {image: x}}\n", "profiles"),
        ("profiles: {default: {image: x}}\nresyncSeconds: '60'\n", "resyncSeconds"),
        ("profiles: [\n", ":2"),
        ("namespaces: [lab]\n", "profiles"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, text: str, expected: str) -> None:
    assert expected in problem(tmp_path, text)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        load_config(tmp_path / "nowhere.yaml")
