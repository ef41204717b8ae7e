"""Milestones (`Static`): compiles a script with marks after the expressions that reach them.

A marked expression E becomes `(E, mark(i))[0]`: E is evaluated as before, in its place and with its line and
column, and the mark follows. Nothing else changes, so what the script does, prints and raises stays the same.
`mark` is a global whose name no source can spell, because it holds a blank.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType

from mlwright_api.results import MILESTONES, Milestone

from mlwright_sandbox.errors import SourceError
from mlwright_sandbox.milestone_sites import DEFAULT_SUBMISSION, Site, find_sites
from mlwright_sandbox.reasons import one_line

MARK_NAME = "mlwright mark"
"""Put a `mark.Mark` under this name into the script's globals, and into builtins: globals may be cleared."""
_BOM = "\ufeff"


class MilestoneLog:
    """Which milestones count: those that were marked before any later one."""

    def __init__(self) -> None:
        self._last = -1
        self._reached: list[Milestone] = []

    def mark(self, index: int) -> None:
        """Note a mark; an index that is no milestone's, or not beyond the last, changes nothing."""
        if self._last < index < len(MILESTONES):
            self._last = index
            self._reached.append(MILESTONES[index])

    @property
    def reached(self) -> list[Milestone]:
        """In order."""
        return list(self._reached)


def instrument(source: str, filename: str, *, submission: str = DEFAULT_SUBMISSION) -> CodeType:
    """The script with its marks, ready for exec with MARK_NAME in its globals.

    `submission` is the file whose writing is a milestone. Where Python can compile the script but not the marked
    one (nested too deeply), the script comes back without marks. Errors: SourceError, with what Python said.
    """
    text = source.removeprefix(_BOM)
    try:
        tree = ast.parse(text, filename)
        insert_marks(find_sites(tree, submission))
        code: CodeType = compile(tree, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # From the text the messages are Python's own, with the line that they are about.
        return _compile(text, filename)
    return code


def _compile(text: str, filename: str) -> CodeType:
    try:
        return compile(text, filename, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        kind = type(error).__name__
        line = error.lineno if isinstance(error, SyntaxError) else None
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        where = f"line {line}: " if line is not None else ""
        raise SourceError(one_line(f"{kind}: {where}{message}").rstrip(": "), kind=kind) from error


def insert_marks(sites: Sequence[Site]) -> None:
    """Change the tree in place. Later sites first: positions in a body stay right while statements are added."""
    for site in reversed(sites):
        if isinstance(site.node, ast.expr):
            site.replace(_marked(site.node, site.marks))
        elif isinstance(site.node, ast.stmt):
            site.insert_after([_statement(site.node, index) for index in site.marks])


def _marked(node: ast.expr, marks: Sequence[int]) -> ast.expr:
    """`(node, mark(i), ...)[0]`, everywhere with the node's own place in the source."""
    elements = [node, *(ast.copy_location(_call(index, node), node) for index in marks)]
    pair = ast.copy_location(ast.Tuple(elts=elements, ctx=ast.Load()), node)
    first = ast.copy_location(ast.Constant(value=0), node)
    return ast.copy_location(ast.Subscript(value=pair, slice=first, ctx=ast.Load()), node)


def _statement(after: ast.stmt, index: int) -> ast.stmt:
    place = ast.Pass(
        lineno=after.end_lineno or after.lineno,
        col_offset=0,
        end_lineno=after.end_lineno or after.lineno,
        end_col_offset=0,
    )
    return ast.copy_location(ast.Expr(value=_call(index, place)), place)


def _call(index: int, place: ast.AST) -> ast.expr:
    name = ast.copy_location(ast.Name(id=MARK_NAME, ctx=ast.Load()), place)
    argument = ast.copy_location(ast.Constant(value=index), place)
    return ast.copy_location(ast.Call(func=name, args=[argument], keywords=[]), place)
