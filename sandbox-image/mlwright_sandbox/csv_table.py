"""Reads CSV as data only: strict, in UTF-8, every cell text; says what is wrong and where."""

from __future__ import annotations

import codecs
import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mlwright_sandbox.errors import InvalidSubmissionError
from mlwright_sandbox.reasons import amount, counted, named, nearest, quoted

_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs", "|": "bars"}
_MAGIC = {
    codecs.BOM_UTF32_LE: "UTF-32 text",
    codecs.BOM_UTF32_BE: "UTF-32 text",
    codecs.BOM_UTF16_LE: "UTF-16 text",
    codecs.BOM_UTF16_BE: "UTF-16 text",
    b"\x1f\x8b": "gzip-compressed",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"BZh": "bzip2-compressed",
    b"\xfd7zXZ": "xz-compressed",
    b"PAR1": "a Parquet file",
    b"\x93NUMPY": "a NumPy file",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
}
_FIELD_BYTES = 1 << 20
_EXTRA_COLUMNS_READ = 1000
_ROWS_READ_TIMES, _ROWS_READ_MORE = 4, 10_000
"""Floods are cut off well beyond what an honest mistake (training rows, several predictions a row) amounts to."""


@dataclass(frozen=True)
class Table:
    """A CSV file's cells: `columns[name]` has one text a row; `lines` says on which line each row ends."""

    columns: dict[str, Sequence[str]]
    lines: Sequence[int]

    @property
    def rows(self) -> int:
        return len(self.lines)


def parse_table(
    content: bytes, wanted: Sequence[str], *, others: bool = False, rows_expected: int | None = None
) -> Table:
    """The columns `wanted` of a CSV file, in any order; there must be no others, unless `others` allows them.

    Where `rows_expected` is given, far more rows are refused without being read.

    Blank lines are skipped and blanks around column names dropped, as pandas users expect; a byte-order mark
    and any line ends are accepted. Errors: InvalidSubmissionError, one line without the file's name.
    """
    if not content.strip():
        raise InvalidSubmissionError("is empty")
    reader = _rows(_decode(content))
    header = next(reader, None)
    if header is None:
        raise InvalidSubmissionError("is empty")
    if len(header[1]) > len(wanted) + _EXTRA_COLUMNS_READ:
        raise InvalidSubmissionError(f"has {len(header[1]):,} columns where {len(wanted)} are expected")
    names = [name.strip() for name in header[1]]
    _check_header(names, wanted, others=others)
    most = None if rows_expected is None else _ROWS_READ_TIMES * rows_expected + _ROWS_READ_MORE
    lines, rows = _same_width(islice(reader, most), len(names))
    if most is not None and len(rows) == most:
        raise InvalidSubmissionError(f"has {most:,} rows or more where {rows_expected:,} are expected")
    if not rows:
        raise InvalidSubmissionError("has a header and no rows")
    return Table(dict(zip(names, zip(*rows, strict=True), strict=True)), lines)


def _decode(content: bytes) -> str:
    for magic, meaning in _MAGIC.items():
        if content.startswith(magic):
            raise InvalidSubmissionError(f"is {meaning} (byte 0); write plain CSV text in UTF-8")
    nul = content.find(b"\0")
    if nul >= 0:
        raise InvalidSubmissionError(f"has a NUL byte at byte {nul}; write plain CSV text in UTF-8")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The codec counts after the mark that it skipped.
        skipped = len(codecs.BOM_UTF8) if content.startswith(codecs.BOM_UTF8) else 0
        where = skipped + error.start
        raise InvalidSubmissionError(
            f"is not UTF-8: byte {where} is 0x{content[where]:02x}; write it with encoding='utf-8'"
        ) from error


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line on which it ends."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    csv.field_size_limit(_FIELD_BYTES)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InvalidSubmissionError(f"line {reader.line_num}: {_csv_fault(str(error))}") from error


def _csv_fault(message: str) -> str:
    if "field larger" in message:
        return f"a field has more than {amount(_FIELD_BYTES)}"
    if "unexpected end" in message:
        return "a quoted field never ends"
    if "expected after" in message:
        return "a closing quote is not followed by a comma or the end of the line"
    return f"not CSV ({message})"


def _same_width(rows: Iterable[tuple[int, list[str]]], width: int) -> tuple[list[int], list[list[str]]]:
    lines: list[int] = []
    kept: list[list[str]] = []
    for line, row in rows:
        if len(row) != width:
            raise InvalidSubmissionError(
                f"line {line} has {counted(len(row), 'field', 'fields')}, the header has {width}"
            )
        lines.append(line)
        kept.append(row)
    return lines, kept


def _check_header(names: Sequence[str], wanted: Sequence[str], *, others: bool) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InvalidSubmissionError(f"has the column {quoted(repeated[0])} more than once")
    missing = [name for name in wanted if name not in names]
    known = set(wanted)
    extra = [name for name in names if name not in known]
    if missing:
        raise InvalidSubmissionError(_missing_columns(names, missing, extra, wanted))
    if extra and not others:
        raise InvalidSubmissionError(_extra_columns(extra, wanted))


def _missing_columns(
    names: Sequence[str], missing: Sequence[str], extra: Sequence[str], wanted: Sequence[str]
) -> str:
    for delimiter, word in _OTHER_DELIMITERS.items():
        if len(names) == 1 and delimiter in names[0]:
            return f"has its columns separated by {word}; write commas (sep=',')"
    if len(names) == len(wanted) and all(_is_number(name) for name in names):
        return f"has no header; the first line must be {quoted(','.join(wanted))}"
    near = nearest(missing[0], extra)
    hint = f"; is {quoted(near)} meant?" if near is not None else f"; its columns are {named(names)}"
    return f"has no column{'s' * (len(missing) > 1)} {named(missing)}{hint}"


def _extra_columns(extra: Sequence[str], wanted: Sequence[str]) -> str:
    if len(extra) == 1 and (extra[0] in ("", "index", "level_0") or extra[0].startswith("Unnamed:")):
        return f"has the extra column {quoted(extra[0])}, the data frame's index; write it with index=False"
    many = "s" * (len(extra) > 1)
    return f"has the extra column{many} {named(extra)}; write only {named(wanted)} (and index=False)"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
