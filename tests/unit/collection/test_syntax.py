"""Digests of syntax trees, and how much nesting a script may have."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from mlwright_api.rollout import FILES_BYTES
from mlwright_trainer.collection.syntax import MAX_DEPTH, NotPython, parse_script, tree_digest

SCRIPT = '''\
"""Fits a model."""
import pandas as pd  # data


def load(path):
    """Read it."""
    return pd.read_csv(path)


train = load("data/train.csv")
print(train["y"].mean(), 0x10)
'''


def test_comments_layout_and_docstrings_do_not_change_the_digest() -> None:
    other = """\
import pandas as pd

def load( path ):
        # four more spaces
        return pd.read_csv(
            path,
        )
train = load('data/train.csv')
print(train['y'].mean(), 16)"""
    assert tree_digest(SCRIPT) == tree_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("x = 1", "x = 2"),
        ("x = 1", "x = 1.0"),
        ("x = 1", "x = True"),
        ("x = 'a'", "x = b'a'"),
        ("x = 'None'", "x = None"),
        ("f(a, b)", "f(b, a)"),
        ("f(a, b=1)", "f(a, 1)"),
        ("a - b - c", "a - (b - c)"),
        ("x = [[], []]", "x = [[[]]]"),
        ("x = {**a}", "x = {'a': a}"),
        ("if a:\n    b\nc", "if a:\n    b\n    c"),
        ("def f():\n    'doc'", "def f():\n    return 'doc'"),
        ("x", "'x'"),
        ("'first'\nf()", "f()\n'first'"),
        ("x = f'{a}b'", "x = f'{a!r}b'"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
    ],
)
def test_scripts_that_differ_in_anything_that_runs_have_other_digests(one: str, other: str) -> None:
    assert tree_digest(one) != tree_digest(other)


def test_the_digest_is_a_known_one_so_that_ledgers_stay_comparable() -> None:
    assert tree_digest("print(1)\n") == "d73d0c27e136010ff9f8132962c0f6e781635136b596b99de00d57d1a3d3bf6c"


def test_texts_that_do_not_parse_have_no_digest() -> None:
    with pytest.raises(NotPython):
        tree_digest("x = (")


def test_an_integer_with_more_digits_than_python_prints_has_a_digest() -> None:
    assert tree_digest(f"x = 0x{'f' * 20_000}") != tree_digest(f"x = 0x{'f' * 20_001}")


def test_an_error_says_the_line_and_stays_short() -> None:
    with pytest.raises(NotPython, match=r"^line 2: "):
        parse_script("x = 1\ny = = 2\n")
    with pytest.raises(NotPython) as caught:
        parse_script(f"nonlocal {'x' * 5000}")
    assert len(str(caught.value)) <= 200


@pytest.mark.parametrize("source", ["return 1", "def f():\n    nonlocal x", "break", "await f()"])
def test_what_only_the_compiler_finds_is_found(source: str) -> None:
    with pytest.raises(NotPython):
        parse_script(source)


def test_an_invalid_escape_is_a_warning_for_nobody(recwarn: pytest.WarningsRecorder) -> None:
    parse_script(r"x = '\d'")
    assert not recwarn.list


NESTED: dict[str, Callable[[int], str]] = {
    "unary": lambda n: "x = " + "-" * n + "1",
    "not": lambda n: "x = " + "not " * n + "1",
    "attributes": lambda n: "x = a" + ".b" * n,
    "calls": lambda n: "x = a" + "()" * n,
    "subscripts": lambda n: "x = a" + "[0]" * n,
    "sum": lambda n: "x = 1" + "+1" * n,
    "power": lambda n: "x = 1" + "**1" * n,
    "lambda": lambda n: "x = " + "lambda:" * n + "1",
    "conditional": lambda n: "x = " + "1 if 1 else " * n + "1",
    "elif": lambda n: "if 1:\n pass\n" + "elif 1:\n pass\n" * n,
    "parentheses": lambda n: "x = " + "(" * n + ")" * n,
    "brackets": lambda n: "x = " + "[" * n + "]" * n,
    "clauses": lambda n: "x = [1 " + "for a in b " * n + "]",
    "decorated": lambda n: "@a\n" * n + "def f(): pass",
    "with": lambda n: "with a" + ", a" * n + ": pass",
    "indents": lambda n: "".join(" " * k + "if 1:\n" for k in range(min(n, 400))) + " " * 400 + "pass",
    "f-string": lambda n: "x = " + "f'{" * n + "1" + "}'" * n,
    "patterns": lambda n: "match a:\n case " + "[" * n + "]" * n + ": pass",
    "stars": lambda n: "x = [" + "*[" * n + "]" * n + "]",
    "colons": lambda n: "def f(): " + "x: " * n,
}
HARMLESS = {"decorated"}


def longest(kind: str) -> str:
    per_level = len(NESTED[kind](200)) - len(NESTED[kind](199)) or 1
    return NESTED[kind](FILES_BYTES // per_level - 20)


@pytest.mark.parametrize("kind", sorted(NESTED))
def test_any_kind_of_nesting_that_fits_a_script_is_refused_and_never_fatal(kind: str) -> None:
    refusals: list[str] = []

    def parse() -> None:
        try:
            parse_script(longest(kind))
        except NotPython as error:
            refusals.append(str(error))

    # In a thread, where the collector may call it and the stack is what the platform gives a thread.
    thread = threading.Thread(target=parse)
    thread.start()
    thread.join()
    assert bool(refusals) == (kind not in HARMLESS)


@pytest.mark.parametrize("kind", ["unary", "attributes", "sum", "elif", "clauses"])
def test_nesting_that_people_write_is_fine(kind: str) -> None:
    assert parse_script(NESTED[kind](60)).body
    with pytest.raises(NotPython, match="nested too deeply"):
        parse_script(NESTED[kind](MAX_DEPTH + 1))
