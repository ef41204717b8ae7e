"""The script in a model's answer: its last fenced Python block, or the whole text where it is bare Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from mlwright_api.rollout import FILES_BYTES

from mlwright_trainer.collection.syntax import NotPython, parse_script

_FENCE = re.compile(r"^(?P<indent>[ \t]*)(?P<mark>`{3,}|~{3,})[ \t]*(?P<info>.*?)[ \t]*$")
_PYTHON = re.compile(r"^[{.]*(python|py)[0-9.]*(?![\w+-])", re.IGNORECASE)
_READINGS = 8
"""Closing lines tried for one block, and unlabelled blocks tried for one answer."""


@dataclass(frozen=True)
class _Fence:
    line: int
    indent: int
    mark: str
    language: Literal["python", "none", "other"]

    def closed_by(self, other: _Fence) -> bool:
        """CommonMark's rule: at least as many of the same, nothing behind, indented by 3 more at most."""
        return (
            other.language == "none" and other.mark.startswith(self.mark) and other.indent <= self.indent + 3
        )

    def reopened_by(self, other: _Fence) -> bool:
        return other.language == "python" and other.mark.startswith(self.mark)


def extract_script(text: str, *, stopped: bool = True) -> str | None:
    """The script that `text` answers with, newlines normalised and one at its end; None where there is none.

    The last block labelled as Python counts, else the last unlabelled one, one that parses first; fences are
    CommonMark's. An unclosed last block counts only if the model `stopped` by itself. Where a block does
    not parse because a string in it holds a fence, or because an earlier block was left open, other
    readings of it are tried. Executes nothing.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    fences = [fence for number, line in enumerate(lines) if (fence := _fence(line, number))]
    if fences:
        return _tidy(_chosen(lines, fences, list(_openings(fences, stopped=stopped))))
    bare = "\n".join(lines)
    return _tidy(bare) if _acts(bare) else None


def _fence(line: str, number: int) -> _Fence | None:
    match = _FENCE.match(line)
    if match is None or (match["mark"][0] == "`" and "`" in match["info"]):
        return None
    info = match["info"]
    language: Literal["python", "none", "other"] = (
        "none" if not info else "python" if _PYTHON.match(info) else "other"
    )
    return _Fence(number, len(match["indent"]), match["mark"], language)


def _openings(fences: Sequence[_Fence], *, stopped: bool) -> Iterator[int]:
    """Positions in `fences` of those that open a block."""
    position = 0
    while position < len(fences):
        opening = fences[position]
        closings = (at for at in range(position + 1, len(fences)) if opening.closed_by(fences[at]))
        closing = next(closings, None)
        if closing is not None or stopped:
            yield position
        position = len(fences) if closing is None else closing + 1


def _chosen(lines: Sequence[str], fences: Sequence[_Fence], openings: Sequence[int]) -> str:
    def of(language: str) -> Iterator[str]:
        return (_block(lines, fences, at) for at in reversed(openings) if fences[at].language == language)

    labelled = next(of("python"), None)
    if labelled is not None:
        return labelled
    plain = list(islice(of("none"), _READINGS))
    return next((script for script in plain if _acts(script)), next(iter(plain), ""))


def _block(lines: Sequence[str], fences: Sequence[_Fence], position: int) -> str:
    """What stands in the block that opens at `position`: the first reading that parses, else the first."""
    opening, later = fences[position], fences[position + 1 :]
    ends = [fence.line for fence in islice(filter(opening.closed_by, later), _READINGS)] or [len(lines)]
    starts = [fence for fence in later if fence.line < ends[0] and opening.reopened_by(fence)]
    bodies = [_body(lines, opening, end) for end in ends]
    bodies += [_body(lines, fence, ends[0]) for fence in starts[-1:]]
    return next((body for body in bodies if _statements(body)), bodies[0])


def _body(lines: Sequence[str], opening: _Fence, end: int) -> str:
    margin = re.compile(rf"^[ \t]{{0,{opening.indent}}}")
    return "\n".join(margin.sub("", line) for line in lines[opening.line + 1 : end])


def _tidy(script: str) -> str | None:
    stripped = script.lstrip("\n").rstrip()
    return f"{stripped}\n" if stripped else None


def _statements(script: str) -> list[ast.stmt]:
    if len(script) > FILES_BYTES:
        return []
    try:
        return parse_script(script).body
    except NotPython:
        return []


def _acts(script: str) -> bool:
    """Whether it parses and does more than name things: a one-word answer is Python too."""
    return any(
        not isinstance(statement, ast.Expr)
        or any(isinstance(node, ast.Call | ast.Await | ast.NamedExpr) for node in ast.walk(statement))
        for statement in _statements(script)
    )
