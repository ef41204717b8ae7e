"""Logs as JSON, one object a line on stderr: for collectors first, and still readable for a person."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TextIO

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """`time`, `level`, `logger`, `message`, then whatever the caller gave as `extra`, then `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        said |= {name: value for name, value in vars(record).items() if name not in _STANDARD}
        if record.exc_info:
            said["exception"] = self.formatException(record.exc_info)
        return json.dumps(said, ensure_ascii=False, default=str)


def configure(level: str, *, stream: TextIO | None = None) -> None:
    """Everything that this process logs goes through one handler; libraries speak up from warnings on."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("mlwright_operator").setLevel(level.upper())
