"""Mistakes that people and models make in such scripts; each makes a right script fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from mlwright_trainer.generators.script import Script

Bug = Callable[[Script, random.Random], Script]


def missing_import(script: Script, rng: random.Random) -> Script:
    dropped = rng.choice(script.imports)
    return script.having(imports=tuple(line for line in script.imports if line != dropped))


def typo_in_method(script: Script, rng: random.Random) -> Script:
    part, old, new = rng.choice(
        (
            ("load", "read_csv", "read_cvs"),
            ("fit", ".fit(", ".train("),
            ("predict", "predict_proba", "predict_probability"),
            ("write", "to_csv", "to_cvs"),
        )
    )
    return script.swap(part, old, new)


def wrong_target_column(script: Script, rng: random.Random) -> Script:
    return script.swap("target", "train[target]", rng.choice(('train["target"]', 'train["label"]', "train.target")))


def wrong_column_dropped(script: Script, rng: random.Random) -> Script:
    return script.swap("features", "[key, target]", rng.choice(('["Id", target]', '["index", target]')))


def text_not_encoded(script: Script, rng: random.Random) -> Script:
    features = ("X = train.drop(columns=[key, target])", "X_test = test.drop(columns=key)")
    return script.having(features=features)


def test_not_aligned(script: Script, rng: random.Random) -> Script:
    last = rng.choice(("X_test = pd.get_dummies(test)", "X_test = pd.get_dummies(test).iloc[:, 2:]"))
    return script.having(features=(*script.features[:-1], last))


def zeros_made_missing(script: Script, rng: random.Random) -> Script:
    return script.having(load=(*script.load, "train = train.replace(0, None)"))


def labels_mapped_twice(script: Script, rng: random.Random) -> Script:
    return script.having(target=('y = train[target].map({"yes": 1, "no": 0})',))


def both_probabilities(script: Script, rng: random.Random) -> Script:
    return script.swap("predict", "[:, 1]", "")


def third_probability(script: Script, rng: random.Random) -> Script:
    return script.swap("predict", "[:, 1]", "[:, 2]")


def fit_on_test(script: Script, rng: random.Random) -> Script:
    return script.swap("fit", "(X, y)", rng.choice(("(X_test, test[target])", "(X_test)")))


def predict_on_train(script: Script, rng: random.Random) -> Script:
    return script.swap("predict", "(X_test)", rng.choice(("(X.head(100))", "(X.iloc[:-1])")))


def undefined_name(script: Script, rng: random.Random) -> Script:
    part, old, new = rng.choice(
        (("fit", "model.", "clf."), ("predict", "X_test", "test_features"), ("fit", "X, y", "X_train, y_train"))
    )
    return script.swap(part, old, new)


def wrong_file_name(script: Script, rng: random.Random) -> Script:
    name = rng.choice(("predictions.csv", "output.csv", "submissions.csv"))
    return script.swap("write", "submission.csv", name)


def wrong_output_columns(script: Script, rng: random.Random) -> Script:
    names = rng.choice(('"Id", "prediction"', '"row_id", "probability"'))
    return script.having(write=(f"sample.columns = [{names}]", *script.write))


def ids_missing(script: Script, rng: random.Random) -> Script:
    change = rng.choice(("sample = sample.head(100)", "sample = sample[sample[target] > 0.5]"))
    return script.having(write=(change, *script.write))


def wrong_data_folder(script: Script, rng: random.Random) -> Script:
    return script.swap("load", '"data/', rng.choice(('"', '"input/', '"../data/')))


def nothing_written(script: Script, rng: random.Random) -> Script:
    return script.having(write=("print(sample.head())",))


def endless_search(script: Script, rng: random.Random) -> Script:
    line = "for seed in range(100000): model.fit(X, y)"
    return script.having(fit=(*script.fit, line))


BUGS: Mapping[str, tuple[Bug, float]] = {
    "missing_import": (missing_import, 3.0),
    "typo_in_method": (typo_in_method, 3.0),
    "wrong_target_column": (wrong_target_column, 2.0),
    "wrong_column_dropped": (wrong_column_dropped, 2.0),
    "text_not_encoded": (text_not_encoded, 3.0),
    "test_not_aligned": (test_not_aligned, 3.0),
    "zeros_made_missing": (zeros_made_missing, 1.5),
    "labels_mapped_twice": (labels_mapped_twice, 2.0),
    "both_probabilities": (both_probabilities, 3.0),
    "third_probability": (third_probability, 1.0),
    "fit_on_test": (fit_on_test, 2.0),
    "predict_on_train": (predict_on_train, 2.0),
    "undefined_name": (undefined_name, 3.0),
    "wrong_file_name": (wrong_file_name, 3.0),
    "wrong_output_columns": (wrong_output_columns, 2.0),
    "ids_missing": (ids_missing, 2.0),
    "wrong_data_folder": (wrong_data_folder, 2.0),
    "nothing_written": (nothing_written, 2.0),
    "endless_search": (endless_search, 0.3),
}


def draw_bug(rng: random.Random) -> str:
    """A bug's name, as often as its weight says."""
    return rng.choices(list(BUGS), weights=[weight for _, weight in BUGS.values()])[0]
