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
from functools import cached_property

import numpy as np
import pandas as pd
from mlwright_api.mltask import Split
from scipy.stats import rankdata

from mlwright_trainer.tasks.answers import Answers
from mlwright_trainer.tasks.public_files import PublicFiles, canonical

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
    joint: bool = False
    """Whether they are of several splits, each of which is a secret of its own, too."""

    @cached_property
    def distinct(self) -> int:
        return int(self.values.nunique())

    @property
    def bits(self) -> float:
        """Information in the values one after the other; few bits occur anywhere by chance."""
        shares = self.values.value_counts(normalize=True).to_numpy()
        return float(-len(self.values) * (shares * np.log2(shares)).sum())


def find_leaks(files: PublicFiles, answers: Answers, *, sample_ids: list[str]) -> list[Leak]:
    """Every column of a public file that gives the answers of a split away."""
    secrets = [secret for secret in secrets_of(answers) if secret.distinct > 1]
    orders = [_orders(secret, sample_ids) for secret in secrets]
    leaks = [Leak(name, "a link that leads out of public/") for name in files.links_out]
    for table in files.tables:
        columns = [_Column(str(name), table.columns[name]) for name in table.columns]
        varied = [column for column in columns if column.distinct > 1]
        for secret, order in zip(secrets, orders, strict=True):
            leaks.extend(Leak(table.name, what) for what in _by_id(varied, secret))
            leaks.extend(Leak(table.name, what) for what in _by_order(varied, secret, order))
            leaks.extend(Leak(table.name, what) for what in _by_values(varied, secret))
    return list(dict.fromkeys(leaks))


@dataclass(frozen=True)
class _Column:
    """A public column, and what is asked of it again and again."""

    name: str
    values: pd.Series

    @cached_property
    def distinct(self) -> int:
        return int(self.values.nunique())

    @cached_property
    def lines(self) -> str:
        """All values, each on a line, to be searched in."""
        return _lines(self.values)

    @cached_property
    def ordered(self) -> np.ndarray:
        return np.sort(self.values.to_numpy(dtype=str))


def _lines(values: pd.Series) -> str:
    return "\n" + "\n".join(values) + "\n"


def secrets_of(answers: Answers) -> list[Secret]:
    """Each target of each split, and of the splits together, as they may lie in a column without ids."""
    ids = canonical(answers.table[answers.submission.id_column])
    splits = answers.table["split"]
    parts = {split: (splits == split).to_numpy() for split in splits.unique()}
    parts["Reward and Selection"] = (splits != Split.FINAL).to_numpy()
    parts["all hidden rows"] = np.ones(len(splits), dtype=bool)
    return [
        Secret(f"{name} of {part}", ids[chosen], values[chosen], joint=" " in part)
        for name, values in targets_of(answers).items()
        for part, chosen in parts.items()
    ]


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
    (column_codes, column_names), (codes, names) = pd.factorize(column), pd.factorize(values)
    if len(names) < 2 or len(column_names) < 2:
        return False
    if (column.to_numpy() == values.to_numpy()).mean() >= _AGREEMENT:
        return True
    if len(column_names) <= min(2 * len(names), len(values) // 5):
        pairs = np.bincount(column_codes * len(names) + codes, minlength=len(column_names) * len(names))
        known = pairs.reshape(len(column_names), len(names)).max(axis=1).sum() / len(values)
        guessed = np.bincount(codes).max() / len(values)
        # Of the rows that guessing the commonest value gets wrong, 99 % must come out right.
        if known >= 1 - (1 - _AGREEMENT) * (1 - guessed):
            return True
    return len(names) > _TELLING_VALUES and _function(column, values)


def _function(column: pd.Series, values: pd.Series) -> bool:
    """Whether one is a monotone or linear function of the other, as numbers."""
    x, y = _numbers(column), _numbers(values)
    both = np.isfinite(x) & np.isfinite(y)
    if both.sum() < max(_FEWEST_ROWS, _AGREEMENT * len(values)):
        return False
    x, y = x[both], y[both]
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return False
    monotone = np.corrcoef(rankdata(x), rankdata(y))[0, 1]
    return bool(abs(monotone) > 0.9999 or abs(np.corrcoef(x, y)[0, 1]) > 0.999999)


def _numbers(values: pd.Series) -> np.ndarray:
    try:
        return np.array(values, dtype=float)
    except ValueError:
        return pd.to_numeric(values, errors="coerce").to_numpy(dtype=float)


def _by_id(columns: list[_Column], secret: Secret) -> Iterator[str]:
    """Columns that give the secret away when they are joined to it by another column, the ids."""
    fewest = max(_FEWEST_ROWS, len(secret.ids) // 2)
    if secret.joint:
        return
    for key in columns:
        known = key.values.isin(secret.ids) if key.distinct >= fewest else pd.Series(dtype=bool)
        if known.sum() < fewest or not key.values[known].is_unique:
            continue
        hidden = secret.values.set_axis(secret.ids).reindex(key.values[known])
        for column in columns:
            if column is not key and determines(column.values[known], hidden):
                yield f"column {column.name!r} gives {secret.name} away (joined by {key.name!r})"


def _orders(secret: Secret, sample_ids: list[str]) -> list[pd.Series]:
    """The values in every order that somebody could have written them in, each once."""
    by_id = secret.values.set_axis(secret.ids)
    sample = canonical(pd.Series(sample_ids))
    orders = [secret.values, by_id.reindex(sample[sample.isin(by_id.index)]).dropna(), by_id.sort_index()]
    numbers = pd.to_numeric(pd.Series(by_id.index), errors="coerce")
    if not numbers.isna().any():
        orders.append(by_id.iloc[np.argsort(numbers.to_numpy(), kind="stable")])
    both_ways = [each for order in orders for each in (order, order[::-1])]
    return list({_lines(order): order for order in both_ways}.values())


def _by_order(columns: list[_Column], secret: Secret, orders: list[pd.Series]) -> Iterator[str]:
    """Columns that are, or contain, the answers one after the other."""
    if secret.bits < _FEWEST_BITS:
        return
    needles = [_lines(order) for order in orders]
    for column in columns:
        if len(column.values) < len(secret.values):
            continue
        as_long = len(column.values) == len(secret.values) and _comparable(column, secret)
        if any(needle in column.lines for needle in needles) or (
            as_long and any(determines(column.values, order) for order in orders)
        ):
            yield f"column {column.name!r} holds {secret.name}, one row after the other"


def _comparable(column: _Column, secret: Secret) -> bool:
    """Whether `determines` could be true: cheap, and false for most columns of images."""
    return secret.distinct > _TELLING_VALUES or column.distinct <= 2 * secret.distinct


def _by_values(columns: list[_Column], secret: Secret) -> Iterator[str]:
    """Columns with the same values in another order, where these are too many for that to be chance."""
    if secret.distinct < _TELLING_VALUES:
        return
    expected = np.sort(secret.values.to_numpy(dtype=str))
    for column in columns:
        if len(column.values) == len(expected) and (column.ordered == expected).all():
            yield f"column {column.name!r} holds {secret.name} in another order"
