"""Writing a ledger: one writer, every method one transaction, nothing written twice."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlwright_trainer.ledger.codec import result_values, sample_values
from mlwright_trainer.ledger.reader import LedgerError, LedgerReader
from mlwright_trainer.ledger.rows import CLOSED, Phase, Result, Sampled, SealedScore, UpdateRow, WindowRow
from mlwright_trainer.ledger.schema import MIGRATIONS

__all__ = ["Ledger", "LedgerError"]


class Ledger(LedgerReader):
    """The ledger opened by its one writer; migrates an older schema.

    SQLite in WAL mode with full synchronisation: what a method has written is there after any kill.
    Raises LedgerError where the disk is full, the folder cannot be written, or a fact contradicts the file.
    """

    @classmethod
    def create(cls, path: Path, facts: Mapping[str, str]) -> Ledger:
        """A new ledger with its facts. Raises LedgerError if the file exists."""
        if path.exists():
            raise LedgerError(f"{path}: there is a ledger already")
        unfinished = path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        try:
            unfinished.touch()
            with cls(unfinished) as ledger:
                ledger.set_facts(facts)
                ledger._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except OSError as error:
            raise LedgerError(f"{path}: cannot be created ({error.strerror})") from error
        unfinished.rename(path)
        return cls(path)

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("PRAGMA foreign_keys = ON")
        except sqlite3.DatabaseError as error:
            database.close()
            raise LedgerError(f"{self._path}: cannot be opened for writing ({error})") from error
        return database

    def _check_schema(self) -> None:
        found = self.schema_version
        if found > len(MIGRATIONS):
            super()._check_schema()
        for version, migration in enumerate(MIGRATIONS[found:], start=found + 1):
            self._database.executescript(
                f"BEGIN IMMEDIATE; {migration} PRAGMA user_version = {version}; COMMIT;"
            )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            self._roll_back()
            raise LedgerError(f"{self._path}: {error}") from error
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")

    def _insert(self, table: str, values: Mapping[str, Any], *, replace: bool = False) -> None:
        names = ", ".join(values)
        marks = ", ".join("?" for _ in values)
        verb = "INSERT OR REPLACE" if replace else "INSERT"
        self._database.execute(f"{verb} INTO {table} ({names}) VALUES ({marks})", tuple(values.values()))

    def set_facts(self, facts: Mapping[str, str]) -> None:
        """Add or replace facts about the run."""
        with self._transaction():
            for key, value in facts.items():
                self._insert("run", {"key": key, "value": value}, replace=True)

    # The life of a rollout.

    def commit_round(self, samples: Sequence[Sampled]) -> None:
        """Commit a whole round of samples; those that need no sandbox are closed at once."""
        now = time.time()
        with self._transaction():
            for sample in samples:
                self._insert("rollouts", sample_values(sample, sampled_at=now))
                if sample.result is not None:
                    self._close(sample.id, sample.result, now)

    def launch(self, id: str, *, window: int | None = None, offset: float | None = None) -> None:
        """Note that a script has been handed to a slot; again after an interruption."""
        with self._transaction():
            changed = self._database.execute(
                "UPDATE rollouts SET launched_at = ?, window = ?, window_offset = ? "
                "WHERE id = ? AND outcome IS NULL",
                (time.time(), window, offset, id),
            ).rowcount
            if changed != 1:
                raise LedgerError(f"{self._path}: rollout {id!r} is not open")

    def close_rollout(self, id: str, result: Result) -> None:
        """Write how a rollout ended, once."""
        with self._transaction():
            self._close(id, result, time.time())

    def _close(self, id: str, result: Result, now: float) -> None:
        values = {**result_values(result), "closed_at": now}
        if result.started_at is not None:
            values["launched_at"] = result.started_at
        if result.window_offset is not None:
            values["window_offset"] = result.window_offset
        assignments = ", ".join(f"{name} = ?" for name in values)
        changed = self._database.execute(
            f"UPDATE rollouts SET {assignments} WHERE id = ? AND outcome IS NULL", (*values.values(), id)
        ).rowcount
        if changed != 1:
            raise LedgerError(f"{self._path}: rollout {id!r} is not open")

    # Batches, windows, updates.

    def assign_batch(self, number: int, ids: Sequence[str]) -> None:
        """Assign batch `number`, once, in the order given."""
        with self._transaction():
            self._insert("batches", {"number": number, "size": len(ids), "assigned_at": time.time()})
            for position, id in enumerate(ids):
                changed = self._database.execute(
                    "UPDATE rollouts SET batch = ?, batch_position = ? WHERE id = ? AND batch IS NULL",
                    (number, position, id),
                ).rowcount
                if changed != 1:
                    raise LedgerError(f"{self._path}: rollout {id!r} belongs to a batch already")

    def record_window(self, window: WindowRow) -> None:
        """Write or overwrite the state of a window's clock."""
        with self._transaction():
            self._insert(
                "windows",
                {
                    "number": window.number,
                    "seconds": window.seconds,
                    "elapsed": window.elapsed,
                    "closed": int(window.closed),
                    "missing_mass": window.missing_mass,
                },
                replace=True,
            )

    def record_update(self, update: UpdateRow) -> None:
        """Note published weights; the same version again with the same digest changes nothing.

        Raises LedgerError if the version is there with another digest.
        """
        known = self._one("SELECT digest FROM updates WHERE version = ?", [update.version])
        if known is not None:
            if known["digest"] != update.digest:
                raise LedgerError(
                    f"{self._path}: version {update.version} was published as {known['digest'][:12]}, "
                    f"now as {update.digest[:12]}: the run is not reproducible"
                )
            return
        with self._transaction():
            self._insert(
                "updates",
                {
                    "version": update.version,
                    "digest": update.digest,
                    "metrics": json.dumps(dict(update.metrics)),
                    "published_at": update.published_at,
                },
            )

    # Time and the sealed grading.

    def record_phase(
        self, kind: Phase, *, started_at: float, seconds: float, round: int | None = None
    ) -> None:
        with self._transaction():
            self._insert(
                "phases", {"kind": kind, "round": round, "started_at": started_at, "seconds": seconds}
            )

    def start_session(self) -> int:
        """Note that a process of this run has started; returns the session's number, from 1."""
        with self._transaction():
            self._insert("sessions", {"started_at": time.time()})
            return int(self._database.execute("SELECT max(number) FROM sessions").fetchone()[0])

    def end_session(self, number: int, ending: str) -> None:
        with self._transaction():
            self._database.execute(
                "UPDATE sessions SET ended_at = ?, ending = ? WHERE number = ?", (time.time(), ending, number)
            )

    def record_sealed(self, scores: Sequence[SealedScore]) -> None:
        """Write the sealed grading, whole and once, and close the run."""
        with self._transaction():
            for score in scores:
                low, high = score.interval or (None, None)
                self._insert(
                    "sealed",
                    {
                        "subject": score.subject,
                        "rollout": score.rollout,
                        "digest": score.digest,
                        "verdict": score.verdict,
                        "reason": score.reason,
                        "score": score.score,
                        "low": low,
                        "high": high,
                        "graded_at": time.time(),
                    },
                )
            self._insert("run", {"key": CLOSED, "value": "sealed"}, replace=True)
