"""Test rows that are public with their answer: rows of another public table with the same features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mlwright_trainer.tasks.answers import Answers
from mlwright_trainer.tasks.leaks import targets_of
from mlwright_trainer.tasks.public_files import PublicFiles, PublicTable, canonical


@dataclass(frozen=True)
class Duplicates:
    """How many of the test rows are in `file`, too, and how many of them with a value that is the answer."""

    file: str
    rows: int
    answered: int
    test_rows: int

    @property
    def share(self) -> float:
        """Share of the test rows whose answer can be looked up."""
        return self.answered / self.test_rows


def find_duplicates(files: PublicFiles, answers: Answers) -> list[Duplicates]:
    """Tables and arrays that repeat test rows; features are the columns of the table that has the test ids."""
    id_column = answers.submission.id_column
    test = _test_table(files, answers)
    found = []
    if test is not None and test.columns.shape[1] > 1:
        features = [str(name) for name in test.columns if name != id_column]
        others = [table for table in files.tables if table is not test and set(features) < set(table.columns)]
        found += [_repeated(test, other, features=features, answers=answers) for other in others]
    return [each for each in (*found, *_repeated_arrays(files)) if each.rows]


def _test_table(files: PublicFiles, answers: Answers) -> PublicTable | None:
    """The widest table that has exactly the ids of the answers (the sample submission has them, too)."""
    id_column = answers.submission.id_column
    ids = set(canonical(answers.table[id_column]))
    tables = [
        table
        for table in files.tables
        if id_column in table.columns
        and not set(answers.submission.target_columns) & set(table.columns.columns)
        and ids <= set(table.columns[id_column])
    ]
    return max(tables, key=lambda table: table.columns.shape[1], default=None)


def _repeated(test: PublicTable, other: PublicTable, *, features: list[str], answers: Answers) -> Duplicates:
    id_column = answers.submission.id_column
    ids = canonical(answers.table[id_column])
    hidden = pd.DataFrame(targets_of(answers)).set_axis(ids)
    extra = [name for name in other.columns if name not in features and name != id_column]
    keyed = other.columns.drop_duplicates(features)
    merged = test.columns.merge(keyed, on=features, how="inner", suffixes=("", "_other"))
    expected = hidden.reindex(merged[id_column])
    right = np.zeros(len(merged), dtype=bool)
    for name in extra:
        for target in hidden:
            right |= merged[name].to_numpy() == expected[target].to_numpy()
    return Duplicates(other.name, len(merged), int(right.sum()), len(ids))


def _repeated_arrays(files: PublicFiles) -> Iterator[Duplicates]:
    """Arrays of wide rows (images, spectra) that share rows; whether with the answer cannot be seen."""
    arrays = [(table.name, table.array) for table in files.tables if table.array is not None]
    wide = [(name, array) for name, array in arrays if array.ndim > 1 and array[0].size >= 8]
    for index, (name, array) in enumerate(wide):
        rows = {row.tobytes() for row in array}
        for other, others in wide[index + 1 :]:
            if array.shape[1:] == others.shape[1:] and array.dtype == others.dtype:
                common = sum(row.tobytes() in rows for row in others)
                yield Duplicates(f"{name} and {other}", common, 0, len(others))
