"""The sentences in which errors are said."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.explanations import dotted, fields_at, nearest, parse_path, unknown
from mlwright_api.mltask import MLTask
from mlwright_api.patterns import IN_WORDS
from mlwright_api.rollout import Rollout
from mlwright_api.trainingrun import TrainingRun

API = Path(__file__).parents[3] / "crds/mlwright_api"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ((), ""),
        (("spec",), "spec"),
        (("spec", "tasks", 0, "name"), "spec.tasks[0].name"),
        (("metadata", "annotations", "mlwright.dev/folder"), 'metadata.annotations["mlwright.dev/folder"]'),
        (("a", 1, 2), "a[1][2]"),
    ],
)
def test_a_path_reads_as_in_kubernetes(path: tuple[str | int, ...], text: str) -> None:
    assert dotted(path) == text


@pytest.mark.parametrize("text", ["", "spec", "tasks[0].name", "a[1][2]", "algorithm.kl.target"])
def test_a_rules_path_is_read_as_it_is_written(text: str) -> None:
    assert dotted(parse_path(text)) == text


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("learnngRate", "learningRate"),
        ("learning_rate", "learningRate"),
        ("LEARNINGRATE", "learningRate"),
        ("lr", None),
        ("quantum", None),
        ("batchsize", "batchSize"),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name: str, meant: str | None) -> None:
    assert nearest(name, ["batchSize", "learningRate", "criticLearningRate", "epochs"]) == meant


def test_an_unknown_name_without_a_near_one_comes_with_all_that_are_allowed() -> None:
    assert unknown("x", ["a", "b"], what="field") == "unknown field 'x': allowed are a, b"
    assert unknown("x", [], what="field") == "unknown field 'x': allowed are none"


@pytest.mark.parametrize(
    ("model", "location", "some"),
    [
        (TrainingRun, ("spec",), "algorithm"),
        (TrainingRun, ("spec", "algorithm"), "lambda"),
        (TrainingRun, ("spec", "algorithm", "kl"), "estimator"),
        (TrainingRun, ("spec", "model", "lora"), "targetModules"),
        (TrainingRun, ("spec", "tasks", 3), "weight"),
        (TrainingRun, ("status", "conditions", 0), "observedGeneration"),
        (MLTask, ("spec", "data", "public", "claim"), "path"),
        (Rollout, ("status", "isolation", "checks", 0), "locked"),
    ],
)
def test_the_fields_at_a_place_are_known(model: Any, location: tuple[str | int, ...], some: str) -> None:
    assert some in fields_at(model, location)


@pytest.mark.parametrize("location", [("spec", "nowhere"), ("spec", "seed"), ("metadata", "labels")])
def test_a_place_without_fields_of_its_own_has_none(location: tuple[str | int, ...]) -> None:
    assert fields_at(TrainingRun, location) == []


def test_every_pattern_of_the_models_has_words() -> None:
    used = {
        found for path in API.glob("*.py") for found in re.findall(r"pattern=([A-Z_]+)", path.read_text())
    }
    literal = [path.name for path in API.glob("*.py") if "pattern=r" in path.read_text()]
    assert used
    assert literal == []
    assert all(re.compile(pattern) and words for pattern, words in IN_WORDS.items())
