"""Which rows a submission must have, and which of its rows is which."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlwright_sandbox.csv_table import Table
from mlwright_sandbox.errors import InvalidSubmissionError
from mlwright_sandbox.reasons import counted, named, quoted

_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_WHOLE_AS_FLOAT = re.compile(r"(-?(?:0|[1-9][0-9]*))\.0*")


@dataclass(frozen=True)
class Identifiers:
    """The ids of the sample submission, in its order; `whole`: all are whole numbers in plain digits."""

    ids: tuple[str, ...]
    positions: Mapping[str, int]
    whole: bool

    @classmethod
    def of(cls, ids: Sequence[str]) -> Identifiers:
        """From the column of a trusted table; repeated ids are the caller's error to raise."""
        positions = {value: place for place, value in enumerate(ids)}
        return cls(tuple(ids), positions, all(_WHOLE.fullmatch(value) for value in ids))

    def plain(self, value: str) -> str:
        """An id without what pandas adds: surrounding blanks, and the `.0` of a whole number read as float."""
        if value in self.positions:
            return value
        stripped = value.strip()
        as_float = _WHOLE_AS_FLOAT.fullmatch(stripped) if self.whole else None
        return as_float[1] if as_float else stripped


def order_rows(table: Table, id_column: str, expected: Identifiers) -> list[int]:
    """For every expected id the row of `table` that has it.

    Errors: InvalidSubmissionError where ids are missing, unknown or repeated, with the first few.
    """
    given = table.columns[id_column]
    rows = {value: row for row, value in enumerate(given)}
    if rows.keys() != expected.positions.keys():
        given = [expected.plain(value) for value in given]
        rows = {value: row for row, value in enumerate(given)}
    if len(given) != len(expected.ids) or rows.keys() != expected.positions.keys():
        raise InvalidSubmissionError(_fault(given, table.lines, id_column, expected))
    return [rows[value] for value in expected.ids]


def _fault(given: Sequence[str], lines: Sequence[int], id_column: str, expected: Identifiers) -> str:
    present = set(given)
    known = present & expected.positions.keys()
    if not known:
        return (
            f"has none of the {len(expected.ids):,} ids that are expected: {quoted(id_column)} must be copied from "
            f"sample_submission.csv ({named(expected.ids)}), not {named(given)}"
        )
    problems = [
        _count([value for value in expected.ids if value not in present], "missing"),
        _count([value for value in dict.fromkeys(given) if value not in known], "unknown"),
        _repeated(given, lines),
    ]
    found = "; ".join(problem for problem in problems if problem)
    if len(given) == len(expected.ids):
        return found
    return f"has {counted(len(given), 'row', 'rows')} where {len(expected.ids):,} are expected: {found}"


def _count(values: Sequence[str], what: str) -> str:
    return f"{counted(len(values), 'id is', 'ids are')} {what} ({named(values)})" if values else ""


def _repeated(given: Sequence[str], lines: Sequence[int]) -> str:
    repeated = [value for value, count in Counter(given).items() if count > 1]
    if not repeated:
        return ""
    where = [line for value, line in zip(given, lines, strict=True) if value == repeated[0]]
    first = f"{quoted(repeated[0])} on lines {where[0]} and {where[1]}"
    more = f" and {len(repeated) - 1:,} more" if len(repeated) > 1 else ""
    return f"{counted(len(repeated), 'id is', 'ids are')} repeated ({first}{more})"
