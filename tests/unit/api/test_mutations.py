"""One good object of each kind, changed in one place: each change that must be refused is, and says why."""

from __future__ import annotations

import json
from typing import Any

import pytest
from api_mutations import HARMLESS, LOSS, MUTATIONS, ROLLOUT, RUN, SCRATCH, TASK, changed
from mlwright_api.errors import ManifestError
from mlwright_api.manifests import parse_manifests


def refusals(document: dict[str, Any]) -> list[str]:
    """Field and message of each problem."""
    with pytest.raises(ManifestError) as caught:
        parse_manifests(json.dumps(document), source="file")
    return [f"{problem.field}: {problem.message}" for problem in caught.value.problems]


@pytest.mark.parametrize(
    "good", [RUN, SCRATCH, TASK, LOSS, ROLLOUT], ids=["run", "scratch", "task", "loss", "rollout"]
)
def test_the_unchanged_objects_are_good(good: dict[str, Any]) -> None:
    assert len(parse_manifests(json.dumps(good), source="file")) == 1


@pytest.mark.parametrize(
    ("good", "path", "value", "refusal"),
    MUTATIONS,
    ids=[f"{good['kind']}-{path}-{str(value)[:24]}" for good, path, value, _ in MUTATIONS],
)
def test_one_wrong_field_is_refused_with_its_path_and_what_is_allowed(
    good: dict[str, Any], path: str, value: object, refusal: str
) -> None:
    (found,) = refusals(changed(good, path, value))
    assert found.startswith(refusal)


@pytest.mark.parametrize(
    ("good", "path", "value"),
    HARMLESS,
    ids=[f"{good['kind']}-{path}-{str(value)[:24]}" for good, path, value in HARMLESS],
)
def test_what_lies_beside_a_refusal_is_accepted(good: dict[str, Any], path: str, value: object) -> None:
    assert len(parse_manifests(json.dumps(changed(good, path, value)), source="file")) == 1


def test_there_are_enough_mutations() -> None:
    assert len(MUTATIONS) >= 100
