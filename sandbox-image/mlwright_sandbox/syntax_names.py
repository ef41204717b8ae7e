"""What the names of a script stand for, as far as its text alone tells: imports, models, predictions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto

MODEL_LIBRARIES = frozenset(
    {
        "sklearn",
        "xgboost",
        "lightgbm",
        "catboost",
        "torch",
        "torchvision",
        "keras",
        "tensorflow",
        "statsmodels",
        "transformers",
        "imblearn",
        "interpret",
        "pytorch_lightning",
        "lightning",
    }
)
_PREPARATION = (
    "sklearn.preprocessing.",
    "sklearn.impute.",
    "sklearn.feature_extraction.",
    "sklearn.feature_selection.",
    "sklearn.model_selection.",
    "sklearn.decomposition.",
    "sklearn.random_projection.",
    "sklearn.kernel_approximation.",
    "sklearn.compose.ColumnTransformer",
    "sklearn.compose.make_column_",
    "sklearn.pipeline.FeatureUnion",
    "sklearn.utils.",
    "sklearn.metrics.",
    "sklearn.datasets.",
    "sklearn.exceptions.",
    "sklearn.inspection.",
    "torch.utils.",
    "torch.optim.",
    "torch.Tensor",
    "torch.Generator",
    "torchvision.transforms.",
    "torchvision.datasets.",
    "xgboost.DMatrix",
    "xgboost.QuantileDMatrix",
    "lightgbm.Dataset",
    "catboost.Pool",
    "imblearn.over_sampling.",
    "imblearn.under_sampling.",
)
_NO_MODELS = ("Loss", "Transformer", "Tokenizer", "Config", "Arguments", "Warning", "Error")
_SEARCHES = re.compile(r"sklearn\.model_selection\.\w*(SearchCV|ThresholdClassifier\w*)")
_PIPELINES = frozenset({"Pipeline", "make_pipeline"})
_MODEL_SUFFIX = re.compile(
    r"[A-Z]\w*(Classifier|Regressor|Regression|SVC|SVR|NB|Ridge|Lasso|ElasticNet|Perceptron|Pipeline)(CV)?"
)
PREDICTING = frozenset(
    {"predict", "predict_proba", "predict_log_proba", "decision_function", "score_samples"}
)
_ASSUMED_PREDICTIONS = re.compile(r"pred|oof|hat$|prob|guess", re.IGNORECASE)
_MODE = re.compile(r"[rwaxbt+]{1,3}")
_CHAINED = frozenset({"fit", "set_params", "to", "cuda", "cpu", "eval"})


class Role(Enum):
    """What an object is for."""

    MODEL = auto()
    PREPARATION = auto()
    PREDICTIONS = auto()
    WRITTEN_FILE = auto()


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` as text, None for anything but names and attributes of names."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


class Names:
    """Flow-insensitive: a name is what it was last bound to anywhere in the script."""

    def __init__(self, nodes: Sequence[ast.AST]) -> None:
        self._imports = dict(_imports(nodes))
        self._own_models = {
            node.name
            for node in nodes
            if isinstance(node, ast.ClassDef) and any(self._is_model_class(base) for base in node.bases)
        }
        self._roles: dict[str, Role] = {}
        self._texts: dict[str, str] = {}
        for target, value in _bindings(nodes):
            self._bind(target, value)

    def path(self, node: ast.AST) -> str:
        """The dotted path of a function or class with its import resolved; empty where it has none."""
        name = dotted(node)
        if name is None:
            return ""
        root, dot, rest = name.partition(".")
        return self._imports.get(root, root) + dot + rest

    def role(self, node: ast.AST) -> Role | None:
        """What an expression is for, None where the text does not tell."""
        while isinstance(node, ast.Await | ast.Subscript):
            node = node.value
        if isinstance(node, ast.Call):
            return self._role_of_call(node)
        name = dotted(node)
        if name is None:
            return None
        known = self._roles.get(name)
        if known is None and _ASSUMED_PREDICTIONS.search(name):
            return Role.PREDICTIONS
        return known

    def text(self, node: ast.AST) -> str | None:
        """The constant text of an expression, also through a name or `Path(...)`; None where it is not constant."""
        if isinstance(node, ast.Call) and self.path(node.func).endswith("Path") and node.args:
            node = node.args[-1]
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        return self._texts.get(dotted(node) or "")

    def builds_model(self, call: ast.Call) -> bool:
        """Whether a call constructs something that can be trained to predict."""
        return self._role_of_construction(call) is Role.MODEL

    def _bind(self, target: ast.AST, value: ast.AST) -> None:
        name = dotted(target)
        if name is None:
            return
        role, text = self.role(value), self.text(value)
        if role is not None:
            self._roles[name] = role
        if text is not None:
            self._texts[name] = text

    def _role_of_call(self, call: ast.Call) -> Role | None:
        if isinstance(call.func, ast.Attribute):
            if call.func.attr in PREDICTING:
                return Role.PREDICTIONS
            if call.func.attr in _CHAINED:
                return self.role_of_receiver(call.func.value)
        if opens_for_writing(call):
            return Role.WRITTEN_FILE
        return self._role_of_construction(call)

    def role_of_receiver(self, node: ast.AST) -> Role | None:
        """As `role`, but a name that merely sounds like predictions is not taken for them."""
        if isinstance(node, ast.Call):
            return self.role(node)
        return self._roles.get(dotted(node) or "")

    def _role_of_construction(self, call: ast.Call) -> Role | None:
        path = self.path(call.func)
        name = path.rpartition(".")[2]
        if path in self._own_models:
            return Role.MODEL
        if name in _PIPELINES:
            return self._role_of_pipeline(call)
        if _SEARCHES.fullmatch(path) or (path == name and _MODEL_SUFFIX.fullmatch(name)):
            return Role.MODEL
        if path.startswith(_PREPARATION):
            return Role.PREPARATION
        if not name[:1].isupper() or name.endswith(_NO_MODELS):
            return None
        return Role.MODEL if path.partition(".")[0] in MODEL_LIBRARIES else None

    def _role_of_pipeline(self, call: ast.Call) -> Role:
        """A pipeline of nothing but preparation is preparation."""
        roles = {self.role_of_receiver(step) for step in _steps(call)} - {None}
        return Role.PREPARATION if roles == {Role.PREPARATION} else Role.MODEL

    def _is_model_class(self, base: ast.expr) -> bool:
        path = self.path(base)
        return path.partition(".")[0] in MODEL_LIBRARIES and not path.startswith(_PREPARATION)


def _steps(call: ast.Call) -> Iterator[ast.expr]:
    """The steps of `make_pipeline(a, b)` and of `Pipeline([("a", a), ("b", b)])`."""
    for argument in [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "steps")]:
        if isinstance(argument, ast.List | ast.Tuple):
            yield from (
                each.elts[-1] if isinstance(each, ast.Tuple) and each.elts else each for each in argument.elts
            )
        else:
            yield argument


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (root, root)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _bindings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, ast.AST]]:
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield target, node.value
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            yield node.target, node.value


def open_mode(call: ast.Call) -> str | None:
    """The mode of `open(path, mode)` or `path.open(mode)`; None where the call opens nothing we know."""
    function = call.func
    if isinstance(function, ast.Name) and function.id == "open":
        place = 1
    elif isinstance(function, ast.Attribute) and function.attr == "open":
        place = 1 if dotted(function.value) in ("io", "gzip", "bz2", "lzma", "codecs") else 0
    else:
        return None
    given = [keyword.value for keyword in call.keywords if keyword.arg == "mode"] or call.args[
        place : place + 1
    ]
    if not given:
        return "r"
    mode = given[0]
    text = mode.value if isinstance(mode, ast.Constant) and isinstance(mode.value, str) else ""
    return text if _MODE.fullmatch(text) else None


def opens_for_writing(call: ast.Call) -> bool:
    """Whether a call opens a file to write it."""
    mode = open_mode(call)
    return mode is not None and any(letter in mode for letter in "wax")
