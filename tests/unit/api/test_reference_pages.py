"""The generated reference: current, complete, and with a description for every field."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from mlwright_api.base import ApiModel
from mlwright_api.classify import RULES
from mlwright_api.mltask import MLTask
from mlwright_api.presets import DESIGN_DEFAULTS
from mlwright_api.rollout import Outcome, Rollout
from mlwright_api.trainingrun import TrainingRun

ROOT = Path(__file__).parents[3]


def _load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = _load_generator()
PAGES: dict[Path, str] = GENERATOR.pages()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_generated_page_is_current(path: Path) -> None:
    assert path.read_text() == PAGES[path], "make docs"


def test_a_stale_page_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GENERATOR, "REFERENCE", tmp_path / "docs/reference")
    (tmp_path / "docs").mkdir()
    assert GENERATOR.main(["--check"]) == 1
    assert GENERATOR.main([]) == 0
    assert GENERATOR.main(["--check"]) == 0
    (tmp_path / "docs/reference/mltask.md").write_text("old")
    assert GENERATOR.main(["--check"]) == 1


def fields_without_description(model: type[ApiModel]) -> list[str]:
    schema = model.model_json_schema(by_alias=True)
    definitions: dict[str, Any] = schema["$defs"]
    return [
        f"{name}.{key}"
        for name, block in definitions.items()
        for key, field in block.get("properties", {}).items()
        if not (field.get("description") or GENERATOR.described(field, definitions))
    ]


STANDARD = ("ObjectMeta", "Condition", "Toleration")
"""Kubernetes documents these."""


@pytest.mark.parametrize("model", [TrainingRun, MLTask, Rollout])
def test_every_field_has_a_description(model: type[ApiModel]) -> None:
    missing = [name for name in fields_without_description(model) if not name.startswith(STANDARD)]
    assert missing == []


def test_every_default_of_a_preset_is_shown() -> None:
    page = PAGES[ROOT / "docs/reference/trainingrun.md"]
    assert "| `batchSize` | integer >= 1, <= 65536 | `128` |" in page
    assert "| `invalid` | number >= -1000000, <= 1000000 | `-0.5` | `-10` |" in page
    assert len(GENERATOR.ATTRIBUTES) == len(DESIGN_DEFAULTS)


def test_the_outcome_page_has_every_outcome_and_every_rule() -> None:
    page = PAGES[ROOT / "docs/reference/outcomes.md"]
    assert all(f"| `{outcome}` |" in page for outcome in Outcome)
    assert all(rule.when in page for rule in RULES)
    assert set(GENERATOR.EARNS) == set(Outcome)
    assert set(GENERATOR.NOT_RUN) | {rule.outcome for rule in RULES} == set(Outcome)
