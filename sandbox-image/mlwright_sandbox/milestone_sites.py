"""Where in a script's syntax tree which milestone is reached."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlwright_sandbox.syntax_names import PREDICTING, Names, Role, dotted, open_mode, opens_for_writing

DEFAULT_SUBMISSION = "submission.csv"
IMPORTS, LOADED, BUILT, TRAINED, PREDICTED, VALIDATED, WRITTEN = range(7)
Marks = tuple[int, ...]

_LOADERS = re.compile(
    r"(pandas|polars|dask\.dataframe|pyarrow\.\w+)\.(read|scan)_\w+"
    r"|numpy\.(load|loadtxt|genfromtxt|fromfile|memmap)"
    r"|sklearn\.datasets\.(load|fetch)_\w+"
    r"|(pickle|json|joblib|torch)\.load"
    r"|scipy\.io\.loadmat|PIL\.Image\.open|cv2\.imread|imageio(\.v\d)?\.imread|matplotlib\.(pyplot|image)\.imread"
    r"|csv\.(reader|DictReader)"
)
_LOADING_METHODS = frozenset(
    {"read_csv", "read_parquet", "read_table", "read_json", "read_text", "read_bytes"}
)
_TRAINERS = frozenset(
    {
        "xgboost.train",
        "lightgbm.train",
        "catboost.train",
        "numpy.polyfit",
        "numpy.linalg.lstsq",
        "numpy.linalg.solve",
        "numpy.linalg.pinv",
        "scipy.linalg.lstsq",
        "scipy.optimize.minimize",
        "scipy.optimize.curve_fit",
    }
)
_CROSS_VALIDATION = {
    "cross_val_score": (TRAINED, PREDICTED, VALIDATED),
    "cross_validate": (TRAINED, PREDICTED, VALIDATED),
    "cross_val_predict": (TRAINED, PREDICTED),
}
_METRICS = re.compile(
    r"sklearn\.metrics\.(?!make_scorer|get_scorer|check_scoring|pairwise)[a-z]\w*"
    r"|scipy\.stats\.(pearsonr|spearmanr|kendalltau)"
)
_VALIDATED_ATTRIBUTES = frozenset({"best_score_", "oob_score_"})
_WRITING_METHODS = frozenset({"to_csv", "write_csv", "sink_csv"})
_EVALUATING_CONTEXTS = ("no_grad", "inference_mode")
_SKIPPED_FIELDS = frozenset({"annotation", "returns", "type_params", "pattern", "type_comment"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True)
class Place:
    """A node and where it hangs: `parent.field`, at `position` where that is a list."""

    node: ast.AST
    parent: ast.AST
    field: str
    position: int | None


@dataclass(frozen=True)
class Site(Place):
    """A place after which milestones are reached."""

    marks: Marks

    def replace(self, new: ast.expr) -> None:
        """Hang another expression where this one was."""
        if self.position is None:
            setattr(self.parent, self.field, new)
        else:
            getattr(self.parent, self.field)[self.position] = new

    def insert_after(self, statements: Sequence[ast.stmt]) -> None:
        """Add statements behind this one, in its block."""
        assert self.position is not None
        getattr(self.parent, self.field)[self.position + 1 : self.position + 1] = statements


def find_sites(tree: ast.Module, submission: str) -> list[Site]:
    """All sites in the order of the source; expressions for most, statements for imports and written files."""
    places = walk(tree)
    finder = _Finder(places, submission)
    sites = [site for place in places if (site := finder.site(place)) is not None]
    last_import = _last_import(tree, sites)
    if last_import is None:
        return sites
    after_imports = Site(tree.body[last_import], tree, "body", last_import, (IMPORTS,))
    return [after_imports, *sites]


def walk(tree: ast.AST) -> list[Place]:
    """Every node whose evaluation may be marked, parents first, in the order of the source.

    Not recursive, so that nesting has no limit here; annotations and patterns are left out: their text or their
    form matters, not their value.
    """
    found: list[Place] = []
    waiting = [*_children(tree)][::-1]
    while waiting:
        place = waiting.pop()
        found.append(place)
        waiting.extend([*_children(place.node)][::-1])
    return found


def _children(node: ast.AST) -> list[Place]:
    children: list[Place] = []
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        if isinstance(value, list):
            items = [(each, place) for place, each in enumerate(value) if isinstance(each, ast.AST)]
            children += [Place(each, node, field, place) for each, place in items]
        elif isinstance(value, ast.AST):
            children.append(Place(value, node, field, None))
    return children


class _Finder:
    """Decides for one place at a time; knows the names of the whole script."""

    def __init__(self, places: Sequence[Place], submission: str) -> None:
        self._names = Names([place.node for place in places])
        self._parents = {place.node: place.parent for place in places}
        self._submission = submission

    def site(self, place: Place) -> Site | None:
        """The site at this place, if it is one."""
        marks = self._marks(place)
        return Site(place.node, place.parent, place.field, place.position, marks) if marks else None

    def _marks(self, place: Place) -> Marks:
        node = place.node
        if isinstance(node, ast.With | ast.AsyncWith):
            return (WRITTEN,) if any(self._writes(item.context_expr) for item in node.items) else ()
        if isinstance(node, ast.Attribute):
            loaded = isinstance(node.ctx, ast.Load)
            return (PREDICTED, VALIDATED) if loaded and node.attr in _VALIDATED_ATTRIBUTES else ()
        if isinstance(node, ast.Await) and isinstance(node.value, ast.Call):
            return self._marks_of_call(node.value, place.parent)
        if isinstance(node, ast.Call) and not isinstance(place.parent, ast.Await):
            return self._marks_of_call(node, place.parent)
        return ()

    def _marks_of_call(self, call: ast.Call, parent: ast.AST) -> Marks:
        path = self._names.path(call.func)
        by_path = self._marks_of_path(path, call, parent)
        if by_path:
            return by_path
        if isinstance(call.func, ast.Attribute):
            return self._marks_of_method(call.func, call, parent)
        return (PREDICTED,) if self._applies_model(call) else ()

    def _marks_of_path(self, path: str, call: ast.Call, parent: ast.AST) -> Marks:
        name = path.rpartition(".")[2]
        if path in _TRAINERS:
            return (TRAINED,)
        if name in _CROSS_VALIDATION:
            return _CROSS_VALIDATION[name]
        if _METRICS.fullmatch(path) or self._compares(call, path):
            return (VALIDATED,)
        if self._names.builds_model(call):
            return (BUILT,)
        if _LOADERS.fullmatch(path) or (open_mode(call) or "w")[0] == "r":
            return () if isinstance(parent, ast.Expr) else (LOADED,)
        if path == "numpy.savetxt":
            return (WRITTEN,) if self._is_submission(call.args[:1]) else ()
        return ()

    def _marks_of_method(self, function: ast.Attribute, call: ast.Call, parent: ast.AST) -> Marks:
        method = function.attr
        if method in PREDICTING:
            return (PREDICTED,)
        if method in _LOADING_METHODS:
            return () if isinstance(parent, ast.Expr) else (LOADED,)
        if method in _WRITING_METHODS:
            targets = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "path_or_buf")]
            return (WRITTEN,) if self._is_submission(targets) else ()
        if method in ("write_text", "write_bytes"):
            return (WRITTEN,) if self._is_submission([function.value]) else ()
        role = self._names.role_of_receiver(function.value)
        if role is Role.WRITTEN_FILE:
            return (WRITTEN,) if method == "close" else ()
        return () if role is Role.PREPARATION else _marks_of_training(method, call, role)

    def _applies_model(self, call: ast.Call) -> bool:
        """`model(x)` where gradients are off: how torch predicts."""
        if self._names.role_of_receiver(call.func) is not Role.MODEL:
            return False
        node: ast.AST | None = call
        while node is not None:
            if isinstance(node, ast.With) and any(
                self._names.path(item.context_expr.func).endswith(_EVALUATING_CONTEXTS)
                for item in node.items
                if isinstance(item.context_expr, ast.Call)
            ):
                return True
            node = self._parents.get(node)
        return False

    def _writes(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or not opens_for_writing(node):
            return False
        path = node.args[:1] if isinstance(node.func, ast.Name) else [node.func]
        opened = [each.value if isinstance(each, ast.Attribute) else each for each in path]
        return self._is_submission(opened)

    def _is_submission(self, targets: Sequence[ast.AST]) -> bool:
        """Whether the file may be the submission: no other constant name was given."""
        if not targets:
            return False
        text = self._names.text(targets[0])
        return text is None or text.replace("\\", "/").rpartition("/")[2] == self._submission

    def _compares(self, call: ast.Call, path: str) -> bool:
        """Means over rows of a comparison with predictions, or of a power or size of a difference to them."""
        if path in ("numpy.mean", "numpy.average", "statistics.mean"):
            compared: Any = call.args[0] if call.args else None
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "mean":
            compared = call.func.value
        else:
            return False
        parts = [part for side in _sides(compared) for part in ast.walk(side)]
        return any(self._names.role(part) is Role.PREDICTIONS for part in parts)


def _marks_of_training(method: str, call: ast.Call, role: Role | None) -> Marks:
    match method:
        case "fit" | "partial_fit" | "backward":
            return (TRAINED,)
        case "fit_predict":
            return (TRAINED, PREDICTED)
        case "fit_transform":
            return (TRAINED,) if role is Role.MODEL else ()
        case "score" if len(call.args) + len(call.keywords) >= 2:
            return (PREDICTED, VALIDATED)
    return ()


def _sides(node: ast.AST | None) -> list[ast.expr]:
    """The two sides of `a == b`, of `(a - b) ** 2` and of `abs(a - b)`; nothing where a side is a constant."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        node = node.left
    elif isinstance(node, ast.Call) and (dotted(node.func) or "").rpartition(".")[2] in ("abs", "square"):
        node = node.args[0] if node.args else None
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        sides = [node.left, node.comparators[0]]
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        sides = [node.left, node.right]
    else:
        return []
    return [] if any(isinstance(side, ast.Constant) for side in sides) else sides


def _last_import(tree: ast.Module, sites: Sequence[Site]) -> int | None:
    """Place of the last top-level import before the first statement that reaches another milestone."""
    reaching = {site.node for site in sites}
    ends = None
    for place, statement in enumerate(tree.body):
        nodes = _executed(statement)
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes) and not _is_future(statement):
            ends = place
        if not reaching.isdisjoint(nodes):
            break
    return ends


def _executed(statement: ast.stmt) -> set[ast.AST]:
    """The nodes that run when the statement does: not the insides of functions and classes."""
    found: set[ast.AST] = set()
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        found.add(node)
        if not isinstance(node, _SCOPES):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
