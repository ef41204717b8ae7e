"""Scripts as HTML: highlighted, and side by side with what changed marked. Scripts are hostile: all is escaped."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from markupsafe import Markup, escape
from pygments.lexers.python import PythonLexer  # type: ignore[import-untyped]  # pygments ships no types
from pygments.token import (  # type: ignore[import-untyped]  # pygments ships no types
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    String,
)

from mlwright_trainer.report.visible import visible

TokenType = Any
"""A node of pygments' tree of token kinds."""
MAX_LINES = 1_000
MAX_LINE_CHARACTERS = 400
MAX_CHARACTERS = 60_000
"""What is shown of a script: a hostile one may be long, and highlighting takes a second for so many."""

_CLASSES: Sequence[tuple[TokenType, str]] = (
    (Comment, "c"),
    (Keyword, "k"),
    (String, "s"),
    (Number, "n"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Builtin, "b"),
    (Operator.Word, "k"),
)


@dataclass(frozen=True)
class CodeLine:
    """A line of highlighted code; `number` is None for a gap that keeps two columns level."""

    number: int | None
    code: Markup
    change: str = ""
    """"", "added", "removed" or "gap"."""


def code_lines(source: str) -> list[CodeLine]:
    """A script, highlighted, a line each; too long ones are cut and say so."""
    return [CodeLine(number, code) for number, code in enumerate(_highlighted(source), start=1)]


def side_by_side(parent: str, child: str) -> tuple[list[CodeLine], list[CodeLine]]:
    """Two scripts level with each other; removed lines are marked on the left, added ones on the right."""
    old, new = _cut(parent), _cut(child)
    old_code, new_code = _highlighted(parent), _highlighted(child)
    left: list[CodeLine] = []
    right: list[CodeLine] = []
    # With difflib's own shortcut for sequences of 200 and more: without it, repeated lines take minutes.
    matcher = difflib.SequenceMatcher(None, old, new)
    for kind, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        same = kind == "equal"
        left += [CodeLine(i + 1, old_code[i], "" if same else "removed") for i in range(old_start, old_end)]
        right += [CodeLine(i + 1, new_code[i], "" if same else "added") for i in range(new_start, new_end)]
        _level(left, right)
    return left, right


def _level(left: list[CodeLine], right: list[CodeLine]) -> None:
    gap = CodeLine(None, Markup(""), "gap")
    left += [gap] * (len(right) - len(left))
    right += [gap] * (len(left) - len(right))


def _cut(source: str) -> list[str]:
    """Lines by newline alone (other separators are text), within bounds, without control characters."""
    lines = [_plain(each) for each in source.replace("\r\n", "\n").removesuffix("\n").split("\n")]
    shown = _shown(lines)
    return lines if shown == len(lines) else [*lines[:shown], f"# … {len(lines) - shown:,} more lines"]


def _shown(lines: Sequence[str]) -> int:
    """How many lines fit into what is shown; at least one."""
    lengths = accumulate(len(line) + 1 for line in lines[:MAX_LINES])
    return max(1, sum(length <= MAX_CHARACTERS for length in lengths))


def _plain(text: str) -> str:
    shown = text if len(text) <= MAX_LINE_CHARACTERS else f"{text[:MAX_LINE_CHARACTERS]}…"
    return visible(shown, keep="\t")


def _highlighted(source: str) -> list[Markup]:
    lines = _cut(source)
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    done: list[list[Markup]] = [[]]
    for kind, value in lexer.get_tokens("\n".join(lines)):
        first, *rest = value.split("\n")
        done[-1].append(_token(kind, first))
        done.extend([_token(kind, part)] for part in rest)
    return [Markup("").join(parts) for parts in _padded(done, len(lines))]


def _padded(lines: Iterable[list[Markup]], count: int) -> list[list[Markup]]:
    found = list(lines)[:count]
    return found + [[]] * (count - len(found))


def _token(kind: TokenType, text: str) -> Markup:
    if not text:
        return Markup("")
    name = next((css for parent, css in _CLASSES if kind in parent), "")
    return Markup('<i class="{}">{}</i>').format(name, text) if name else escape(text)
