"""A small binary task whose names and columns are in no generated script."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture(scope="session")
def binary_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The public data: numbers, text with a level that only the test rows have, and missing values."""
    rng = np.random.default_rng(0)
    rows = 240
    table = pd.DataFrame(
        {
            "reading": rng.permutation(rows) + 500,
            "weight": rng.normal(size=rows),
            "visits": rng.integers(0, 9, size=rows),
            "colour": rng.choice(["red", "green", "blue"], size=rows),
        }
    )
    answers = (table["weight"] + (table["colour"] == "red") + rng.normal(size=rows) > 0.5).astype(int)
    table.loc[rng.choice(rows, 12, replace=False), "weight"] = np.nan
    table.loc[rows - 1, "colour"] = "mauve"
    folder = tmp_path_factory.mktemp("task")
    half = rows // 2
    table[:half].assign(relapse=answers[:half]).to_csv(folder / "train.csv", index=False)
    table[half:].to_csv(folder / "test.csv", index=False)
    sample = pd.DataFrame({"reading": table["reading"][half:], "relapse": 0.5})
    sample.to_csv(folder / "sample_submission.csv", index=False)
    return folder
