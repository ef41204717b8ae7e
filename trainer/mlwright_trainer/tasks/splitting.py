"""What an author of prepare.py needs: splits, ids and the files of a task, the same on every machine.

Rows are ordered by a hash of (seed, purpose, row number) and not by a random generator, so that a task's
data is byte for byte the same with every version of numpy, pandas and scikit-learn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from mlwright_sandbox.backend import SPLIT_COLUMN

TRAIN = "Train"
REWARD = "Reward"
SELECTION = "Selection"
FINAL = "Final"


@dataclass(frozen=True)
class SplitSizes:
    """Rows (or, with groups, roughly rows) of each split; only their proportions matter."""

    train: int
    reward: int
    selection: int
    final: int

    def __post_init__(self) -> None:
        if min(self.train, self.reward, self.selection, self.final) < 1:
            raise ValueError("every split needs at least one row")

    @property
    def named(self) -> tuple[tuple[str, int], ...]:
        return (
            (TRAIN, self.train),
            (REWARD, self.reward),
            (SELECTION, self.selection),
            (FINAL, self.final),
        )


def hashed_order(count: int, *, seed: int, purpose: str) -> np.ndarray:
    """A permutation of range(count), int64 of shape (count,), that depends on nothing but its arguments."""
    keys = [
        hashlib.blake2b(f"{seed}/{purpose}/{row}".encode(), digest_size=8).digest() for row in range(count)
    ]
    return np.array(sorted(range(count), key=keys.__getitem__), dtype=np.int64)


def shuffled_ids(count: int, *, seed: int) -> np.ndarray:
    """Ids 1..count in an order that says nothing about the source's order, int64 of shape (count,)."""
    ids = np.empty(count, dtype=np.int64)
    ids[hashed_order(count, seed=seed, purpose="ids")] = np.arange(1, count + 1)
    return ids


def assign_splits(
    count: int, sizes: SplitSizes, *, seed: int, stratify: Sequence[Hashable] | None = None
) -> np.ndarray:
    """The split of each row, str of shape (count,): Train, Reward, Selection or Final, stratified where
    asked.

    Within each stratum (a class, or a bin of a numeric target) rows are spread in proportion to `sizes`; what
    rounding leaves over is carried from stratum to stratum, so that totals are right to within one row a
    split.
    """
    strata: dict[Hashable, list[int]] = {}
    for row in hashed_order(count, seed=seed, purpose="splits"):
        strata.setdefault(stratify[row] if stratify is not None else None, []).append(int(row))
    ordered = [row for key in sorted(strata, key=str) for row in strata[key]]
    names = _interleaved(len(ordered), sizes)
    splits = np.empty(count, dtype=object)
    splits[ordered] = names
    return splits


def assign_grouped_splits(
    groups: Sequence[Hashable],
    sizes: SplitSizes,
    *,
    seed: int,
    stratify: Sequence[Hashable] | None = None,
) -> np.ndarray:
    """As `assign_splits`, where the rows of one group (patient, store, product) must stay together.

    Groups are dealt to the split that is furthest behind; a group's stratum is that of its first row.
    """
    first_row: dict[Hashable, int] = {}
    rows_of: dict[Hashable, int] = {}
    for row, group in enumerate(groups):
        first_row.setdefault(group, row)
        rows_of[group] = rows_of.get(group, 0) + 1
    named_groups = sorted(first_row, key=str)
    shuffled = [named_groups[row] for row in hashed_order(len(first_row), seed=seed, purpose="groups")]
    if stratify is not None:
        shuffled.sort(key=lambda group: str(stratify[first_row[group]]))
    split_of: dict[Hashable, str] = {}
    given = dict.fromkeys(dict(sizes.named), 0)
    for group in shuffled:
        split_of[group] = min(sizes.named, key=lambda named: given[named[0]] / named[1])[0]
        given[split_of[group]] += rows_of[group]
    return np.array([split_of[group] for group in groups], dtype=object)


def quantile_bins(values: Sequence[float] | pd.Series, bins: int) -> list[int]:
    """Numbers as strata: the index of each value's quantile bin, 0..bins-1."""
    ranks = pd.Series(list(values)).rank(method="first").to_numpy() - 1
    return [int(bin_) for bin_ in ranks * bins // len(ranks)]


def _interleaved(count: int, sizes: SplitSizes) -> list[str]:
    """`count` split names in proportion to `sizes`, spread evenly: any run of them has the right mix."""
    total = sum(size for _, size in sizes.named)
    given = dict.fromkeys(dict(sizes.named), 0)
    names = []
    for position in range(1, count + 1):
        name = max(sizes.named, key=lambda named: named[1] * position / total - given[named[0]])[0]
        given[name] += 1
        names.append(name)
    return names


@dataclass(frozen=True)
class TaskTables:
    """The rows of a task, all with the same index.

    `train_targets` is what train.csv shows beside the features, `answers` what is hidden: often the same
    columns; for class probabilities the former is a label and the latter one 0/1 column a class.
    `constant` is the constant predictor, a value for each column of `answers`: the sample submission.
    """

    features: pd.DataFrame
    train_targets: pd.DataFrame
    answers: pd.DataFrame
    constant: Mapping[str, float | int | str]


def write_tables(
    out: Path, tables: TaskTables, *, ids: np.ndarray, splits: np.ndarray, id_column: str = "id"
) -> None:
    """Write public/{train,test,sample_submission}.csv, private/answers.csv and sealed/answers.csv below
    `out`.

    Every file is sorted by id, so that the order of rows tells nothing about splits or answers.
    """
    if len(set(ids)) != len(tables.features) or len(splits) != len(tables.features):
        raise ValueError("one distinct id and one split for each row are needed")
    identified = [
        _with_ids(frame, ids, id_column) for frame in (tables.features, tables.train_targets, tables.answers)
    ]
    features, train_targets, answers = identified
    labelled = answers.assign(**{SPLIT_COLUMN: splits[np.argsort(ids)]})
    train = (labelled[SPLIT_COLUMN] == TRAIN).to_numpy()
    final = (labelled[SPLIT_COLUMN] == FINAL).to_numpy()
    sample = features.loc[~train, [id_column]].assign(**dict(tables.constant))
    write_csv(features[train].merge(train_targets, on=id_column), out / "public" / "train.csv")
    write_csv(features[~train], out / "public" / "test.csv")
    write_csv(sample, out / "public" / "sample_submission.csv")
    write_csv(labelled[~train & ~final], out / "private" / "answers.csv")
    write_csv(labelled[final], out / "sealed" / "answers.csv")


def _with_ids(frame: pd.DataFrame, ids: np.ndarray, id_column: str) -> pd.DataFrame:
    identified = frame.reset_index(drop=True)
    identified.insert(0, id_column, ids)
    return identified.sort_values(id_column, ignore_index=True)


def write_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a CSV file as every task has it: UTF-8, LF, no index, floats that read back the same."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False, lineterminator="\n", encoding="utf-8")
