"""The files that `mlwright task new` writes, as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlwright_api.metric_catalog import MetricInfo
from mlwright_api.mltask import Direction, SubmissionKind

_WORST_TABLE_COLUMNS = 200


@dataclass(frozen=True)
class Settings:
    """What the written files have as constants."""

    id_column: str
    targets: tuple[str, ...]
    classes: tuple[str, ...]
    kind: SubmissionKind
    metric: str
    seed: int
    digest: str
    group: str | None = None


_PREPARE = '''"""Makes the task's data from source.csv: `mlwright task prepare DIR`, or python prepare.py OUT."""

from __future__ import annotations

import sys
from pathlib import Path

from mlwright_trainer.tasks.own_table import prepare_own_table

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    prepare_own_table(
        Path(sys.argv[1]),
        source=HERE / "source.csv",
        sha256={digest!r},
        id_column={id_column!r},
        targets={targets!r},
        classes={classes!r},
        constant={constant!r},
        seed={seed!r},
        group={group!r},
    )
'''

_SOLUTION = '''"""Reference solution: histogram gradient boosting on the columns as they are."""

import pandas as pd
{imports}from sklearn.ensemble import HistGradientBoosting{learner}
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.compose import make_column_selector, make_column_transformer

train = pd.read_csv("data/train.csv")
test = pd.read_csv("data/test.csv")
targets = {targets!r}
features = [column for column in test.columns if column != {id_column!r}]


def model():
    encoder = make_column_transformer(
        (
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
            make_column_selector(dtype_exclude="number"),
        ),
        remainder="passthrough",
    )
    return make_pipeline(encoder, HistGradientBoosting{learner}(random_state=0))


submission = test[[{id_column!r}]].copy()
for target in targets:
    fitted = model().fit(train[features], train[target])
{predict}
submission.to_csv("submission.csv", index=False)
'''

_PREDICT = {
    "values": "    submission[target] = fitted.predict(test[features]){clip}",
    "labels": "    submission[target] = fitted.predict(test[features])",
    "one": "    submission[target] = fitted.predict_proba(test[features])[:, 1]",
    "many": (
        "    for name, column in zip(fitted.classes_, fitted.predict_proba(test[features]).T):\n"
        "        submission[str(name)] = column"
    ),
}


def preparer(settings: Settings) -> str:
    """prepare.py."""
    return _PREPARE.format(
        digest=settings.digest,
        id_column=settings.id_column,
        targets=settings.targets,
        classes=settings.classes,
        constant=_constant(settings),
        seed=settings.seed,
        group=settings.group,
    )


def solution(settings: Settings) -> str:
    """solution.py: a plain one, to be improved."""
    regression = settings.kind is SubmissionKind.VALUES
    if regression:
        clip = ".clip(min=0)" if settings.metric in ("rmsle", "mcrmsle") else ""
        predict = _PREDICT["values"].format(clip=clip)
    elif settings.kind is SubmissionKind.LABELS:
        predict = _PREDICT["labels"]
    else:
        predict = _PREDICT["many" if len(settings.classes) > 1 else "one"]
    return _SOLUTION.format(
        imports="",
        learner="Regressor" if regression else "Classifier",
        targets=list(settings.targets),
        id_column=settings.id_column,
        predict=predict,
    )


def _constant(settings: Settings) -> str:
    """Which constant predictor is best for the metric."""
    if settings.kind is SubmissionKind.LABELS:
        return "mode"
    if settings.metric in ("mae", "median_ae", "mape", "smape", "rmspe"):
        return "median"
    return "geometric" if settings.metric in ("rmsle", "mcrmsle") else "mean"


def description(
    *,
    title: str,
    targets: Sequence[str],
    features: Sequence[tuple[str, str]],
    columns: Sequence[str],
    id_column: str,
    metric: MetricInfo,
) -> str:
    """The description to start from; what the columns mean is for a person to add."""
    rows = [f"| `{name}` | {meaning} |" for name, meaning in features[:_WORST_TABLE_COLUMNS]]
    named = ", ".join(f"`{column}`" for column in columns[:20]) + (" and so on" if len(columns) > 20 else "")
    better = "more" if metric.direction is Direction.MAXIMIZE else "less"
    lines = [
        f"{title.rstrip('.')}. (Replace this paragraph: what is it for, and what do the columns mean?)",
        "",
        "## Files",
        "",
        f"- `data/train.csv`: rows with {' and '.join(f'`{target}`' for target in targets)}",
        "- `data/test.csv`: rows without",
        "- `data/sample_submission.csv`: a submission in the right format, the same for every row",
        "",
        "| column | meaning |",
        "|---|---|",
        f"| `{id_column}` | number of the row, without meaning |",
        *rows,
        "",
        "## Submission",
        "",
        f"Write `submission.csv` with the columns `{id_column}` and {named}: one row for each row of `test.csv`. "
        f"Submissions are judged by {metric.name} ({metric.title}): {better} is better.",
        "",
    ]
    return "\n".join(lines)
