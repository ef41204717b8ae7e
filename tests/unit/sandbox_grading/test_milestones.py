"""Milestones: which code reaches which, in which order, and that nothing else about a script changes."""

from __future__ import annotations

import ast
import copy
import linecache
import marshal
import pickle
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
from mlwright_api.results import MILESTONES
from mlwright_sandbox.errors import SourceError
from mlwright_sandbox.mark import Mark, silent
from mlwright_sandbox.milestones import MARK_NAME, MilestoneLog, instrument

IMPORTS, LOADED, BUILT, TRAINED, PREDICTED, VALIDATED, WRITTEN = range(7)


class Anything:
    """Stands for every library: each attribute, call, item and comparison gives another one."""

    __all__ = ("RandomForestClassifier",)

    def __init__(self, *_: object) -> None:
        """Any arguments: also those of a metaclass, when a script derives a class from one."""

    def __getattr__(self, name: str) -> Anything:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything()

    def __iter__(self) -> Iterator[Anything]:
        return iter((Anything(), Anything()))

    def __len__(self) -> int:
        return 2

    def __call__(self, *_: object, **__: object) -> Anything:
        return Anything()

    def __getitem__(self, _: object) -> Anything:
        return Anything()

    def __enter__(self) -> Anything:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def __sub__(self, _: object) -> Anything:
        return Anything()

    __pow__ = __gt__ = __eq__ = __sub__  # type: ignore[assignment]  # comparisons give columns, as in pandas
    __hash__ = None  # type: ignore[assignment]  # as of what compares by value


LIBRARIES = ("pandas", "numpy", "sklearn", "xgboost", "lightgbm", "torch", "joblib", "scipy", "json")


def fake_import(name: str, *_: object) -> Any:
    """`import x` and `from x import y` for libraries that need not be there."""
    if name.partition(".")[0] in LIBRARIES:
        return Anything()
    return __import__(name, *_)  # type: ignore[arg-type]  # passes on what import passes


def marks_of(source: str, *, submission: str = "submission.csv", **names: object) -> list[int]:
    """The marks of a script in the order in which they are made, each counted once."""
    found: list[int] = []
    builtins = {**vars(__import__("builtins")), "__import__": fake_import, "open": Anything()}
    code = instrument(source, "script.py", submission=submission)
    names = {"train": Anything(), "X": Anything(), "y": Anything(), "model": Anything(), **names}
    exec(code, {"__builtins__": builtins, "__name__": "__main__", MARK_NAME: found.append, **names})
    return list(dict.fromkeys(found))


REACHES: list[tuple[str, list[int]]] = [
    # Imports: the last of the leading ones.
    ("import os", [IMPORTS]),
    ("'doc'\nfrom __future__ import annotations\nimport os", [IMPORTS]),
    ("from __future__ import annotations", []),
    ("x = 1", []),
    ("import os\nx = 1\nimport sys", [IMPORTS]),
    ("try:\n    import nowhere\nexcept ImportError:\n    nowhere = None", [IMPORTS]),
    ("if True:\n    import os", [IMPORTS]),
    ("def f():\n    import os", []),
    ("import pandas as pd\ndf = pd.read_csv('a')\nimport os", [IMPORTS, LOADED]),
    # Data.
    ("import pandas as pd\ndf = pd.read_csv('a')", [IMPORTS, LOADED]),
    ("from pandas import read_parquet as rp\ndf = rp('a')", [IMPORTS, LOADED]),
    ("import pandas as pd\npd.read_csv('a')", [IMPORTS]),
    ("import pandas as pd\nn = len(pd.read_csv('a'))", [IMPORTS, LOADED]),
    ("import numpy\nx = numpy.load('a')", [IMPORTS, LOADED]),
    ("from sklearn.datasets import load_iris\nX, y = load_iris(return_X_y=True)", [IMPORTS, LOADED]),
    ("with open('data/train.csv') as f:\n    text = f.read()", [LOADED]),
    ("with open('data/train.csv', 'rb') as f:\n    pass", [LOADED]),
    ("f = open('log.txt', 'w')", []),
    ("f = open('a', mode)", []),
    ("import json\nx = json.load(X)", [IMPORTS, LOADED]),
    ("text = X.read_text()", [LOADED]),
    ("import webbrowser\nx = X.open('report.html')", [IMPORTS]),
    # Models.
    ("from sklearn.linear_model import Ridge\nm = Ridge()", [IMPORTS, BUILT]),
    ("import sklearn.svm\nm = sklearn.svm.SVC()", [IMPORTS, BUILT]),
    ("from sklearn import tree as t\nm = t.DecisionTreeClassifier()", [IMPORTS, BUILT]),
    ("import xgboost as xgb\nm = xgb.XGBClassifier()", [IMPORTS, BUILT]),
    ("from sklearn.ensemble import *\nm = RandomForestClassifier()", [IMPORTS, BUILT]),
    ("from sklearn.preprocessing import StandardScaler\ns = StandardScaler()", [IMPORTS]),
    ("from sklearn.model_selection import KFold\nk = KFold()", [IMPORTS]),
    ("from sklearn.model_selection import GridSearchCV\nk = GridSearchCV(X, {})", [IMPORTS, BUILT]),
    ("import torch.nn as nn\nclass Net(nn.Module): pass\nn = Net()", [IMPORTS, BUILT]),
    ("import torch.nn as nn\nloss = nn.CrossEntropyLoss()", [IMPORTS]),
    ("import xgboost as xgb\nd = xgb.DMatrix(X)", [IMPORTS]),
    (
        "from sklearn.pipeline import make_pipeline\nfrom sklearn.preprocessing import StandardScaler\n"
        "p = make_pipeline(StandardScaler())\np.fit(X)",
        [IMPORTS],
    ),
    (
        "from sklearn.pipeline import Pipeline\nfrom sklearn.svm import SVC\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "p = Pipeline([('a', StandardScaler()), ('b', SVC())])\np.fit(X)",
        [IMPORTS, BUILT, TRAINED],
    ),
    # Training.
    ("model.fit(X, y)", [TRAINED]),
    ("for m in [model]:\n    m.fit(X, y)", [TRAINED]),
    ("from sklearn.preprocessing import StandardScaler\ns = StandardScaler()\ns.fit(X)", [IMPORTS]),
    ("from sklearn.preprocessing import StandardScaler\nZ = StandardScaler().fit_transform(X)", [IMPORTS]),
    ("from sklearn.preprocessing import StandardScaler\nZ = StandardScaler().fit(X).transform(X)", [IMPORTS]),
    (
        "from sklearn.preprocessing import StandardScaler\nclass T:\n    def run(self):\n"
        "        self.scaler = StandardScaler()\n        self.scaler.fit(X)\nT().run()",
        [IMPORTS],
    ),
    ("import xgboost as xgb\nb = xgb.train({}, X)", [IMPORTS, TRAINED]),
    ("import numpy as np\nw = np.linalg.lstsq(X, y)", [IMPORTS, TRAINED]),
    ("model.loss.backward()", [TRAINED]),
    ("model.train()", []),
    ("model.partial_fit(X)", [TRAINED]),
    ("c = model.fit_predict(X)", [TRAINED, PREDICTED]),
    # Predictions.
    ("p = model.predict(X)", [PREDICTED]),
    ("p = model.predict_proba(X)[:, 1]", [PREDICTED]),
    ("p = [m.decision_function(X) for m in [model]]", [PREDICTED]),
    (
        "import torch\nfrom torch import nn\nnet = nn.Linear(1, 1)\nq = net(X)\n"
        "with torch.no_grad():\n    p = net(X)",
        [IMPORTS, BUILT, PREDICTED],
    ),
    # Validation.
    ("from sklearn.metrics import roc_auc_score\ns = roc_auc_score(y, X)", [IMPORTS, VALIDATED]),
    ("from sklearn import metrics\nprint(metrics.log_loss(y, X))", [IMPORTS, VALIDATED]),
    ("from sklearn.metrics import make_scorer\ns = make_scorer(X)", [IMPORTS]),
    ("from sklearn.metrics import pairwise_distances\ns = pairwise_distances(X)", [IMPORTS]),
    ("s = model.score(X, y)", [PREDICTED, VALIDATED]),
    ("s = model.score()", []),
    (
        "from sklearn.model_selection import cross_val_score\ns = cross_val_score(model, X, y)",
        [IMPORTS, TRAINED, PREDICTED, VALIDATED],
    ),
    ("print(model.best_score_)", [PREDICTED, VALIDATED]),
    ("import numpy as np\np = model.predict(X)\na = np.mean(p == y)", [IMPORTS, PREDICTED, VALIDATED]),
    ("p = model.predict(X)\na = ((p > .5) == y).mean()", [PREDICTED, VALIDATED]),
    ("import numpy as np\npreds = X\nr = np.sqrt(np.mean((y - preds) ** 2))", [IMPORTS, VALIDATED]),
    ("import numpy as np\npreds = X\nr = np.mean(np.abs(y - preds))", [IMPORTS, VALIDATED]),
    ("share = (y == 1).mean()", []),
    ("average = X.mean()", []),
    # The submission.
    ("X.to_csv('submission.csv')", [WRITTEN]),
    ("X.to_csv('./submission.csv', index=False)", [WRITTEN]),
    ("X.to_csv(path_or_buf='submission.csv')", [WRITTEN]),
    ("OUT = 'submission.csv'\nX.to_csv(OUT)", [WRITTEN]),
    ("OUT = 'clean.csv'\nX.to_csv(OUT)", []),
    ("X.to_csv('clean.csv')", []),
    ("text = X.to_csv()", []),
    ("X.to_csv(X)", [WRITTEN]),
    ("from pathlib import Path\nX.to_csv(Path('.') / 'submission.csv')", [IMPORTS, WRITTEN]),
    ("with open('submission.csv', 'w') as f:\n    f.write('x')", [WRITTEN]),
    ("with open('log.txt', 'w') as f:\n    f.write('x')", []),
    ("f = open('submission.csv', 'w')\nf.write('x')\nf.close()", [WRITTEN]),
    ("import numpy as np\nnp.savetxt('submission.csv', X)", [IMPORTS, WRITTEN]),
]


@pytest.mark.parametrize(("source", "expected"), REACHES, ids=[source for source, _ in REACHES])
def test_code_reaches_its_milestones(source: str, expected: list[int]) -> None:
    assert marks_of(source, mode="r") == expected


def test_the_submission_may_have_another_name() -> None:
    assert marks_of("X.to_csv('out.csv')", submission="out.csv") == [WRITTEN]
    assert marks_of("X.to_csv('submission.csv')", submission="out.csv") == []


def test_a_chain_marks_in_the_order_in_which_it_is_evaluated() -> None:
    source = (
        "from sklearn.svm import SVC\nfrom sklearn.metrics import f1_score\n"
        "print(f1_score(y, SVC().fit(X, y).predict(X)))"
    )
    assert marks_of(source) == [IMPORTS, BUILT, TRAINED, PREDICTED, VALIDATED]


@pytest.mark.parametrize(
    "wrapped",
    [
        "def main():\n    {}\nmain()",
        "if __name__ == '__main__':\n    {}",
        "with X:\n    {}",
        "for _ in range(3):\n    {}",
        "while True:\n    {}\n    break",
        "try:\n    {}\nexcept ValueError:\n    pass\nelse:\n    pass\nfinally:\n    pass",
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}",
        "class C:\n    {}",
        "class C:\n    def m(self):\n        {}\nC().m()",
        "def f():\n    def g():\n        {}\n    g()\nf()",
        "def gen():\n    {}\n    yield 1\nlist(gen())",
        "match 1:\n    case 1:\n        {}",
        "import asyncio\nasync def f():\n    {}\nasyncio.run(f())",
        "exec_ = lambda: model.fit(X)\nexec_()",
        "(lambda m: m.fit(X))(model)",
        "[m.fit(X) for m in [model]]",
        "{{m.fit(X): 1 for m in [1] if model.fit(X)}} if False else model.fit(X)",
        "f'{{model.fit(X)!r:>10}}'",
        "print(*[model.fit(X)], sep=str(1))",
        "x = y if model.fit(X) else X",
        "assert model.fit(X)",
        "(fitted := model.fit(X))",
        "x = {{'a': model.fit(X)}}['a']",
        "def f(x=model.fit(X)): pass",
        "@(lambda f, _=model.fit(X): f)\ndef f(): pass",
        "model.fit(X).attribute",
        "return_ = not model.fit(X)",
    ],
)
def test_marks_work_wherever_code_may_stand(wrapped: str) -> None:
    assert TRAINED in marks_of(wrapped.format("model.fit(X)"))


def test_an_awaited_call_is_marked_when_its_result_is_there() -> None:
    events: list[object] = []

    class Model:
        async def fit(self) -> None:
            events.append("trained")

    source = "import asyncio\nasync def main():\n    await model.fit()\nasyncio.run(main())"
    code = instrument(source, "script.py")
    exec(code, {MARK_NAME: events.append, "model": Model()})
    assert events == [IMPORTS, "trained", TRAINED]


def test_a_call_that_fails_is_not_marked() -> None:
    class Model:
        def fit(self) -> None:
            raise RuntimeError

    with pytest.raises(RuntimeError):
        marks_of("import os\nmodel.fit()", model=Model())
    found: list[int] = []
    with pytest.raises(RuntimeError):
        exec(instrument("model.fit()", "s.py"), {MARK_NAME: found.append, "model": Model()})
    assert found == []


def test_a_traceback_is_the_one_of_the_original(tmp_path: Path) -> None:
    body = "    return str(model.fit(1 / 0).predict(\n        2))\n"
    source = f"import os\n\n\ndef train(model):\n{body}\n\ntrain(model)\n"
    path = tmp_path / "script.py"
    path.write_text(source)

    def failure(code: Any, **names: object) -> str:
        linecache.checkcache()
        with pytest.raises(ZeroDivisionError) as caught:
            exec(code, {"__name__": "__main__", "model": Anything(), **names})
        return "".join(traceback.format_exception(caught.value.with_traceback(caught.tb.tb_next)))

    plain = failure(compile(source, str(path), "exec", dont_inherit=True))
    assert failure(instrument(source, str(path)), **{MARK_NAME: print}) == plain
    assert "line 5, in train" in plain


def test_annotations_keep_their_text() -> None:
    source = (
        "from __future__ import annotations\n"
        "def f(a: model.fit(1)) -> model.best_score_: pass\n"
        "x: model.predict(2) = model.fit(3)\n"
    )
    found: list[int] = []
    names: dict[str, Any] = {MARK_NAME: found.append, "model": Anything()}
    exec(instrument(source, "s.py"), names)
    assert names["f"].__annotations__ == {"a": "model.fit(1)", "return": "model.best_score_"}
    assert names["__annotations__"] == {"x": "model.predict(2)"}
    assert found == [TRAINED]


def test_patterns_keep_their_form_and_the_code_around_them_its_marks() -> None:
    source = "match model.predict(3):\n    case model.best_score_: hit = model.fit(1)\n"
    found: list[int] = []
    model = SimpleNamespace(best_score_=3, predict=lambda x: x, fit=lambda _: "fitted")
    names: dict[str, Any] = {MARK_NAME: found.append, "model": model}
    exec(instrument(source, "s.py"), names)
    assert names["hit"] == "fitted"
    assert found == [PREDICTED, TRAINED]


def test_future_imports_of_this_package_do_not_leak_into_scripts() -> None:
    names: dict[str, Any] = {MARK_NAME: print}
    exec(instrument("def f(a: 1 + 1): pass", "s.py"), names)
    assert names["f"].__annotations__ == {"a": 2}


def test_the_docstring_of_a_script_and_of_its_functions_stay() -> None:
    names: dict[str, Any] = {MARK_NAME: print}
    exec(instrument("'about'\nimport os\ndef f():\n    'does'\n    return 1", "s.py"), names)
    assert (names["__doc__"], names["f"].__doc__) == ("about", "does")


def test_zero_argument_super_and_private_names_work() -> None:
    source = (
        "class A:\n    def fit(self): return [1]\n"
        "class B(A):\n    def __init__(self): self.__m = self\n"
        "    def fit(self): return super().fit()\n"
        "    def run(self): return self.__m.fit()\n"
        "result = B().run()\n"
    )
    found: list[int] = []
    names: dict[str, Any] = {MARK_NAME: found.append}
    exec(instrument(source, "s.py"), names)
    assert names["result"] == [1]
    assert found


def test_warnings_of_the_compiler_come_once_as_without_marks() -> None:
    source = "x = 1\nif x is 1: pass\np = '\\d'\n"

    def warned(compiled: Any) -> list[tuple[str, int]]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            compiled()
        return sorted((str(each.message), each.lineno) for each in caught)

    plain = warned(lambda: compile(source, "s.py", "exec", dont_inherit=True))
    assert warned(lambda: instrument(source, "s.py")) == plain
    assert len(plain) == 2


BROKEN = {
    "a syntax error": ("x = (\n", "SyntaxError", "line 1: '(' was never closed"),
    "an indentation error": ("if x:\npass", "IndentationError", "line 2"),
    "return outside": ("import os\nreturn 1", "SyntaxError", "line 2: 'return' outside function"),
    "a late future import": ("x = 1\nfrom __future__ import annotations", "SyntaxError", "line 2"),
    "a NUL byte": ("x = 1\0", "", "null byte"),
    "a lone surrogate": ("x = '\ud800'", "UnicodeEncodeError", "surrogates"),
    "deep signs": ("-" * 5000 + "1", "RecursionError", "recursion"),
    "deep brackets": ("[" * 5000, "SyntaxError", "too many nested parentheses"),
    "deep lambdas": ("lambda:" * 10_000 + "0", "MemoryError", ""),
    "a long sum": ("1" + "+1" * 20_000, "RecursionError", "recursion"),
    "a long chain": ("x" + ".fit()" * 20_000, "RecursionError", "recursion"),
    "deep blocks": ("".join(" " * i + "if 1:\n" for i in range(200)), "IndentationError", "too many levels"),
}


@pytest.mark.parametrize(("source", "kind", "text"), BROKEN.values(), ids=BROKEN.keys())
def test_what_python_cannot_compile_is_a_typed_error_with_pythons_own_behind_it(
    source: str, kind: str, text: str
) -> None:
    with pytest.raises(SourceError) as caught:
        instrument(source, "script.py")
    assert caught.value.kind in (kind, type(caught.value.__cause__).__name__)
    assert caught.value.kind == type(caught.value.__cause__).__name__
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_script_too_deep_for_marks_runs_without_them() -> None:
    source = "model" + ".fit()" * 400 + "\nresult = 1\ndef f(a: 1 + 1): pass\n"
    names: dict[str, Any] = {MARK_NAME: pytest.fail, "model": Anything()}
    compile(source, "s.py", "exec")
    exec(instrument(source, "s.py"), names)
    assert names["result"] == 1
    assert names["f"].__annotations__ == {"a": 2}


def test_a_byte_order_mark_is_no_error() -> None:
    names: dict[str, Any] = {MARK_NAME: print}
    exec(instrument("\ufeffx = 1", "s.py"), names)
    assert names["x"] == 1


def test_no_source_can_spell_the_name_of_the_mark() -> None:
    assert not MARK_NAME.isidentifier()
    with pytest.raises(SyntaxError):
        ast.parse(f"{MARK_NAME}(0)")


def test_a_milestone_counts_if_no_later_one_was_set() -> None:
    log = MilestoneLog()
    for index in (0, 1, 3, 2, 3, 5, 4, 6, 0):
        log.mark(index)
    assert log.reached == ["imports", "data_loaded", "model_trained", "validated", "submission_written"]


def test_indices_of_no_milestone_change_nothing() -> None:
    log = MilestoneLog()
    for index in (-1, 7, 1000, -5):
        log.mark(index)
    assert log.reached == []
    log.mark(0)
    assert log.reached == ["imports"]


def test_all_seven_can_be_reached() -> None:
    log = MilestoneLog()
    for index in range(7):
        log.mark(index)
    assert tuple(log.reached) == MILESTONES


def test_a_mark_passes_on_only_what_is_new() -> None:
    found: list[int] = []
    mark = Mark(found.append)
    for index in (0, 0, 3, 2, 3, 6, 6):
        mark(index)
    assert found == [0, 3, 6]


def test_a_mark_whose_descriptor_the_script_closed_disturbs_nothing() -> None:
    def closed(_index: int) -> None:
        raise OSError(9, "Bad file descriptor")

    Mark(closed)(0)


def test_a_mark_travels_to_other_processes_as_one_that_does_nothing() -> None:
    found: list[int] = []
    mark = Mark(found.append)
    for copied in (pickle.loads(pickle.dumps(mark)), copy.deepcopy(mark)):
        copied(3)
        assert copied is silent()
    assert found == []


def test_a_function_of_an_instrumented_script_can_be_sent_to_another_process() -> None:
    """As cloudpickle (joblib, loky) does: the code by value, with the globals that it names."""
    main: dict[str, Any] = {MARK_NAME: Mark(no_mark)}
    exec(instrument("def f(m):\n    return m.fit(1)\n", "s.py"), main)
    code = main["f"].__code__
    sent = marshal.dumps(code), pickle.dumps({name: main[name] for name in code.co_names if name in main})
    received = FunctionType(marshal.loads(sent[0]), pickle.loads(sent[1]))
    assert MARK_NAME in received.__globals__
    assert received(SimpleNamespace(fit=lambda x: x + 1)) == 2


def no_mark(index: int) -> None:
    raise AssertionError(f"mark {index} came from another process")
