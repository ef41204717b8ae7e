"""What the prepare.py of `mlwright task new` calls: a table of one's own becomes train, Reward, Selection and Final."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from mlwright_trainer.tasks.answers import numbers_where_possible, read_text_table
from mlwright_trainer.tasks.sources import SourceError
from mlwright_trainer.tasks.splitting import (
    TRAIN,
    SplitSizes,
    TaskTables,
    assign_grouped_splits,
    assign_splits,
    quantile_bins,
    shuffled_ids,
    write_tables,
)

Constant = Literal["mean", "median", "mode", "geometric"]
_SIZES = SplitSizes(50, 18, 16, 16)
"""Half to train on; of the rest a little more for Reward, which is used most."""
_BINS = 10
_MOST_CLASSES = 50


def prepare_own_table(
    out: Path,
    *,
    source: Path,
    sha256: str,
    id_column: str,
    targets: Sequence[str],
    classes: Sequence[str],
    constant: Constant,
    seed: int,
    group: str | None = None,
) -> None:
    """Split `source` and write the three folders below `out`; ids are new, so that the source's order stays hidden.

    `classes`: for probabilities the positive class, or every class, a column of the submission each.
    `group`: a column whose rows of one value stay in one split.
    """
    if hashlib.sha256(source.read_bytes()).hexdigest() != sha256:
        raise SourceError(f"{source} has changed; if that is wanted, put its new sha256 into prepare.py")
    table = read_text_table(source)
    # As text, so that what stands in the source stands in the task: 1 does not become 1.0.
    shown = table[list(targets)]
    answers = _answers(shown, classes=list(classes))
    if len(classes) == 1:
        shown = answers
    strata = _strata(shown[targets[0]])
    if group is None:
        splits = assign_splits(len(table), _SIZES, seed=seed, stratify=strata)
    else:
        splits = assign_grouped_splits(table[group].tolist(), _SIZES, seed=seed, stratify=strata)
    known = answers[splits == TRAIN]
    write_tables(
        out,
        TaskTables(
            features=table.drop(columns=[*targets, id_column], errors="ignore"),
            train_targets=shown,
            answers=answers,
            constant={str(name): _best_constant(known[name], constant) for name in answers},
        ),
        ids=shuffled_ids(len(table), seed=seed),
        splits=splits,
        id_column=id_column,
    )


def _answers(shown: pd.DataFrame, *, classes: list[str]) -> pd.DataFrame:
    if not classes:
        return shown
    target = shown.columns[0]
    if len(classes) == 1:
        return (shown[target] == classes[0]).astype(int).to_frame(target)
    return pd.DataFrame({name: (shown[target] == name).astype(int) for name in classes})


def _strata(values: pd.Series) -> list[int] | list[str]:
    column = numbers_where_possible(values)
    if column.dtype.kind == "f" and column.nunique() > _MOST_CLASSES:
        return quantile_bins(column, bins=_BINS)
    return [str(value) for value in column]


def _best_constant(column: pd.Series, constant: Constant) -> float | int | str:
    if constant == "mode":
        commonest: float | str = column.mode()[0]
        return commonest
    numbers = column.astype(float)
    if constant == "median":
        return float(numbers.median())
    if constant == "geometric":
        return math.expm1(math.fsum(numbers.map(math.log1p)) / len(numbers))
    return math.fsum(numbers) / len(numbers)
