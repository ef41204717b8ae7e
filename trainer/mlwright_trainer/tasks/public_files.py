"""Everything that a task shows to scripts, read as columns of text, whatever the files are called."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

_LARGEST_BYTES = 1 << 30
_LARGEST_WORDS_BYTES = 16 << 20
_WIDEST_COLUMNS = 4096
_TOKEN = re.compile(r"[^\s,;:|\[\]{}\"'()]+")


@dataclass(frozen=True)
class PublicTable:
    """One file, or one array of a file: columns of canonical text (see `canonical`), rows in file order."""

    name: str
    columns: pd.DataFrame
    array: np.ndarray | None = None
    """The array as it is, of shape (rows, ...), where the file holds one."""


@dataclass(frozen=True)
class PublicFiles:
    """All tables, the files that could not be looked into, and links that lead out of the folder."""

    tables: tuple[PublicTable, ...]
    unread: tuple[str, ...]
    links_out: tuple[str, ...]


def read_public(public: Path) -> PublicFiles:
    """Read every file below `public`. Pickles are never loaded."""
    tables: list[PublicTable] = []
    unread, links_out = [], []
    for path in sorted(public.rglob("*")):
        name = path.relative_to(public).as_posix()
        if path.is_symlink() and not path.resolve().is_relative_to(public.resolve()):
            links_out.append(name)
        elif path.is_file():
            found = _read(path, name)
            tables.extend(found)
            if not found:
                unread.append(name)
    return PublicFiles(tuple(tables), tuple(unread), tuple(links_out))


def canonical(column: pd.Series) -> pd.Series:
    """Values as text in which 1, 1.0 and 1.00 are the same where the whole column is numeric."""
    if not pd.api.types.is_numeric_dtype(column):
        text = column.astype(str).str.strip()
        numbers = pd.to_numeric(text, errors="coerce")
        if numbers.isna().any():
            return text.astype(object)
        column = numbers
    codes, distinct = pd.factorize(column.to_numpy(dtype="float64"), use_na_sentinel=False)
    texts = np.array([repr(float(value)) for value in distinct], dtype=object)
    return pd.Series(texts[codes] if len(texts) else [], index=column.index, dtype=object)


def _read(path: Path, name: str) -> list[PublicTable]:
    """The tables of one file; empty where it cannot be read as any."""
    if path.stat().st_size > _LARGEST_BYTES:
        return []
    try:
        return list(_tables(path, name))
    except (ValueError, OSError, EOFError, pd.errors.ParserError):
        return []


def _tables(path: Path, name: str) -> Iterator[PublicTable]:
    if path.suffix == ".npy":
        yield _array_table(name, np.load(path, allow_pickle=False))
    elif path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            for key in arrays.files:
                yield _array_table(f"{name}[{key}]", arrays[key])
    elif path.suffix == ".json":
        content = json.loads(path.read_text("utf-8"))
        yield from _json_tables(content, name)
        yield _token_table(name, json.dumps(content))
    else:
        yield from _text_tables(path, name)


def _array_table(name: str, array: np.ndarray) -> PublicTable:
    if array.ndim == 0:
        raise ValueError("no rows")
    flat = array.reshape(len(array), -1)
    if flat.shape[1] > _WIDEST_COLUMNS:
        # Too wide for answers, which are few columns; still compared as rows.
        flat = flat[:, :0]
    columns = {str(index): canonical(pd.Series(flat[:, index])) for index in range(flat.shape[1])}
    return PublicTable(name, pd.DataFrame(columns, index=range(len(array))), array)


def _json_tables(content: object, name: str) -> Iterator[PublicTable]:
    """A list of records, an object of lists, or an object from keys to values."""
    if isinstance(content, list) and content and all(isinstance(row, dict) for row in content):
        yield _canonical_table(name, pd.DataFrame(content))
    elif isinstance(content, dict) and content and all(isinstance(value, list) for value in content.values()):
        yield _canonical_table(name, pd.DataFrame({key: pd.Series(value) for key, value in content.items()}))
    elif isinstance(content, dict) and content:
        yield _canonical_table(name, pd.DataFrame({"key": list(content), "value": list(content.values())}))


def _text_tables(path: Path, name: str) -> Iterator[PublicTable]:
    """As CSV with whatever separates the columns, with and without a header, and as words one after the other."""
    for separator in (",", ";", "\t", "|"):
        table = _separated(path, separator)
        if table is not None and table.shape[1] > 1:
            yield from _headed_and_not(table, name)
            break
    else:
        lines = path.read_text("utf-8-sig").splitlines()
        yield from _headed_and_not(pd.DataFrame({"lines": pd.Series(lines, dtype=object)}), name)
    if path.stat().st_size <= _LARGEST_WORDS_BYTES:
        yield from _word_table(path, name)


def _separated(path: Path, separator: str) -> pd.DataFrame | None:
    try:
        return pd.read_csv(
            path, sep=separator, dtype=str, keep_default_na=False, header=None, encoding="utf-8-sig"
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError):
        return None


def _headed_and_not(table: pd.DataFrame, name: str) -> Iterator[PublicTable]:
    if len(table):
        headed = table[1:].reset_index(drop=True).set_axis(_distinct(table.iloc[0]), axis=1)
        yield _canonical_table(name, headed)
    yield _canonical_table(name, table)


def _word_table(path: Path, name: str) -> Iterator[PublicTable]:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:  # compressed; read as a table above
        return
    yield _token_table(name, text)


def _token_table(name: str, text: str) -> PublicTable:
    words = pd.Series(_TOKEN.findall(text), dtype=object)
    numbers = pd.to_numeric(words, errors="coerce")
    return PublicTable(name, pd.DataFrame({"words": words.where(numbers.isna(), canonical(numbers))}))


def _canonical_table(name: str, table: pd.DataFrame) -> PublicTable:
    return PublicTable(name, table.set_axis([str(name) for name in table.columns], axis=1).apply(canonical))


def _distinct(names: pd.Series) -> list[str]:
    """Column names, those that repeat numbered."""
    seen: dict[str, int] = {}
    result = []
    for name in map(str, names):
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}.{seen[name]}")
    return result
