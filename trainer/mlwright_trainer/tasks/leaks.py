"""Finds hidden answers in public files by what the files contain, never by what they are called.

Four ways in which a file can give answers away, each tried on every column of every public file:
joined by id; in the order of the test rows (or any other natural order) without ids; as the same values in another
order, where the values are telling; and as a row with the same features that carries the target.
A column gives answers away if it equals them, or determines them: another name for each class, or a monotone or
linear function of a number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mlwright_trainer.tasks.answers import Answers
from mlwright_trainer.tasks.public_files import PublicFiles, PublicTable, canonical

_FEWEST_ROWS = 10
_AGREEMENT = 0.99
"""Share of rows from which on a column counts as the answers: a few wrong ones do not hide a leak."""
_FEWEST_BITS = 40
_TELLING_VALUES = 20
"""With fewer distinct values, the same values in another order say nothing but how frequent they are."""


@dataclass(frozen=True)
class Leak:
    """One public column that gives answers away."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


@dataclass(frozen=True)
class Secret:
    """Values that must not be public: one text a row, with the rows' ids."""

    name: str
    ids: pd.Series
    values: pd.Series

    @property
    def telling(self) -> bool:
        return self.values.nunique() > 1

    @property
    def bits(self) -> float:
        """Information in the values one after the other; few bits occur anywhere by chance."""
        shares = self.values.value_counts(normalize=True).to_numpy()
        return float(-len(self.values) * (shares * np.log2(shares)).sum())


def find_leaks(files: PublicFiles, answers: Answers, *, sample_ids: list[str]) -> list[Leak]:
    """Every column of a public file that gives the answers of a split away."""
    secrets = [secret for secret in secrets_of(answers) if secret.telling]
    orders = [_orders(secret, sample_ids) for secret in secrets]
    leaks = [Leak(name, "a link that leads out of public/") for name in files.links_out]
    for table in files.tables:
        for secret, order in zip(secrets, orders, strict=True):
            leaks.extend(_by_id(table, secret))
            leaks.extend(_by_order(table, secret, order))
            leaks.extend(_by_values(table, secret))
    return list(dict.fromkeys(leaks))


def secrets_of(answers: Answers) -> list[Secret]:
    """Each target of each split; one 0/1 column a class counts as one target, the class."""
    ids = canonical(answers.table[answers.submission.id_column])
    splits = answers.table["split"]
    secrets = []
    for name, values in targets_of(answers).items():
        for split in splits.unique():
            chosen = (splits == split).to_numpy()
            secrets.append(Secret(f"{name} of {split}", ids[chosen], values[chosen]))
    return secrets


def targets_of(answers: Answers) -> dict[str, pd.Series]:
    """The targets as canonical text; one-hot columns become one column with the class's name."""
    values = answers.values
    numeric = all(pd.api.types.is_numeric_dtype(dtype) for dtype in values.dtypes)
    if values.shape[1] > 1 and numeric:
        matrix = values.to_numpy(dtype=float)
        if np.isin(matrix, (0, 1)).all() and (matrix.sum(axis=1) == 1).all():
            return {"class": pd.Series(values.columns.to_numpy()[matrix.argmax(axis=1)], index=values.index)}
    return {str(name): canonical(values[name]) for name in values}


def determines(column: pd.Series, values: pd.Series) -> bool:
    """Whether `column` gives `values` (same length, canonical text) away: equal, renamed, or a function."""
    if values.nunique() < 2 or column.nunique() < 2:
        return False
    column, values = column.reset_index(drop=True), values.reset_index(drop=True)
    if (column == values).mean() >= _AGREEMENT:
        return True
    if column.nunique() <= min(2 * values.nunique(), len(values) // 5):
        majority = pd.crosstab(column, values).max(axis=1).sum() / len(values)
        commonest = values.value_counts(normalize=True).max()
        # Of the rows that guessing the commonest value gets wrong, 99 % must come out right.
        if majority >= 1 - (1 - _AGREEMENT) * (1 - commonest):
            return True
    return values.nunique() > _TELLING_VALUES and _function(column, values)


def _function(column: pd.Series, values: pd.Series) -> bool:
    """Whether one is a monotone or linear function of the other, as numbers."""
    pair = pd.DataFrame(
        {"x": pd.to_numeric(column, errors="coerce"), "y": pd.to_numeric(values, errors="coerce")}
    )
    pair = pair.dropna()
    if len(pair) < _FEWEST_ROWS or len(pair) < _AGREEMENT * len(values) or pair.nunique().min() < 2:
        return False
    ranks = pair.rank()
    monotone = np.corrcoef(ranks["x"], ranks["y"])[0, 1]
    linear = np.corrcoef(pair["x"], pair["y"])[0, 1]
    return bool(abs(monotone) > 0.9999 or abs(linear) > 0.999999)


def _by_id(table: PublicTable, secret: Secret) -> Iterator[Leak]:
    for key in table.columns:
        ids = table.columns[key]
        known = ids.isin(secret.ids)
        if known.sum() < max(_FEWEST_ROWS, len(secret.ids) // 2) or not ids[known].is_unique:
            continue
        hidden = secret.values.set_axis(secret.ids).reindex(ids[known])
        for name in table.columns:
            if name != key and determines(table.columns[name][known], hidden):
                yield Leak(table.name, f"column {name!r} gives {secret.name} away (joined by {key!r})")


def _orders(secret: Secret, sample_ids: list[str]) -> list[pd.Series]:
    """The values in every order that somebody could have written them in."""
    by_id = secret.values.set_axis(secret.ids)
    sample = canonical(pd.Series(sample_ids))
    in_sample = by_id.reindex(sample[sample.isin(by_id.index)]).dropna()
    orders = [secret.values, in_sample, by_id.sort_index()]
    numbers = pd.to_numeric(pd.Series(by_id.index), errors="coerce")
    if not numbers.isna().any():
        orders.append(by_id.iloc[np.argsort(numbers.to_numpy(), kind="stable")])
    return [each for order in orders for each in (order, order[::-1])]


def _by_order(table: PublicTable, secret: Secret, orders: list[pd.Series]) -> Iterator[Leak]:
    """The column is, or contains, the answers one after the other."""
    if secret.bits < _FEWEST_BITS:
        return
    needles = {"\n" + "\n".join(order) + "\n" for order in orders}
    for name in table.columns:
        column = table.columns[name]
        if len(column) < len(secret.values) or column.nunique() < 2:
            continue
        haystack = "\n" + "\n".join(column) + "\n"
        if any(needle in haystack for needle in needles) or (
            len(column) == len(secret.values) and any(determines(column, order) for order in orders)
        ):
            yield Leak(table.name, f"column {name!r} holds {secret.name}, one row after the other")


def _by_values(table: PublicTable, secret: Secret) -> Iterator[Leak]:
    """The column holds the same values in another order, and they are too many for that to be chance."""
    if secret.values.nunique() < _TELLING_VALUES:
        return
    expected = np.sort(secret.values.to_numpy(dtype=str))
    for name in table.columns:
        column = table.columns[name]
        if len(column) == len(expected) and (np.sort(column.to_numpy(dtype=str)) == expected).all():
            yield Leak(table.name, f"column {name!r} holds {secret.name} in another order")
