"""The log of every read of a task's Final answers, kept beside them: sealed/reads.log, a JSON object a line."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

from mlwright_trainer.errors import UserError, refusal

LOG = "reads.log"


def log_final_read(sealed: Path, *, purpose: str, digest: str, now: datetime | None = None) -> None:
    """Append one read of Final, durably, before it happens. Raises UserError where the log cannot be written.

    `digest` is the sha256 of the submission that is graded, or of the answers where they alone are looked at.
    """
    entry = {
        "time": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "purpose": purpose,
        "digest": digest,
    }
    try:
        with (sealed / LOG).open("a", encoding="utf-8") as log:
            log.write(json.dumps(entry) + "\n")
            log.flush()
            os.fsync(log.fileno())
    except OSError as error:
        raise UserError(
            f"{sealed / LOG}: {refusal(error)}: Final is not read where the read cannot be logged"
        ) from error
