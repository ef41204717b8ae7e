"""Scripts as HTML: nothing of them becomes markup, and what changed is marked."""

from __future__ import annotations

import html
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_trainer.report.code_view import (
    MAX_CHARACTERS,
    MAX_LINE_CHARACTERS,
    MAX_LINES,
    CodeLine,
    code_lines,
    side_by_side,
)


def text_of(line: CodeLine) -> str:
    """What a reader sees of a line."""
    return html.unescape(re.sub(r"</?i[^>]*>", "", line.code))


@given(st.text(max_size=300))
def test_any_text_keeps_its_lines_and_is_escaped(source: str) -> None:
    lines = code_lines(source)
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    assert len(lines) == len(source.replace("\r\n", "\n").removesuffix("\n").split("\n"))
    for line in lines:
        assert not re.search(r"[<>]", re.sub(r'<i class="[cksnfb]">|</i>', "", line.code))


@pytest.mark.parametrize(
    "hostile",
    [
        "</pre><script>alert(1)</script>",
        '"""<img src=x onerror=alert(1)>"""',
        "# <!-- ",
        "{{ 7 * 7 }}",
        "a = '&lt;'",
    ],
)
def test_hostile_code_is_shown_as_it_is(hostile: str) -> None:
    (line,) = code_lines(hostile)
    assert "<script" not in line.code
    assert "<img" not in line.code
    assert text_of(line) == hostile


def test_tokens_are_coloured() -> None:
    (line,) = code_lines("import numpy  # why")
    assert '<i class="k">import</i>' in line.code
    assert '<i class="c"># why</i>' in line.code


def test_a_string_over_several_lines_is_coloured_on_each() -> None:
    lines = code_lines('x = """a\nb"""\ny = 1')
    assert "s" in lines[0].code
    assert '<i class="s">b' in lines[1].code
    assert len(lines) == 3


def test_control_characters_are_written_out() -> None:
    (line,) = code_lines("a = '\x1b[31m\u202e'")
    assert text_of(line) == "a = '\\x1b[31m\\u202e'"


def test_changed_lines_are_level_and_marked() -> None:
    left, right = side_by_side("a\nb\nc\nd", "a\nB\nB2\nc\nd\ne")
    assert len(left) == len(right) == 6
    assert [line.change for line in left] == ["", "removed", "gap", "", "", "gap"]
    assert [line.change for line in right] == ["", "added", "added", "", "", "added"]
    assert [line.number for line in left] == [1, 2, None, 3, 4, None]
    assert [line.number for line in right] == [1, 2, 3, 4, 5, 6]


def test_equal_scripts_have_no_marks() -> None:
    left, right = side_by_side("a\nb\n", "a\nb\n")
    assert [line.change for line in left + right] == [""] * 4


def test_long_scripts_and_lines_are_cut_and_say_so() -> None:
    lines = code_lines("x\n" * (MAX_LINES + 10))
    assert len(lines) == MAX_LINES + 1
    assert "10 more lines" in lines[-1].code
    wide = code_lines(f"{'z' * 299}\n" * 500)
    assert len(wide) == MAX_CHARACTERS // 300 + 1
    (long,) = code_lines("y" * 5000)
    assert len(long.code) <= MAX_LINE_CHARACTERS + 40
    assert long.code.endswith("…")


def test_a_script_made_to_be_slow_is_shown_in_time() -> None:
    nasty = "\n".join(["(" * 400, "'" * 400, "f'{" * 100, "\\" * 400] * 400)
    began = time.process_time()
    side_by_side(nasty, nasty[::-1])
    assert time.process_time() - began < 10
