"""Taking a ledger elsewhere: whole, consistent beside a writer, and never half."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import Ledger, LedgerReader
from mlwright_trainer.ledger.export import TABLES, export_lines, export_sqlite


def test_a_copy_holds_what_was_committed_and_is_a_ledger(
    ledger: Ledger, path: Path, make_sample: Any
) -> None:
    ledger.commit_round([make_sample(0)])
    target = path.with_name("copy.sqlite")
    export_sqlite(path, target)
    ledger.commit_round([make_sample(1, round=1)])
    with LedgerReader(target) as copy:
        assert [row.id for row in copy.rollouts()] == ["r-0"]
        assert copy.facts() == {"name": "demo"}
        assert copy.sample("r-0") == ledger.sample("r-0")
    assert sorted(file.name for file in path.parent.iterdir() if "unfinished" in file.name) == []


def test_a_copy_is_taken_beside_an_open_transaction(ledger: Ledger, path: Path, make_sample: Any) -> None:
    ledger.commit_round([make_sample(0)])
    ledger._database.execute("BEGIN IMMEDIATE")
    ledger._database.execute("DELETE FROM rollouts")
    target = path.with_name("copy.sqlite")
    export_sqlite(path, target)
    ledger._database.execute("ROLLBACK")
    with LedgerReader(target) as copy:
        assert len(copy.rollouts()) == 1


def test_an_existing_file_is_not_overwritten(ledger: Ledger, path: Path) -> None:
    target = path.with_name("mine.txt")
    target.write_text("mine")
    with pytest.raises(UserError, match="exists already"):
        export_sqlite(path, target)
    assert target.read_text() == "mine"


def test_a_target_that_cannot_be_written_is_the_users_mistake(ledger: Ledger, path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written"):
        export_sqlite(path, path.parent / "nowhere" / "copy.sqlite")
    assert not (path.parent / "nowhere").exists()


def test_lines_are_of_one_moment_however_slowly_they_are_read(
    ledger: Ledger, path: Path, make_sample: Any
) -> None:
    ledger.commit_round([make_sample(0)])
    lines = export_lines(path)
    first = next(lines)
    ledger.commit_round([make_sample(position, round=1) for position in range(1, 5)])
    tables = [json.loads(line)["table"] for line in [first, *lines]]
    assert tables == ["run", "rollouts"]


def test_a_line_holds_every_column_and_blobs_as_base64(ledger: Ledger, path: Path, make_sample: Any) -> None:
    ledger.commit_round([make_sample(0)])
    row = next(row for line in export_lines(path) if (row := json.loads(line))["table"] == "rollouts")
    columns = {column[1] for column in ledger._database.execute("PRAGMA table_info(rollouts)")}
    assert set(row) == {"table", *columns}
    assert base64.b64decode(row["response_tokens"]) == (3).to_bytes(4, "little") + (4).to_bytes(
        4, "little"
    ) + (5).to_bytes(4, "little")


def test_no_table_is_forgotten(ledger: Ledger) -> None:
    tables = {
        row[0] for row in ledger._database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    assert tables == set(TABLES)
