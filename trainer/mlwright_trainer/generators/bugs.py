"""Mistakes that people and models make in such scripts; each makes a right script fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlwright_trainer.generators.script import Script

Edit = Callable[[Script], Script]


@dataclass(frozen=True)
class Bug:
    """A kind of mistake: how often it is made against others, and the forms it takes."""

    weight: float
    forms: tuple[Edit, ...]
    in_features: bool = False
    """A model that looks at no feature does not notice."""

    def put_into(self, script: Script, rng: random.Random) -> Script:
        """The script with this mistake in one of its forms."""
        return rng.choice(self.forms)(script)


def draw_bug(rng: random.Random, *, features_matter: bool) -> str:
    """A bug's name, as often as its weight says."""
    names = [name for name, bug in BUGS.items() if features_matter or not bug.in_features]
    return rng.choices(names, weights=[BUGS[name].weight for name in names])[0]


def _swap(part: str, old: str, new: str) -> Edit:
    return lambda script: script.swap(part, old, new)


def _lines(part: str, *lines: str) -> Edit:
    return lambda script: script.having(**{part: lines})


def _before_writing(line: str) -> Edit:
    return lambda script: script.having(write=(*script.write[:-1], line, script.write[-1]))


def _after(part: str, line: str) -> Edit:
    return lambda script: script.having(**{part: (*getattr(script, part), line)})


def _last_feature_line(line: str) -> Edit:
    return lambda script: script.having(features=(*script.features[:-1], line))


def _without_import(place: int) -> Edit:
    def edit(script: Script) -> Script:
        dropped = script.imports[place]
        return script.having(imports=tuple(line for line in script.imports if line != dropped))

    return edit


BUGS: Mapping[str, Bug] = {
    "missing_import": Bug(3, (_without_import(0), _without_import(1), _without_import(-1))),
    "typo_in_method": Bug(
        3,
        (
            _swap("load", "read_csv", "read_cvs"),
            _swap("fit", ".fit(", ".train("),
            _swap("predict", "predict_proba", "predict_probability"),
            _swap("write", "to_csv", "to_cvs"),
        ),
    ),
    "wrong_target_column": Bug(
        2,
        tuple(
            _swap("target", "train[target]", new) for new in ('train["target"]', 'train["label"]', "train.y")
        ),
    ),
    "wrong_column_dropped": Bug(
        2, tuple(_swap("features", "[key, target]", f'["{name}", target]') for name in ("Id", "index"))
    ),
    "text_not_encoded": Bug(
        3,
        (_lines("features", "X = train.drop(columns=[key, target])", "X_test = test.drop(columns=key)"),),
        in_features=True,
    ),
    "test_not_aligned": Bug(
        3,
        (
            _last_feature_line("X_test = pd.get_dummies(test)"),
            _last_feature_line("X_test = pd.get_dummies(test).iloc[:, 2:]"),
        ),
        in_features=True,
    ),
    "zeros_made_missing": Bug(1.5, (_after("load", "train = train.replace(0, None)"),)),
    "labels_mapped_twice": Bug(2, (_lines("target", 'y = train[target].map({"yes": 1, "no": 0})'),)),
    "both_probabilities": Bug(3, (_swap("predict", "[:, 1]", ""),)),
    "third_probability": Bug(1, (_swap("predict", "[:, 1]", "[:, 2]"),)),
    "fit_on_test": Bug(
        2, (_swap("fit", "(X, y)", "(X_test, test[target])"), _swap("fit", "(X, y)", "(X_test)"))
    ),
    "predict_on_train": Bug(
        2, tuple(_swap("predict", "(X_test)", new) for new in ("(X.head(100))", "(X[:-1])"))
    ),
    "undefined_name": Bug(
        3,
        (
            _swap("fit", "model.", "clf."),
            _swap("fit", "X, y", "X_train, y_train"),
            _swap("predict", "X_test", "test_features"),
        ),
    ),
    "wrong_file_name": Bug(
        3,
        tuple(
            _swap("write", "submission.csv", f"{name}.csv") for name in ("predictions", "output", "result")
        ),
    ),
    "wrong_output_columns": Bug(
        2,
        (
            _before_writing('sample.columns = ["Id", "prediction"]'),
            _before_writing('sample.columns = ["row_id", "probability"]'),
        ),
    ),
    "ids_missing": Bug(
        2,
        (
            _before_writing("sample = sample.head(100)"),
            _before_writing("sample = sample[sample[target] > 0.5]"),
        ),
    ),
    "wrong_data_folder": Bug(2, tuple(_swap("load", '"data/', new) for new in ('"', '"input/', '"../data/'))),
    "nothing_written": Bug(2, (_lines("write", "print(sample.head())"),)),
    "endless_search": Bug(0.3, (_after("fit", "for seed in range(100000): model.fit(X, y)"),)),
}
