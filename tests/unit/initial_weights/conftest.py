"""Small runs that make a model from nothing in a second."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.trainingrun import TrainingRunSpec

LINES = ("import pandas as pd\n", "model.fit(X, y)\n", "print(score)\n", "sample.to_csv('a.csv')\n")


def write_examples(path: Path, count: int = 64) -> Path:
    """JSON lines that a tiny model learns in a few steps."""
    records = ({"prompt": f"# task {i % 2}", "completion": "".join(LINES[: 1 + i % 4])} for i in range(count))
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


SpecMaker = Callable[..., TrainingRunSpec]


@pytest.fixture
def spec(tmp_path: Path) -> SpecMaker:
    """A run with a scratch model and examples in `tmp_path`; keyword arguments replace fields."""
    write_examples(tmp_path / "examples.jsonl")

    def make(
        *, model: dict[str, Any] | None = None, tuning: dict[str, Any] | None = None, **fields: Any
    ) -> Any:
        scratch = {
            "vocabularySize": 300,
            "config": {
                "model_type": "qwen2",
                "hidden_size": 16,
                "intermediate_size": 32,
                "num_hidden_layers": 1,
                "num_attention_heads": 2,
                "num_key_value_heads": 1,
                "tie_word_embeddings": True,
            },
        }
        return TrainingRunSpec.model_validate(
            {
                "tasks": [{"name": "t"}],
                "model": {"source": {"scratch": scratch}, **(model or {})},
                "fineTuning": {
                    "examples": {"path": "examples.jsonl"},
                    "batchSize": 8,
                    "learningRate": 0.02,
                    **(tuning or {}),
                },
                **fields,
            }
        )

    return make


@pytest.fixture
def heard() -> list[tuple[str, float]]:
    """What progress was told."""
    return []


@pytest.fixture
def progress(heard: list[tuple[str, float]]) -> Callable[[str, float], None]:
    return lambda note, share: heard.append((note, share))
