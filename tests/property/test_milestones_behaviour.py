"""Marks never change what a script does: the standard library as a corpus, and programs made at random."""

from __future__ import annotations

import ast
import contextlib
import io
import sysconfig
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlwright_sandbox.errors import SourceError
from mlwright_sandbox.milestone_sites import Site, walk
from mlwright_sandbox.milestones import MARK_NAME, insert_marks, instrument

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
CORPUS = sorted(LIBRARY.glob("*.py"))[::4]


def marked_everywhere(source: str, filename: str) -> CodeType:
    """A mark after every call and every await of a call: far more than `instrument` sets."""
    tree = ast.parse(source, filename)
    awaited = {place.node.value for place in walk(tree) if isinstance(place.node, ast.Await)}
    sites = [
        Site(place.node, place.parent, place.field, place.position, (0, 1))
        for place in walk(tree)
        if isinstance(place.node, ast.Call | ast.Await) and place.node not in awaited
    ]
    insert_marks(sites)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code: CodeType = compile(tree, filename, "exec", dont_inherit=True)
    return code


def plain(source: str, filename: str) -> CodeType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(source, filename, "exec", dont_inherit=True)


def lines_by_function(code: CodeType) -> Iterator[tuple[str, int, frozenset[int | None]]]:
    """Name, first line and all lines of every code object."""
    yield code.co_qualname, code.co_firstlineno, frozenset(line for *_, line in code.co_lines())
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from lines_by_function(constant)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_a_module_of_the_standard_library_keeps_its_functions_and_lines(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    expected = list(lines_by_function(plain(source, str(path))))
    assert list(lines_by_function(marked_everywhere(source, str(path)))) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [each[:2] for each in lines_by_function(instrument(source, str(path)))] == [
            each[:2] for each in expected
        ]


RUNS = {
    "textwrap": "out = textwrap.wrap('the quick brown fox jumps over the lazy dog ' * 5, 31)",
    "statistics": "out = (statistics.stdev([1, 2, 4, 8]), statistics.quantiles(range(50), n=7))",
    "difflib": "out = list(difflib.unified_diff('one two three'.split(), 'one tree four'.split()))",
    "fractions": "out = fractions.Fraction('3.14159').limit_denominator(100) ** 3",
    "colorsys": "out = colorsys.hls_to_rgb(*colorsys.rgb_to_hls(.2, .4, .7))",
    "shlex": "out = shlex.split('''a 'b c' \"d\\\\\" e\" f#g''')",
    "string": "out = string.Template('$a ${b} $$').substitute(a=1, b=2)",
    "heapq": "out = list(heapq.merge([1, 4, 7], [2, 5], key=lambda x: x))",
    "ast": "out = ast.unparse(ast.parse('def f(a, *b): return [x async for x in a if b]'))",
    "dataclasses": "out = str(dataclasses.make_dataclass('P', [('x', int, 3)])())",
    "tokenize": "import io\nout = [t.string for t in tokenize.generate_tokens(io.StringIO('a = b+1\\n').readline)]",
    "contextlib": "with contextlib.suppress(KeyError) as c: {}[1]\nout = contextlib.nullcontext(3).__enter__()",
    "pprint": "out = pprint.pformat({'a': [list(range(30))] * 3})",
    "configparser": "p = configparser.ConfigParser()\np.read_string('[a]\\nb = 1\\n')\nout = p.getint('a', 'b')",
}


@pytest.mark.parametrize(("name", "use"), RUNS.items(), ids=RUNS.keys())
def test_a_module_of_the_standard_library_works_the_same_with_marks_everywhere(name: str, use: str) -> None:
    path = LIBRARY / (f"{name}.py" if (LIBRARY / f"{name}.py").exists() else f"{name}/__init__.py")
    marks: list[int] = []

    def result(code: CodeType) -> object:
        module = ModuleType(name)
        module.__dict__[MARK_NAME] = marks.append
        module.__dict__["__file__"] = str(path)
        exec(code, module.__dict__)
        used: dict[str, Any] = {name: module}
        exec(use, used)
        return used["out"]

    source = path.read_text(encoding="utf-8")
    assert result(marked_everywhere(source, str(path))) == result(plain(source, str(path)))
    assert marks


# Programs at random: expressions over a model that notes what is done to it, in statements of every kind.

ATOMS = st.sampled_from(
    ["m", "1", "'a'", "[1, 2]", "x", "m.best_score_", "(yield_ := 2)", "{}", "f'{m.fit(1)!s:>5}'"]
)


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        inner.map(lambda a: f"m.fit({a})"),
        inner.map(lambda a: f"m.predict(x={a})"),
        pairs.map(lambda ab: f"m.score({ab[0]}, {ab[1]})"),
        inner.map(lambda a: f"m.fit(*[{a}]).predict({a})"),
        pairs.map(lambda ab: f"({ab[0]}, {ab[1]})"),
        pairs.map(lambda ab: f"({ab[0]} if {ab[1]} else 0)"),
        pairs.map(lambda ab: f"({ab[0]} or {ab[1]})"),
        inner.map(lambda a: f"[{a} for _ in range(2)]"),
        inner.map(lambda a: f"(lambda m=m: {a})()"),
        inner.map(lambda a: f"str({a})[0]"),
        inner.map(lambda a: f"m.fail({a})"),
    )


EXPRESSIONS = st.recursive(ATOMS, combined, max_leaves=6)


def indented(body: str) -> str:
    return "\n".join("    " + line for line in body.splitlines())


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        bodies.map(lambda body: f"for i in range(2):\n{indented(body)}"),
        bodies.map(lambda body: f"if m.fit(0):\n{indented(body)}\nelse:\n    pass"),
        bodies.map(lambda body: f"try:\n{indented(body)}\nexcept ValueError as e:\n    print('caught', e)"),
        bodies.map(lambda body: f"try:\n{indented(body)}\nfinally:\n    print('finally')"),
        bodies.map(lambda body: f"with m.context() as x:\n{indented(body)}"),
        bodies.map(lambda body: f"with open('submission.csv', 'w') as x:\n{indented(body)}"),
        bodies.map(lambda body: f"def f(m, x=1):\n{indented(body)}\n    return m.predict(x)\nprint(f(m))"),
        bodies.map(lambda body: f"class C:\n{indented(body)}"),
        bodies.map(lambda body: f"def g(m, x=2):\n{indented(body)}\n    yield m.fit(x)\nprint(list(g(m)))"),
        bodies.map(lambda body: f"async def a(m, x=3):\n{indented(body)}\nimport asyncio\nasyncio.run(a(m))"),
        bodies.map(
            lambda body: (
                f"match m.predict(1):\n    case 3:\n        pass\n    case _:\n{indented(indented(body))}"
            )
        ),
    )


SIMPLE = st.one_of(
    EXPRESSIONS.map(lambda e: f"x = {e}"),
    EXPRESSIONS.map(lambda e: f"print({e})"),
    EXPRESSIONS.map(lambda e: e),
    EXPRESSIONS.map(lambda e: f"x: {e} = 3"),
    EXPRESSIONS.map(lambda e: f"assert {e}, 'no'"),
    EXPRESSIONS.map(lambda e: f"m.items[str({e})] = {e}"),
    EXPRESSIONS.map(lambda e: f"x = y = {e}\ndel y"),
    st.just("import os"),
)
PROGRAMS = st.lists(st.recursive(SIMPLE, compound, max_leaves=5), min_size=1, max_size=5).map("\n".join)


class Model:
    """Notes what is done to it; every result is simple and the same at every run."""

    best_score_ = 0.5

    def __init__(self) -> None:
        self.events: list[str] = []
        self.items: dict[str, object] = {}

    def _note(self, what: str, *given: object, **named: object) -> Model:
        self.events.append(f"{what} {len(given)} {sorted(named)}")
        return self

    def fit(self, *given: object, **named: object) -> Model:
        return self._note("fit", *given, **named)

    def predict(self, *given: object, **named: object) -> int:
        self._note("predict", *given, **named)
        return len(self.events)

    def score(self, *given: object) -> float:
        self._note("score", *given)
        return 0.25

    def fail(self, *_: object) -> None:
        raise ValueError("as asked")

    @contextlib.contextmanager
    def context(self) -> Iterator[int]:
        self._note("enter")
        yield 7
        self._note("exit")

    def __str__(self) -> str:
        return "model"

    __repr__ = __str__


def behaviour(code: CodeType) -> tuple[object, ...]:
    """Everything that can be seen of a run: what was done, printed, raised and where, and left in the globals."""
    model, output = Model(), io.StringIO()
    names: dict[str, Any] = {
        "__name__": "__main__",
        "m": model,
        "x": 0,
        "print": lambda *values: print(*values, file=output),
        "open": lambda *_: contextlib.nullcontext(5),
        MARK_NAME: lambda index: None,
    }
    raised: object = None
    try:
        exec(code, names)
    except Exception as error:
        places = [(frame.name, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)[1:]]
        raised = (type(error), str(error), [place for place in places if place[0] != "<lambda>"])
    left = {name: str(value) for name, value in names.items() if isinstance(value, str | int | float | list)}
    return model.events, output.getvalue(), raised, left, sorted(model.items)


@pytest.mark.filterwarnings("ignore:coroutine")
@settings(max_examples=150)
@given(program=PROGRAMS)
def test_a_program_at_random_behaves_the_same_with_marks(program: str) -> None:
    expected = attempt(plain, program)
    marked = attempt(instrument, program)
    if isinstance(expected, CodeType):
        assert isinstance(marked, CodeType)
        assert behaviour(marked) == behaviour(expected)
        assert behaviour(marked_everywhere(program, "script.py")) == behaviour(expected)
    else:
        assert isinstance(marked, SourceError)
        assert str(marked.__cause__) == str(expected)


def attempt(compiler: Callable[[str, str], CodeType], source: str) -> CodeType | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compiler(source, "script.py")
        except (SyntaxError, SourceError) as error:
            return error


@given(source=st.text(max_size=200) | st.text(alphabet="()[]{}:=\n \t'\"\\fx1#@", max_size=80))
def test_any_text_is_compiled_or_refused_with_a_typed_error(source: str) -> None:
    found = attempt(instrument, source)
    if isinstance(found, Exception):
        assert isinstance(found, SourceError)
        assert str(found).isprintable()
        assert len(str(found)) <= 512
