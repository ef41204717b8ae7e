"""Readers: beside a writer, from read-only places, of other schemas, and what they answer."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.ledger import Ledger, LedgerError, LedgerReader, UpdateRow
from mlwright_trainer.ledger.schema import MIGRATIONS

NOBODY = 65534


def test_a_reader_sees_what_the_writer_has_committed_and_nothing_of_what_it_has_not(
    ledger: Ledger, path: Path, make_sample: Any
) -> None:
    with LedgerReader(path) as reader:
        ledger.commit_round([make_sample(0)])
        assert len(reader.rollouts()) == 1
        ledger._database.execute("BEGIN IMMEDIATE")
        ledger._database.execute("DELETE FROM rollouts")
        assert len(reader.rollouts()) == 1
        ledger._database.execute("ROLLBACK")


def test_a_reader_does_not_keep_the_writer_waiting(ledger: Ledger, path: Path, make_sample: Any) -> None:
    ledger._database.execute("PRAGMA busy_timeout = 0")
    with LedgerReader(path) as reader, reader.snapshot():
        assert reader.rollouts() == []
        ledger.commit_round([make_sample(0)])
    assert len(ledger.rollouts()) == 1


def test_within_a_snapshot_all_answers_are_of_one_moment(
    ledger: Ledger, path: Path, make_sample: Any
) -> None:
    with LedgerReader(path) as reader:
        with reader.snapshot():
            assert reader.rounds("Train") == 0
            ledger.commit_round([make_sample(0)])
            assert reader.rollouts() == []
        assert len(reader.rollouts()) == 1


def test_a_reader_cannot_write(ledger: Ledger, path: Path) -> None:
    with LedgerReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._database.execute("DELETE FROM run")


def test_a_missing_ledger_is_said(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger here"):
        LedgerReader(tmp_path / "ledger.sqlite")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"not a database", b"SQLite format 3\x00" + b"\x00" * 200])
def test_another_file_is_no_ledger(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"not a ledger|schema version 0"):
        LedgerReader(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("kind", [LedgerReader, Ledger])
def test_a_newer_schema_is_refused_and_left_alone(path: Path, kind: type[LedgerReader]) -> None:
    Ledger.create(path, {"name": "demo"}).close()
    newer = len(MIGRATIONS) + 1
    database = sqlite3.connect(path)
    database.execute(f"PRAGMA user_version = {newer}")
    database.close()
    with pytest.raises(LedgerError, match=f"schema version {newer}.*use a newer mlwright"):
        kind(path)
    database = sqlite3.connect(path)
    assert database.execute("PRAGMA user_version").fetchone() == (newer,)
    database.close()


def test_an_older_schema_is_migrated_by_the_writer_and_named_by_a_reader(path: Path) -> None:
    sqlite3.connect(path).close()
    path.touch()
    with pytest.raises(LedgerError, match="mlwright run --resume"):
        LedgerReader(path)
    with Ledger(path) as ledger:
        assert ledger.schema_version == len(MIGRATIONS)
    LedgerReader(path).close()


@contextmanager
def as_somebody_who_may_only_read(folder: Path) -> Iterator[None]:
    """Without write permission in `folder`; root sets its rights aside for the time."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


@pytest.fixture
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that every user can reach: pytest's own are private."""
    folder = tmp_path_factory.mktemp("archive")
    closed = [parent for parent in (folder, *folder.parents) if parent.stat().st_uid == os.getuid()]
    modes = {parent: parent.stat().st_mode & 0o7777 for parent in closed if not parent.stat().st_mode & 0o001}
    for parent in modes:
        parent.chmod(modes[parent] | 0o055)
    yield folder
    for parent, mode in modes.items():
        parent.chmod(mode)


@pytest.mark.parametrize("left", [(), ("-wal",)])
def test_an_archived_ledger_is_read_where_nothing_can_be_written(
    open_folder: Path, make_sample: Any, left: tuple[str, ...]
) -> None:
    path = open_folder / "ledger.sqlite"
    with Ledger.create(path, {}) as ledger:
        ledger.commit_round([make_sample(0)])
    for ending in left:
        path.with_name(path.name + ending).touch()
    with as_somebody_who_may_only_read(open_folder), LedgerReader(path) as reader:
        assert [row.id for row in reader.rollouts()] == ["r-0"]


def test_a_ledger_cannot_be_created_in_a_read_only_folder(open_folder: Path) -> None:
    with (
        as_somebody_who_may_only_read(open_folder),
        pytest.raises(LedgerError, match=r"cannot be created|cannot be opened for writing"),
    ):
        Ledger.create(open_folder / "ledger.sqlite", {})
    assert list(open_folder.iterdir()) == []


def test_rollouts_come_by_purpose_round_and_position(ledger: Ledger, make_sample: Any) -> None:
    ledger.commit_round([make_sample(1), make_sample(0)])
    ledger.commit_round([make_sample(0, id="later", round=1)])
    ledger.commit_round([make_sample(0, id="fresh", purpose="Before")])
    assert [row.id for row in ledger.rollouts()] == ["fresh", "r-0", "r-1", "later"]
    assert [row.id for row in ledger.rollouts("Train", round=1)] == ["later"]
    assert (ledger.rounds("Train"), ledger.rounds("After")) == (2, 0)


def test_a_rollout_that_is_not_there_is_said(ledger: Ledger) -> None:
    for ask in (ledger.rollout, ledger.sample):
        with pytest.raises(LedgerError, match="no rollout 'x'"):
            ask("x")
    assert ledger.submission("x") is None


def test_ids_are_found_by_how_they_begin_and_wildcards_mean_nothing(ledger: Ledger, make_sample: Any) -> None:
    ledger.commit_round([make_sample(0, id="a%b"), make_sample(1, id="axb"), make_sample(2, id="b")])
    assert ledger.ids_beginning("a") == ["a%b", "axb"]
    assert ledger.ids_beginning("a%") == ["a%b"]
    assert ledger.ids_beginning("a", most=1) == ["a%b"]
    assert ledger.ids_beginning("c") == []


def test_a_kept_submission_comes_back_byte_for_byte(
    ledger: Ledger, make_sample: Any, make_result: Any
) -> None:
    submission = bytes(range(256)) * 50
    ledger.commit_round([make_sample(0), make_sample(1)])
    ledger.close_rollout("r-0", make_result(submission=submission))
    ledger.close_rollout("r-1", make_result(submission=b""))
    assert ledger.submission("r-0") == submission
    assert ledger.submission("r-1") == b""


def test_execution_seconds_are_absent_where_no_sandbox_ran(
    ledger: Ledger, make_sample: Any, make_result: Any
) -> None:
    ledger.commit_round([make_sample(0), make_sample(1)])
    ledger.close_rollout("r-0", make_result(seconds=2.5))
    ledger.close_rollout("r-1", make_result(Outcome.UNCHANGED, 0.0))
    ledger.assign_batch(0, ["r-0", "r-1"])
    batch = ledger.batch(0)
    assert batch is not None
    assert [row.execution_seconds for row in batch.rows] == [2.5, None]


def test_the_last_thing_written_is_found_also_before_a_moment(ledger: Ledger) -> None:
    assert ledger.last_written_at() is None
    ledger.record_update(UpdateRow(0, "a", {}, 100.0))
    ledger.record_phase("learning", started_at=150.0, seconds=20.0)
    assert ledger.last_written_at() == 170.0
    assert ledger.last_written_at(before=170.0) == 100.0
    assert ledger.last_written_at(before=100.0) is None
