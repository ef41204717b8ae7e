"""Taking a ledger elsewhere: a consistent copy while it is written to, or JSON lines for other tools."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger.reader import LedgerReader, open_read_only

TABLES = ("run", "rollouts", "windows", "batches", "updates", "phases", "sessions", "sealed")


def export_sqlite(ledger: Path, target: Path) -> None:
    """Copy a ledger, consistent even beside a running writer.

    Raises UserError if the target exists or cannot be written; nothing half-written stays behind.
    """
    if target.exists():
        raise UserError(f"{target}: exists already; name a file that does not")
    unfinished = target.with_name(f".{target.name}.unfinished")
    with LedgerReader(ledger), closing(open_read_only(ledger)) as source:
        try:
            unfinished.unlink(missing_ok=True)
            source.execute("VACUUM INTO ?", (str(unfinished),))
            unfinished.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise UserError(f"{target}: cannot be written ({error})") from error
        finally:
            if target.parent.is_dir():
                unfinished.unlink(missing_ok=True)


def export_lines(ledger: Path) -> Iterator[str]:
    """Every row as one line of JSON `{"table": ..., ...columns}`; blobs are base64.

    All lines are of one moment, however long they take to be read.
    """
    with LedgerReader(ledger), closing(open_read_only(ledger)) as source:
        source.row_factory = sqlite3.Row
        source.execute("BEGIN")
        for table in TABLES:
            for row in source.execute(f"SELECT * FROM {table}"):
                yield json.dumps({"table": table, **{name: _plain(row[name]) for name in row.keys()}})  # noqa: SIM118


def _plain(value: Any) -> Any:
    return base64.b64encode(value).decode("ascii") if isinstance(value, bytes) else value
