"""What the runner keeps of a script's output, and what it believes of its private line."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.results import Limit
from mlwright_sandbox.runner import Lines, Tail
from mlwright_sandbox.script import ENDED, MARK, STARTED, parse_line

NONCE = b"0123456789abcdef"


def said(*lines: bytes) -> Lines:
    heard = Lines(NONCE)
    for line in lines:
        heard.add(line + b"\n")
    return heard


@given(st.lists(st.binary(max_size=60), max_size=20), st.integers(1, 50))
def test_the_tail_is_the_end_and_never_longer_than_asked(parts: list[bytes], keep: int) -> None:
    tail = Tail(keep)
    for part in parts:
        tail.add(part)
    assert tail.total == sum(map(len, parts))
    assert len(tail.text().encode()) <= keep


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=60))
def test_text_that_fits_is_kept_as_it_is(text: str) -> None:
    tail = Tail(1000)
    tail.add(text.encode())
    assert tail.text() == text


def test_a_character_that_was_cut_in_two_does_not_disturb_the_rest() -> None:
    tail = Tail(4)
    tail.add("aéb€".encode())
    assert tail.text().endswith("€")


@pytest.mark.parametrize("line", [b"", NONCE, b"m6", b"x" + NONCE + b"m6", NONCE[:-1] + b"m6"])
def test_a_line_without_the_secret_says_nothing(line: bytes) -> None:
    assert parse_line(line, NONCE) is None


def test_a_mark_counts_if_no_later_one_has_been_set() -> None:
    marks = [b"0", b"3", b"1", b"3", b"6", b"99", b"-1"]
    assert said(*(NONCE + MARK + mark for mark in marks)).milestones == [0, 3, 6]


def test_forged_marks_are_not_heard() -> None:
    assert said(b"m0", b"deadbeefdeadbeefm6").milestones == []


def test_a_line_that_comes_in_pieces_is_one_line() -> None:
    heard = Lines(NONCE)
    for byte in NONCE + MARK + b"2\n":
        heard.add(bytes([byte]))
    assert heard.milestones == [2]


def test_only_the_first_start_counts() -> None:
    heard = said(NONCE + STARTED + b"[10.0, 1.0]", NONCE + STARTED + b"[99.0, 99.0]")
    assert heard.started == (10.0, 1.0)


def test_the_last_words_name_error_and_limit() -> None:
    heard = said(NONCE + ENDED + json.dumps({"error": "MemoryError", "limit": "Memory"}).encode())
    assert (heard.error, heard.limit) == ("MemoryError", Limit.MEMORY)


@pytest.mark.parametrize(
    "text", [b"", b"[]", b"{}", b'{"error": 1}', b'{"error": "x", "limit": "Everything"}', b"{", b"\xff\xff"]
)
def test_garbage_behind_the_secret_is_ignored(text: bytes) -> None:
    heard = said(NONCE + ENDED + text, NONCE + STARTED + text, NONCE + MARK + text)
    assert heard.limit is None
    assert heard.started is None
    assert heard.milestones == []
