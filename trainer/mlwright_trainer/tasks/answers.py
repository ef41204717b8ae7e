"""The hidden answers of a task, as text: what is compared with public files must not depend on parsing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
from mlwright_api.mltask import Split, SubmissionSpec
from mlwright_sandbox.backend import SPLIT_COLUMN

from mlwright_trainer.errors import UserError


class AnswersError(UserError):
    """A CSV file of the task (answers or sample) that does not have the form it must have."""


@dataclass(frozen=True)
class Answers:
    """All answers of a task: a frame of str with the id, the targets and `split`, in file order."""

    table: pd.DataFrame
    submission: SubmissionSpec

    @property
    def ids(self) -> list[str]:
        return list(self.table[self.submission.id_column])

    @property
    def splits(self) -> list[str]:
        return list(self.table[SPLIT_COLUMN])

    @property
    def targets(self) -> pd.DataFrame:
        return self.table[list(self.submission.target_columns)]

    @cached_property
    def values(self) -> pd.DataFrame:
        """The targets with numbers where a whole column is numeric."""
        return self.targets.apply(numbers_where_possible)

    def of(self, *splits: Split) -> Answers:
        """The rows of these splits only."""
        return Answers(
            self.table[self.table[SPLIT_COLUMN].isin(splits)].reset_index(drop=True), self.submission
        )

    def counts(self) -> dict[str, int]:
        """Rows of each split."""
        return {str(name): int(n) for name, n in self.table[SPLIT_COLUMN].value_counts().items()}

    def submission_csv(self, *, order: np.ndarray | None = None) -> bytes:
        """The answers themselves as a submission, the rows in `order`."""
        columns = [self.submission.id_column, *self.submission.target_columns]
        table = self.table[columns] if order is None else self.table[columns].iloc[order]
        return table.to_csv(index=False, lineterminator="\n").encode()


def numbers_where_possible(column: pd.Series) -> pd.Series:
    """The column as float64 if every value is a number, else as it is."""
    numeric = pd.to_numeric(column, errors="coerce")
    return column if numeric.isna().any() else numeric.astype("float64")


def read_answers(paths: Sequence[Path], *, submission: SubmissionSpec) -> Answers:
    """Read answers files; private ones name Reward and Selection, sealed ones Final. Raises AnswersError."""
    tables = []
    for path in paths:
        table = read_text_table(path)
        needed = [submission.id_column, *submission.target_columns, SPLIT_COLUMN]
        _require_columns(table, needed, path)
        allowed = {Split.FINAL} if path.parent.name == "sealed" else {Split.REWARD, Split.SELECTION}
        unknown = set(table[SPLIT_COLUMN]) - set(allowed)
        if unknown:
            names = ", ".join(sorted(allowed))
            raise AnswersError(f"{path}: column {SPLIT_COLUMN}: {min(unknown)!r} (allowed here: {names})")
        tables.append(table[needed])
    return Answers(pd.concat(tables, ignore_index=True), submission)


def read_ids(path: Path, id_column: str) -> list[str]:
    """The ids of a CSV file, in file order."""
    table = read_text_table(path)
    _require_columns(table, [id_column], path)
    return list(table[id_column])


def read_text_table(path: Path) -> pd.DataFrame:
    """A CSV file with every value as the text that stands there. Raises AnswersError."""
    try:
        return pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise AnswersError(f"{path}: not a CSV file in UTF-8: {error}") from error


def _require_columns(table: pd.DataFrame, needed: Sequence[str], path: Path) -> None:
    missing = [column for column in needed if column not in table.columns]
    if missing:
        raise AnswersError(
            f"{path}: no column {missing[0]!r} (there are: {', '.join(map(str, table.columns[:8]))})"
        )
