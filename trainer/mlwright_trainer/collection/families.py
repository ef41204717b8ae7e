"""Which kind of model a script fits, read off its syntax tree; for the report, never for a reward."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from mlwright_trainer.collection.syntax import NotPython, parse_script

NONE = "none"
"""No model that we know: a rule, a copied sample, or a library outside the table."""
SEVERAL = "several"
UNPARSED = "not Python"

_NAMES: Mapping[str, str] = {
    "gradient boosting": "GradientBoosting* HistGradientBoosting* XGB* LGBM* CatBoost* catboost.CatBoost",
    "random forest": "RandomForest*",
    "extra trees": "ExtraTrees* ExtraTree*",
    "decision tree": "DecisionTree*",
    "bagging": "Bagging*",
    "adaptive boosting": "AdaBoost*",
    "logistic regression": "LogisticRegression LogisticRegressionCV Logit MNLogit",
    "linear model": (
        "LinearRegression Ridge RidgeCV RidgeClassifier RidgeClassifierCV Lasso LassoCV LassoLars "
        "LassoLarsCV ElasticNet ElasticNetCV MultiTaskLasso MultiTaskElasticNet Lars LarsCV "
        "BayesianRidge ARDRegression "
        "SGDClassifier SGDRegressor Perceptron PassiveAggressive* HuberRegressor RANSACRegressor "
        "TheilSenRegressor QuantileRegressor PoissonRegressor GammaRegressor TweedieRegressor OLS WLS GLS GLM"
    ),
    "support vector machine": "SVC SVR NuSVC NuSVR LinearSVC LinearSVR",
    "nearest neighbours": "KNeighbors* RadiusNeighbors* NearestCentroid",
    "naive Bayes": "GaussianNB MultinomialNB BernoulliNB ComplementNB CategoricalNB",
    "neural network": "MLPClassifier MLPRegressor",
    "discriminant analysis": "LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis",
    "Gaussian process": "GaussianProcess*",
    "kernel ridge": "KernelRidge",
    "partial least squares": "PLSRegression PLSCanonical",
    "isotonic regression": "IsotonicRegression",
    "constant predictor": "DummyClassifier DummyRegressor",
    SEVERAL: "VotingClassifier VotingRegressor StackingClassifier StackingRegressor",
}
_OWN_MODULES: Mapping[str, str] = {
    "xgboost.train": "gradient boosting",
    "lightgbm.train": "gradient boosting",
    "xgboost.cv": "gradient boosting",
    "lightgbm.cv": "gradient boosting",
}
_NETWORKS = ("torch.nn", "keras", "tensorflow.keras", "tensorflow.nn", "flax", "jax.nn")
_LIBRARIES = frozenset({"sklearn", "xgboost", "lightgbm", "catboost", "statsmodels", "imblearn"})
_WRAPPERS = frozenset({"bagging", "adaptive boosting"})
"""Families that are built around another: they name the script, and the inner model does not."""


def model_family(script: str) -> str:
    """The one family of models that `script` uses, `"several"`, `"none"`, or `"not Python"`.

    Counts estimators of scikit-learn, XGBoost, LightGBM, CatBoost, statsmodels and networks of torch or
    Keras that are used after their import; an import alone is no model.
    """
    try:
        families = model_families(script)
    except NotPython:
        return UNPARSED
    wrapped = families & _WRAPPERS
    families = wrapped or families
    if len(families) > 1:
        return SEVERAL
    return next(iter(families), NONE)


def model_families(script: str) -> frozenset[str]:
    """Every family in use; NotPython for a text that does not parse."""
    tree = parse_script(script)
    imported = _imports(tree)
    found = (_family(name) for name in _uses(tree, imported))
    return frozenset(family for family in found if family is not None)


def _imports(tree: ast.Module) -> dict[str, str]:
    """What each imported name stands for, as a dotted path."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return names


def _uses(tree: ast.Module, imported: Mapping[str, str]) -> Iterator[str]:
    """The dotted path of every expression that begins with an imported name; the longest paths too."""
    stars = [path.removesuffix(".*") for path in imported.values() if path.endswith(".*")]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        root, rest = _path(node)
        if root in imported:
            yield ".".join((imported[root], *rest))
        elif root and not rest:
            yield from (f"{module}.{root}" for module in stars)


def _path(node: ast.expr) -> tuple[str, list[str]]:
    """The name an attribute chain begins with ("" where it is no name), and the attributes after it."""
    rest: list[str] = []
    while isinstance(node, ast.Attribute):
        rest.append(node.attr)
        node = node.value
    return (node.id if isinstance(node, ast.Name) else ""), rest[::-1]


def _family(path: str) -> str | None:
    if any(path.startswith(f"{network}.") for network in _NETWORKS):
        return "neural network"
    if path in _OWN_MODULES:
        return _OWN_MODULES[path]
    root, _, _ = path.partition(".")
    name = path.rpartition(".")[2]
    return _family_of_class(name) if root in _LIBRARIES else None


def _family_of_class(name: str) -> str | None:
    if name in _EXACT:
        return _EXACT[name]
    return next((family for start, family in _STARTS if name.startswith(start)), None)


_PATTERNS = [(pattern, family) for family, patterns in _NAMES.items() for pattern in patterns.split()]
_EXACT = {pattern: family for pattern, family in _PATTERNS if not pattern.endswith("*")}
_STARTS = [(pattern[:-1], family) for pattern, family in _PATTERNS if pattern.endswith("*")]
