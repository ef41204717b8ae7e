"""Every read of Final leaves a line, or does not happen."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.final_reads import log_final_read

NOON = datetime(2026, 1, 2, 12, 0, 0, tzinfo=UTC)


def test_reads_are_appended_one_a_line(tmp_path: Path) -> None:
    log_final_read(tmp_path, purpose="task grade", digest="ab", now=NOON)
    log_final_read(tmp_path, purpose="task check", digest="cd", now=NOON)
    lines = [json.loads(line) for line in (tmp_path / "reads.log").read_text().splitlines()]

    assert lines == [
        {"time": "2026-01-02T12:00:00+00:00", "purpose": "task grade", "digest": "ab"},
        {"time": "2026-01-02T12:00:00+00:00", "purpose": "task check", "digest": "cd"},
    ]


def test_a_log_that_cannot_be_written_forbids_the_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Final is not read where the read cannot be logged"):
        log_final_read(tmp_path / "missing", purpose="task grade", digest="ab")
