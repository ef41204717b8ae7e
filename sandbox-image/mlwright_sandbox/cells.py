"""From the text of cells to numbers and labels, strictly; the first bad cell is named with its line."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mlwright_sandbox.errors import InvalidSubmissionError
from mlwright_sandbox.metrics.columns import Column, Numbers
from mlwright_sandbox.reasons import counted, named, nearest, quoted, shorten

PROBABILITY_TOLERANCE = 1e-6
"""How far a probability may lie outside of [0, 1] (float32 rounding); it is then clipped."""
ROW_SUM_TOLERANCE = 1e-2
"""How far the probabilities of a row may be from summing to one (rounded decimals); they are then normalized."""
UNKNOWN_SHARE = 0.5
"""More labels than this share that no answer has mean another encoding, and are refused."""
_MISSING = frozenset({"", "nan", "na", "n/a", "null", "none", "<na>", "nat"})
_PLAIN_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")


@dataclass(frozen=True)
class Cells:
    """One column of a submission: its name, the text of its cells, and the line that each is on."""

    name: str
    texts: Sequence[str]
    lines: Sequence[int]

    def refuse_first(self, fault: Callable[[str], str | None]) -> None:
        """Raise for the first cell in which `fault` finds something; it returns what the cell is."""
        for line, text in zip(self.lines, self.texts, strict=True):
            found = fault(text)
            if found is not None:
                raise InvalidSubmissionError(f"line {line}: {quoted(self.name)} is {found}")


def numbers(cells: Cells) -> Numbers:
    """Finite numbers in plain decimal notation, blanks around them dropped, read exactly; shape (rows,)."""
    joined = "".join(cells.texts)
    try:
        values = np.array(list(map(float, cells.texts)), dtype=np.float64)
    except ValueError:
        values = np.array([math.nan])
    # float() also takes digits of other scripts and underscores, which no reader of CSV agrees on.
    if not np.isfinite(values).all() or not joined.isascii() or "_" in joined:
        cells.refuse_first(_number_fault)
    return values


def _number_fault(text: str) -> str | None:
    stripped = text.strip()
    if stripped.lower() in _MISSING:
        return "empty" if not stripped else f"{quoted(stripped)}, a missing value"
    try:
        value = float(stripped)
    except ValueError:
        comma = "; write 1234.5 for 1,234.5" if re.fullmatch(r"-?[0-9]+(,[0-9]+)+", stripped) else ""
        return f"{quoted(text)}, not a number{comma}"
    if not stripped.isascii() or "_" in stripped:
        return f"{quoted(text)}, not a plain decimal number"
    if math.isnan(value):
        return f"{quoted(stripped)}, a missing value"
    if math.isinf(value):
        return f"{quoted(shorten(stripped, 20))}, " + ("infinite" if "i" in stripped.lower() else "too large")
    return None


def probabilities(cells: Cells) -> Numbers:
    """Numbers in [0, 1]; those outside by no more than PROBABILITY_TOLERANCE are clipped."""
    values = numbers(cells)
    _refuse_where(
        cells,
        (values < -PROBABILITY_TOLERANCE) | (values > 1 + PROBABILITY_TOLERANCE),
        "not a probability between 0 and 1",
    )
    return np.clip(values, 0.0, 1.0)


def not_negative(cells: Cells, metric: str) -> Numbers:
    """Numbers of at least 0, which some metrics need."""
    values = numbers(cells)
    _refuse_where(cells, values < 0, f"negative, and {metric} is not defined for negative values")
    return values


def _refuse_where(cells: Cells, bad: Column, what: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        text = quoted(cells.texts[row].strip())
        raise InvalidSubmissionError(f"line {cells.lines[row]}: {quoted(cells.name)} is {text}, {what}")


def check_row_sums(columns: Sequence[Numbers], lines: Sequence[int]) -> None:
    """The probabilities of every row must sum to one within ROW_SUM_TOLERANCE."""
    sums = np.sum(columns, axis=0)
    bad = np.abs(sums - 1) > ROW_SUM_TOLERANCE
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidSubmissionError(
            f"line {lines[row]}: the {len(columns)} probabilities sum to {sums[row]:.4g}, not to 1 "
            f"({counted(int(bad.sum()), 'such row', 'such rows')})"
        )


@dataclass(frozen=True)
class Vocabulary:
    """The labels that a task's answers and its sample submission have.

    `numeric`: all are plain numbers; `1` and `1.0` are then the same label, and columns are float64.
    """

    labels: frozenset[str]
    numeric: bool

    @classmethod
    def of(cls, texts: Sequence[str]) -> Vocabulary:
        labels = frozenset(text.strip() for text in texts)
        return cls(labels, all(_PLAIN_NUMBER.fullmatch(label) for label in labels))

    def column(self, texts: Sequence[str]) -> Column:
        """Trusted labels (answers, sample) as a column."""
        if self.numeric:
            return np.array(list(map(float, texts)), dtype=np.float64)
        return np.array([text.strip() for text in texts], dtype=object)

    @property
    def whole(self) -> bool:
        return self.numeric and all(float(label).is_integer() for label in self.labels)

    def shown(self) -> str:
        """The labels, the first few of them, in order."""
        return named(sorted(self.labels, key=float) if self.numeric else sorted(self.labels))


def labels(cells: Cells, vocabulary: Vocabulary) -> Column:
    """Labels, blanks around them dropped: float64 where the vocabulary is numeric, else text.

    A label that no answer has counts as wrong, unless the task has only two labels, or more than
    UNKNOWN_SHARE of the rows have such labels: then the encoding is another one, which is refused.
    """
    if vocabulary.numeric:
        column: Column = _numeric_labels(cells, vocabulary)
        if vocabulary.whole:
            fractional = column != np.rint(column)
            _refuse_where(cells, fractional, f"not a whole number; the labels are {vocabulary.shown()}")
        known = np.isin(column, np.array(list(map(float, vocabulary.labels))))
    else:
        cells.refuse_first(lambda text: _label_fault(text, vocabulary))
        column = np.array([text.strip() for text in cells.texts], dtype=object)
        known = np.array([text in vocabulary.labels for text in column])
    _refuse_unknown(cells, known, vocabulary)
    return column


def _numeric_labels(cells: Cells, vocabulary: Vocabulary) -> Numbers:
    try:
        return numbers(cells)
    except InvalidSubmissionError as error:
        raise InvalidSubmissionError(f"{error}; the labels are {vocabulary.shown()}") from error


def _label_fault(text: str, vocabulary: Vocabulary) -> str | None:
    stripped = text.strip()
    if stripped.lower() not in _MISSING or stripped in vocabulary.labels:
        return None
    return f"{quoted(stripped)}, a missing value" if stripped else "empty"


def _refuse_unknown(cells: Cells, known: Column, vocabulary: Vocabulary) -> None:
    unknown = int(len(known) - known.sum())
    if unknown == 0 or (len(vocabulary.labels) > 2 and unknown <= UNKNOWN_SHARE * len(known)):
        return
    text = cells.texts[int(np.argmin(known))].strip()
    near = nearest(text, sorted(vocabulary.labels)) if not vocabulary.numeric else None
    hint = f"; is {quoted(near)} meant?" if near is not None else ""
    _refuse_where(cells, ~known, f"not one of the labels {vocabulary.shown()}{hint}")


def ratings(cells: Cells, vocabulary: Vocabulary) -> Numbers:
    """Whole numbers from the lowest to the highest rating that the task has."""
    values = numbers(cells)
    known = [float(label) for label in vocabulary.labels]
    low, high = min(known), max(known)
    _refuse_where(cells, values != np.rint(values), "not a whole rating; round it")
    _refuse_where(cells, (values < low) | (values > high), f"outside of the ratings {low:g} to {high:g}")
    return values


def words(cells: Cells) -> Column:
    """Text as it is; an empty cell is an empty answer."""
    return np.array(list(cells.texts), dtype=object)
