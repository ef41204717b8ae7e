"""Families of classifiers that the sklearn-tabular generator writes, with their hyper-parameters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A kind of model: where it is imported from, how it is built, and how often it is written.

    `choices` lists the values of each hyper-parameter; about half of them are set in a script, the first always.
    `scaled`: wants standardized inputs. `takes_missing`: accepts NaN. `takes_anything`: never looks at its inputs.
    """

    name: str
    module: str
    estimator: str
    share: float
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    scaled: bool = False
    takes_missing: bool = False
    takes_anything: bool = False

    def build(self, rng: random.Random) -> str:
        """An expression that makes the model."""
        arguments = [
            f"{name}={rng.choice(values)}"
            for place, (name, values) in enumerate(self.choices)
            if place == 0 or rng.random() < 0.5
        ]
        return f"{self.estimator}({', '.join(arguments)})"


_SEED = ("random_state", ("0", "42"))
_LEAF = ("min_samples_leaf", ("2", "5", "20"))
_RATE = ("learning_rate", ("0.05", "0.1", "0.2"))
_BALANCED = ("class_weight", ('"balanced"',))
_FOREST = (
    ("n_estimators", ("30", "50", "100", "150")),
    ("max_depth", ("4", "8", "None")),
    _LEAF,
    ("max_features", ('"sqrt"', "0.3", "0.5")),
    _SEED,
)

FAMILIES: tuple[Family, ...] = (
    Family(
        "dummy",
        "sklearn.dummy",
        "DummyClassifier",
        0.05,
        (("strategy", ('"prior"', '"most_frequent"')),),
        takes_missing=True,
        takes_anything=True,
    ),
    Family(
        "naive_bayes",
        "sklearn.naive_bayes",
        "GaussianNB",
        0.17,
        (("var_smoothing", ("1e-9", "1e-6", "1e-3")),),
    ),
    Family(
        "logistic_regression",
        "sklearn.linear_model",
        "LogisticRegression",
        0.19,
        (
            ("max_iter", ("100", "200", "500")),
            ("C", ("0.01", "0.1", "1.0")),
            ("solver", ('"lbfgs"', '"liblinear"')),
            _BALANCED,
        ),
        scaled=True,
    ),
    Family(
        "tree",
        "sklearn.tree",
        "DecisionTreeClassifier",
        0.19,
        (
            ("max_depth", ("1", "2", "3", "5", "8", "None")),
            _LEAF,
            ("criterion", ('"gini"', '"entropy"')),
            _BALANCED,
            _SEED,
        ),
        takes_missing=True,
    ),
    Family(
        "neighbors",
        "sklearn.neighbors",
        "KNeighborsClassifier",
        0.13,
        (
            ("n_neighbors", ("1", "3", "5", "15", "50")),
            ("weights", ('"distance"', '"uniform"')),
            ("p", ("1", "2")),
        ),
        scaled=True,
    ),
    Family("random_forest", "sklearn.ensemble", "RandomForestClassifier", 0.09, _FOREST, takes_missing=True),
    Family("extra_trees", "sklearn.ensemble", "ExtraTreesClassifier", 0.06, _FOREST, takes_missing=True),
    Family(
        "gradient_boosting",
        "sklearn.ensemble",
        "GradientBoostingClassifier",
        0.05,
        (
            ("n_estimators", ("30", "50", "100")),
            _RATE,
            ("max_depth", ("2", "3", "4")),
            ("subsample", ("0.5", "0.8")),
            _SEED,
        ),
    ),
    Family(
        "histogram_boosting",
        "sklearn.ensemble",
        "HistGradientBoostingClassifier",
        0.07,
        (
            ("max_iter", ("30", "50", "100", "150")),
            _RATE,
            ("max_leaf_nodes", ("8", "31")),
            ("l2_regularization", ("0.1", "1.0")),
            _SEED,
        ),
        takes_missing=True,
    ),
)


def draw_family(rng: random.Random, families: Sequence[Family] = FAMILIES) -> Family:
    """One family, as often as its share says."""
    return rng.choices(families, weights=[family.share for family in families])[0]
