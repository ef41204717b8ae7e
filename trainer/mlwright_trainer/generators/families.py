"""Families of classifiers that the sklearn-tabular generator writes, with their hyper-parameters."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """A kind of model: where it is imported from, how it is built, and how often it is written.

    `choices` lists the values of each hyper-parameter; about half of them are set in a script, the first always.
    `scaled`: wants standardized inputs. `takes_missing`: accepts NaN.
    """

    name: str
    module: str
    estimator: str
    share: float
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()
    scaled: bool = False
    takes_missing: bool = False

    def build(self, rng: random.Random) -> str:
        """An expression that makes the model."""
        arguments = [
            f"{name}={rng.choice(values)}"
            for place, (name, values) in enumerate(self.choices)
            if place == 0 or rng.random() < 0.5
        ]
        return f"{self.estimator}({', '.join(arguments)})"


_SEED = ("random_state", ("0", "1", "42"))

FAMILIES: tuple[Family, ...] = (
    Family("dummy", "sklearn.dummy", "DummyClassifier", 0.05, (("strategy", ('"prior"',)),)),
    Family("naive_bayes", "sklearn.naive_bayes", "GaussianNB", 0.17, (("var_smoothing", ("1e-9", "1e-3")),)),
    Family(
        "logistic_regression",
        "sklearn.linear_model",
        "LogisticRegression",
        0.19,
        (("max_iter", ("200", "500")), ("C", ("0.1", "1.0", "10.0"))),
        scaled=True,
    ),
    Family(
        "tree",
        "sklearn.tree",
        "DecisionTreeClassifier",
        0.19,
        (("max_depth", ("2", "3", "5", "8", "None")), ("min_samples_leaf", ("5", "20")), _SEED),
        takes_missing=True,
    ),
    Family(
        "neighbors",
        "sklearn.neighbors",
        "KNeighborsClassifier",
        0.13,
        (("n_neighbors", ("5", "15", "25", "50")), ("weights", ('"distance"',))),
        scaled=True,
    ),
    Family(
        "random_forest",
        "sklearn.ensemble",
        "RandomForestClassifier",
        0.09,
        (("n_estimators", ("50", "100", "200")), ("min_samples_leaf", ("2", "5")), _SEED),
        takes_missing=True,
    ),
    Family(
        "extra_trees",
        "sklearn.ensemble",
        "ExtraTreesClassifier",
        0.06,
        (("n_estimators", ("50", "100", "200")), ("min_samples_leaf", ("2", "5")), _SEED),
        takes_missing=True,
    ),
    Family(
        "gradient_boosting",
        "sklearn.ensemble",
        "GradientBoostingClassifier",
        0.05,
        (("n_estimators", ("50", "100")), ("learning_rate", ("0.05", "0.1")), ("max_depth", ("3", "4")), _SEED),
    ),
    Family(
        "histogram_boosting",
        "sklearn.ensemble",
        "HistGradientBoostingClassifier",
        0.07,
        (("max_iter", ("50", "100")), ("learning_rate", ("0.05", "0.1")), ("max_leaf_nodes", ("15", "31")), _SEED),
        takes_missing=True,
    ),
)


def draw_family(rng: random.Random, families: Sequence[Family] = FAMILIES) -> Family:
    """One family, as often as its share says."""
    return rng.choices(families, weights=[family.share for family in families])[0]
