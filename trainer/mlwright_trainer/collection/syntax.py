"""Scripts as syntax trees: parsed within bounds, compared without comments, layout and docstrings."""

from __future__ import annotations

import ast
import hashlib
import warnings
from collections.abc import Iterator

from mlwright_trainer.errors import MlwrightError

MAX_DEPTH = 200
"""Levels of nesting in a syntax tree: far above what people write, far below what breaks recursive code."""

_MESSAGE_CHARACTERS = 200
_WITH_DOCSTRING = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class NotPython(MlwrightError):
    """A text that is not a Python script; says where and why in one line."""


def parse_script(script: str) -> ast.Module:
    """The syntax tree of a script that Python would accept; NotPython where it would not. Runs nothing.

    Callers bound the length first. CPython bounds the depth of its own parser (measured on 3.11.7:
    RecursionError or MemoryError, no crash, for every kind of nesting in 128 KiB), so the depth is
    checked on the finished tree and before `compile`, whose recursion over `for` clauses of a
    comprehension has no bound.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(script)
            _require_shallow(tree)
            # Finds what the grammar alone allows: a return outside a function, a nonlocal name that is
            # not there.
            compile(tree, "script.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise NotPython(_describe(error)) from error
    except (RecursionError, MemoryError) as error:
        raise NotPython("nested too deeply") from error
    except (ValueError, OverflowError) as error:
        raise NotPython(str(error)[:_MESSAGE_CHARACTERS]) from error
    return tree


def tree_digest(script: str) -> str:
    """sha256 (hex) of the syntax tree: scripts that differ in comments, layout or docstrings share it.

    NotPython for a text that does not parse. Written by an own walk, not `ast.dump`: no recursion, and
    fields that newer Pythons add or leave out when empty do not change it.
    """
    digest = hashlib.sha256()
    for token in _tokens(parse_script(script)):
        digest.update(token.encode("utf-8", "surrogatepass"))
        digest.update(b"\x00")
    return digest.hexdigest()


def _describe(error: SyntaxError) -> str:
    where = f"line {error.lineno}: " if error.lineno else ""
    return f"{where}{error.msg}"[:_MESSAGE_CHARACTERS]


def _require_shallow(tree: ast.Module) -> None:
    waiting: list[tuple[ast.AST, int]] = [(tree, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise RecursionError
        depth += len(getattr(node, "generators", ()))
        waiting.extend((child, depth + 1) for child in ast.iter_child_nodes(node))


def _tokens(tree: ast.Module) -> Iterator[str]:
    """The tree in preorder, brackets around each node and list, so that different trees never read alike."""
    waiting: list[object] = [tree]
    while waiting:
        item = waiting.pop()
        if isinstance(item, ast.AST):
            yield f"({type(item).__name__}"
            waiting.append(_Mark(")"))
            waiting.extend(reversed(list(_fields(item))))
        elif isinstance(item, list):
            yield "["
            waiting.append(_Mark("]"))
            waiting.extend(reversed(item))
        else:
            yield _written(item)


class _Mark(str):
    """A token of the walk itself, as opposed to a name or a constant of the script."""


def _written(item: object) -> str:
    if isinstance(item, _Mark):
        return item
    if type(item) is int:
        return hex(item)  # repr of a large int is refused by Python's limit on decimal digits
    return f"{type(item).__name__} {item!r}"


def _fields(node: ast.AST) -> Iterator[object]:
    for name, value in ast.iter_fields(node):
        if name in ("type_ignores", "kind"):  # comments and the u of u"": nothing that runs
            continue
        kept = _without_docstring(node, value) if name == "body" else value
        if kept is not None and kept != []:
            yield _Mark(f".{name}")
            yield kept


def _without_docstring(node: ast.AST, body: object) -> object:
    if not isinstance(node, _WITH_DOCSTRING) or not isinstance(body, list) or not body:
        return body
    first = body[0]
    documented = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return body[1:] if documented else body
