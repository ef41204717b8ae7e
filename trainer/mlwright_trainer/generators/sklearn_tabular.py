"""Generator of short scikit-learn scripts for binary tabular tasks: good, weak, slow, fast and broken ones.

No script names a task's columns: id and target are those of the sample submission, so that what a model learns
from these carries over to any binary task whose folder has train.csv, test.csv and sample_submission.csv.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from mlwright_trainer.generators.bugs import BUGS, draw_bug
from mlwright_trainer.generators.example import Example
from mlwright_trainer.generators.families import Family, draw_family
from mlwright_trainer.generators.script import Script

# The quickstart's draft template, "# {metric}", filled in for the only metric that these scripts aim at.
PROMPT = "# Area under the ROC curve"
BROKEN_FRACTION = 0.45
SCALED_FRACTION = 0.6
ROUNDED_FRACTION = 0.08

_LOAD = (
    'train = pd.read_csv("data/train.csv")',
    'test = pd.read_csv("data/test.csv")',
    'sample = pd.read_csv("data/sample_submission.csv")',
    "key, target = sample.columns",
)
_NUMBERS_ONLY = (
    'X = train.drop(columns=[key, target]).select_dtypes("number"){fill}',
    "X_test = test[X.columns]{fill}",
)
_ONE_HOT = (
    "X = pd.get_dummies(train.drop(columns=[key, target])){fill}",
    "X_test = pd.get_dummies(test).reindex(columns=X.columns, fill_value=0){fill}",
)
_CODES = (
    "both = pd.concat([train, test]).drop(columns=[key, target]){fill}",
    'both = both.apply(lambda c: c if c.dtype.kind in "if" else pd.factorize(c)[0])',
    "X, X_test = both[: len(train)], both[len(train) :]",
)


@dataclass(frozen=True)
class LabelledExample:
    """An example with what is in it: the model's family, and its bug ("" for a right script)."""

    example: Example
    family: str
    bug: str


def examples(seed: int, count: int) -> list[Example]:
    """`count` examples, the same for the same seed."""
    return [labelled.example for labelled in labelled_examples(seed, count)]


def labelled_examples(seed: int, count: int) -> list[LabelledExample]:
    """`count` examples with their labels; example i does not depend on `count`."""
    rng = random.Random(seed)
    return [_one(rng) for _ in range(count)]


def _one(rng: random.Random) -> LabelledExample:
    family = draw_family(rng)
    script = right_script(family, rng)
    bug = draw_bug(rng, features_matter=not family.takes_anything) if rng.random() < BROKEN_FRACTION else ""
    if bug:
        script = BUGS[bug].put_into(script, rng)
    return LabelledExample(Example(prompt=PROMPT, completion=script.text()), family.name, bug)


def right_script(family: Family, rng: random.Random) -> Script:
    """A script of the family that runs and submits something valid."""
    imports = ["import pandas as pd", f"from {family.module} import {family.estimator}"]
    model = family.build(rng)
    if family.scaled and rng.random() < SCALED_FRACTION:
        imports += [
            "from sklearn.pipeline import make_pipeline",
            "from sklearn.preprocessing import StandardScaler",
        ]
        model = f"make_pipeline(StandardScaler(), {model})"
    validation_imports, validate = _validation(rng)
    predict, write = _submission(rng)
    return Script(
        imports=(*imports, *validation_imports),
        load=_LOAD,
        features=_features(family, rng),
        target=("y = train[target]",),
        model=(f"model = {model}",),
        validate=validate,
        fit=("model.fit(X, y)",),
        predict=predict,
        write=write,
    )


def _features(family: Family, rng: random.Random) -> tuple[str, ...]:
    lines = rng.choices((_NUMBERS_ONLY, _ONE_HOT, _CODES), weights=(4, 4, 2))[0]
    fills = (".fillna(0)", ".fillna(-1)", "") if family.takes_missing else (".fillna(0)", ".fillna(-1)")
    fill = rng.choice(fills)
    return tuple(line.format(fill=fill) for line in lines)


def _submission(rng: random.Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Lines that predict and lines that write; now and then probabilities are rounded to labels, which is weak."""
    rounded = ".round()" if rng.random() < ROUNDED_FRACTION else ""
    probabilities = f"model.predict_proba(X_test)[:, 1]{rounded}"
    write = 'sample.to_csv("submission.csv", index=False)'
    if rng.random() < 0.6:
        return (f"sample[target] = {probabilities}",), (write,)
    return (f"p = {probabilities}",), ("sample = pd.DataFrame({key: test[key], target: p})", write)


def _validation(rng: random.Random) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Import lines and lines of a validation, or none."""
    kind = rng.choices(("none", "folds", "holdout"), weights=(6, 1, 3))[0]
    if kind == "none":
        return (), ()
    if kind == "folds":
        folds = rng.choice(("2", "3"))
        return (
            ("from sklearn.model_selection import cross_val_score",),
            (
                f'folds = cross_val_score(model, X, y, cv={folds}, scoring="roc_auc")',
                f"print({rng.choice(('folds.mean(), folds.std()', 'folds.mean()'))})",
            ),
        )
    size, text = rng.choice(("0.1", "0.2", "0.25", "0.3")), rng.choice(("", '"held out", '))
    return (
        ("from sklearn.metrics import roc_auc_score", "from sklearn.model_selection import train_test_split"),
        (
            f"X_fit, X_held, y_fit, y_held = train_test_split(X, y, test_size={size}, random_state=0)",
            "model.fit(X_fit, y_fit)",
            f"print({text}roc_auc_score(y_held, model.predict_proba(X_held)[:, 1]))",
        ),
    )
