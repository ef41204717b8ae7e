"""Logs: one JSON object a line, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from mlwright_operator.edge import logs


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root, ours = logging.getLogger(), logging.getLogger("mlwright_operator")
    before = root.handlers[:], root.level, ours.level
    stream = io.StringIO()
    logs.configure("info", stream=stream)
    yield stream
    root.handlers[:], root.level, ours.level = before[0], before[1], before[2]


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_an_object_with_what_was_given(stream: io.StringIO) -> None:
    logging.getLogger("mlwright_operator.edge").info(
        "leading %s", "now", extra={"identity": "me", "count": 3}
    )
    (said,) = lines(stream)
    assert said["message"] == "leading now"
    assert (said["level"], said["logger"]) == ("INFO", "mlwright_operator.edge")
    assert (said["identity"], said["count"]) == ("me", 3)
    assert said["time"].endswith("+00:00")


def test_a_message_of_several_lines_stays_one_line(stream: io.StringIO) -> None:
    logging.getLogger("mlwright_operator").warning("first\nsecond\u2028third ä")
    assert len(stream.getvalue().splitlines()) >= 1
    assert stream.getvalue().count("\n") == 1


def test_an_exception_comes_with_its_traceback(stream: io.StringIO) -> None:
    try:
        raise KeyError("lost")
    except KeyError:
        logging.getLogger("mlwright_operator").exception("pass failed")
    (said,) = lines(stream)
    assert "KeyError: 'lost'" in said["exception"]


def test_what_json_cannot_hold_is_written_as_text(stream: io.StringIO) -> None:
    logging.getLogger("mlwright_operator").info("x", extra={"thing": {1, 2}})
    assert lines(stream)[0]["thing"] == "{1, 2}"


def test_libraries_are_heard_from_warnings_on(stream: io.StringIO) -> None:
    logging.getLogger("kopf.reactor").info("chatter")
    logging.getLogger("kopf.reactor").warning("trouble")
    assert [said["message"] for said in lines(stream)] == ["trouble"]
