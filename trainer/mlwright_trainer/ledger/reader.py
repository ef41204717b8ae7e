"""Reading a ledger: every question that report, replay, `show` and the collector ask of it."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from mlwright_api.rollout import Outcome

from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import Batch, Launch, TrainingRow, Window
from mlwright_trainer.ledger.codec import (
    rollout_from,
    sealed_from,
    spans_from,
    unpack_logprobs,
    unpack_tokens,
)
from mlwright_trainer.ledger.rows import (
    CLOSED,
    Purpose,
    RolloutRow,
    Sampled,
    SealedScore,
    UpdateRow,
    WindowRow,
)
from mlwright_trainer.ledger.schema import MIGRATIONS

_ROLLOUT_COLUMNS = """
  id, purpose, round, position, task, prompt_kind, parent, policy_version,
  length(response_tokens) / 4 AS response_length, response, script, tree, sampled_at, launched_at, window,
  window_offset, attempt, outcome, reason, exit_code, scores, milestones, seconds, output_tail, isolation,
  reward, closed_at, batch
"""
_MOMENTS = (
    ("rollouts", "sampled_at"),
    ("rollouts", "launched_at"),
    ("rollouts", "closed_at"),
    ("batches", "assigned_at"),
    ("updates", "published_at"),
    ("phases", "started_at + seconds"),
    ("sessions", "started_at"),
    ("sessions", "ended_at"),
    ("sealed", "graded_at"),
)
"""Where a ledger says when something happened."""


class LedgerError(InternalError):
    """The ledger cannot be read or written, or what is asked of it contradicts what it holds."""


def open_read_only(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, also where nothing beside the file can be written."""
    # Reading in WAL mode writes an index beside the file. Where that is impossible and no writer has left a log
    # (an archived run, a mounted image), the file is whole and is read as it is.
    log = path.with_name(f"{path.name}-wal")
    settled = not log.exists() or log.stat().st_size == 0
    by_effective_user = os.access in os.supports_effective_ids
    frozen = settled and not os.access(path.parent, os.W_OK, effective_ids=by_effective_user)
    flags = "mode=ro&immutable=1" if frozen else "mode=ro"
    return sqlite3.connect(f"{path.resolve().as_uri()}?{flags}", uri=True, check_same_thread=False)


class LedgerReader:
    """A ledger opened read-only; safe beside a running writer.

    Raises LedgerError where the file is missing, no ledger, or of a newer schema.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise LedgerError(f"{path}: there is no ledger here")
        self._path = path
        self._database = self._connect()
        self._database.row_factory = sqlite3.Row
        self._check_schema()

    def _connect(self) -> sqlite3.Connection:
        return open_read_only(self._path)

    def _check_schema(self) -> None:
        found = self.schema_version
        if found != len(MIGRATIONS):
            raise LedgerError(
                f"{self._path}: schema version {found}, this mlwright reads {len(MIGRATIONS)}"
                + (
                    "; use a newer mlwright"
                    if found > len(MIGRATIONS)
                    else "; open it once with `mlwright run --resume`"
                )
            )

    @property
    def schema_version(self) -> int:
        try:
            return int(self._database.execute("PRAGMA user_version").fetchone()[0])
        except sqlite3.DatabaseError as error:
            raise LedgerError(f"{self._path}: not a ledger ({error})") from error

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Within it all questions are answered from the ledger as it stood at the first of them."""
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("ROLLBACK")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _all(self, sql: str, values: Iterable[Any] = ()) -> list[sqlite3.Row]:
        return self._database.execute(sql, tuple(values)).fetchall()

    def _one(self, sql: str, values: Iterable[Any] = ()) -> sqlite3.Row | None:
        row: sqlite3.Row | None = self._database.execute(sql, tuple(values)).fetchone()
        return row

    # Facts about the run.

    def fact(self, key: str) -> str | None:
        row = self._one("SELECT value FROM run WHERE key = ?", [key])
        return None if row is None else str(row["value"])

    @property
    def closed(self) -> bool:
        """Whether the sealed grading is written: then the run is over."""
        return self.fact(CLOSED) is not None

    def facts(self) -> dict[str, str]:
        return {row["key"]: row["value"] for row in self._all("SELECT key, value FROM run ORDER BY key")}

    # Rollouts.

    def rollouts(self, purpose: Purpose | None = None, *, round: int | None = None) -> list[RolloutRow]:
        """Rollouts in the order (purpose, round, position), of one purpose and round if asked."""
        where, values = ["1"], list[Any]()
        if purpose is not None:
            where, values = [*where, "purpose = ?"], [*values, purpose]
        if round is not None:
            where, values = [*where, "round = ?"], [*values, round]
        condition = " AND ".join(where)
        return self._rollouts(f"WHERE {condition} ORDER BY purpose, round, position", values)

    def rollout(self, id: str) -> RolloutRow:
        """One rollout by its id. Raises LedgerError if there is none."""
        found = self._rollouts("WHERE id = ?", [id])
        if not found:
            raise LedgerError(f"{self._path}: no rollout {id!r}")
        return found[0]

    def ids_beginning(self, prefix: str, *, most: int = 5) -> list[str]:
        """Up to `most` ids of rollouts that begin with `prefix`, in order."""
        rows = self._all(
            "SELECT id FROM rollouts WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2",
            [prefix, most],
        )
        return [row["id"] for row in rows]

    def open_rollouts(self, purpose: Purpose) -> list[RolloutRow]:
        """Committed and not closed: launched ones first (they were interrupted), then in sampling order."""
        return self._rollouts(
            "WHERE purpose = ? AND outcome IS NULL ORDER BY launched_at IS NULL, round, position", [purpose]
        )

    def unassigned(self) -> list[str]:
        """Ids of trainable rows of no batch yet, in the order in which they finished."""
        rows = self._all(
            "SELECT id FROM rollouts WHERE purpose = 'Train' AND reward IS NOT NULL AND batch IS NULL "
            "ORDER BY closed_at, round, position"
        )
        return [row["id"] for row in rows]

    def batch_rollouts(self, number: int) -> list[RolloutRow]:
        """The rows of a batch, in its order."""
        return self._rollouts("WHERE batch = ? ORDER BY batch_position", [number])

    def _rollouts(self, suffix: str, values: Iterable[Any]) -> list[RolloutRow]:
        return [
            rollout_from(row)
            for row in self._all(f"SELECT {_ROLLOUT_COLUMNS} FROM rollouts {suffix}", values)
        ]

    def rounds(self, purpose: Purpose) -> int:
        """How many rounds of a purpose are committed (they are numbered from 0)."""
        row = self._one(
            "SELECT coalesce(max(round) + 1, 0) AS rounds FROM rollouts WHERE purpose = ?", [purpose]
        )
        assert row is not None
        return int(row["rounds"])

    def sample(self, id: str) -> Sampled:
        """A rollout with its tokens, as it was committed."""
        row = self._one("SELECT * FROM rollouts WHERE id = ?", [id])
        if row is None:
            raise LedgerError(f"{self._path}: no rollout {id!r}")
        return Sampled(
            id=row["id"],
            purpose=row["purpose"],
            round=row["round"],
            position=row["position"],
            task=row["task"],
            prompt_kind=row["prompt_kind"],
            parent=row["parent"],
            prompt_tokens=unpack_tokens(row["prompt_tokens"]),
            response_tokens=unpack_tokens(row["response_tokens"]),
            logprobs=unpack_logprobs(row["logprobs"]),
            spans=spans_from(row["spans"]),
            response=row["response"],
            script=row["script"],
            tree=row["tree"],
        )

    def submission(self, id: str) -> bytes | None:
        """The bytes of a kept submission."""
        row = self._one("SELECT submission FROM rollouts WHERE id = ?", [id])
        return None if row is None or row["submission"] is None else zlib.decompress(row["submission"])

    # Batches and updates.

    def batch(self, number: int) -> Batch | None:
        """Batch `number`, or None while it is not assigned."""
        if self._one("SELECT 1 FROM batches WHERE number = ?", [number]) is None:
            return None
        rows = self._all("SELECT * FROM rollouts WHERE batch = ? ORDER BY batch_position", [number])
        return Batch(number=number, rows=tuple(map(_training_row, rows)), window=self._window(number))

    def batches(self) -> int:
        """How many batches are assigned (they are numbered from 0)."""
        row = self._one("SELECT count(*) AS batches FROM batches")
        assert row is not None
        return int(row["batches"])

    def batch_sizes(self) -> dict[int, int]:
        """Rows of each assigned batch, as counted when it was assigned."""
        return {row["number"]: row["size"] for row in self._all("SELECT * FROM batches ORDER BY number")}

    def _window(self, number: int) -> Window | None:
        window = self._one("SELECT seconds FROM windows WHERE number = ?", [number])
        return None if window is None else Window(window["seconds"], tuple(self.launches(number)))

    def launches(self, window: int) -> list[Launch]:
        """Every script start of a window, cancelled ones included, in the order of their starts."""
        return [
            Launch(
                offset=row["window_offset"],
                seconds=float(json.loads(row["seconds"])["execution"]),
                finished=row["outcome"] != Outcome.CANCELLED,
            )
            for row in self._all(
                "SELECT window_offset, seconds, outcome FROM rollouts WHERE window = ? "
                "AND outcome IS NOT NULL AND outcome != 'InfrastructureFailed' ORDER BY window_offset, id",
                [window],
            )
        ]

    def windows(self) -> list[WindowRow]:
        return [
            WindowRow(row["number"], row["seconds"], row["elapsed"], bool(row["closed"]), row["missing_mass"])
            for row in self._all("SELECT * FROM windows ORDER BY number")
        ]

    def updates(self) -> list[UpdateRow]:
        """Published versions in order; the first is version 0."""
        return [
            UpdateRow(row["version"], row["digest"], json.loads(row["metrics"]), row["published_at"])
            for row in self._all("SELECT * FROM updates ORDER BY version")
        ]

    # Time and the sealed grading.

    def phase_seconds(self) -> dict[str, float]:
        """Wall seconds by kind of phase."""
        return {
            row["kind"]: row["seconds"]
            for row in self._all("SELECT kind, sum(seconds) AS seconds FROM phases GROUP BY kind")
        }

    def sessions(self) -> list[tuple[float, float | None, str]]:
        """(start, end, ending) of every process; Unix seconds; end None: it was killed or still runs."""
        return [
            (row["started_at"], row["ended_at"], row["ending"])
            for row in self._all("SELECT * FROM sessions ORDER BY number")
        ]

    def last_written_at(self, before: float = math.inf) -> float | None:
        """Unix seconds of the last thing that the ledger tells of, earlier than `before`; None without one."""
        sources = " UNION ALL ".join(f"SELECT {moment} AS at FROM {table}" for table, moment in _MOMENTS)
        row = self._one(f"SELECT max(at) AS at FROM ({sources}) WHERE at < ?", [before])
        return None if row is None else row["at"]

    def sealed(self) -> list[SealedScore]:
        """Every read of Final."""
        return [sealed_from(row) for row in self._all("SELECT * FROM sealed ORDER BY subject")]


def _training_row(row: sqlite3.Row) -> TrainingRow:
    outcome = Outcome(row["outcome"])
    return TrainingRow(
        id=row["id"],
        task=row["task"],
        prompt_kind=row["prompt_kind"],
        prompt_tokens=unpack_tokens(row["prompt_tokens"]),
        response_tokens=unpack_tokens(row["response_tokens"]),
        logprobs=unpack_logprobs(row["logprobs"]),
        policy_version=row["policy_version"],
        outcome=outcome,
        reward=row["reward"],
        execution_seconds=float(json.loads(row["seconds"])["execution"]) if outcome.executed else None,
    )
