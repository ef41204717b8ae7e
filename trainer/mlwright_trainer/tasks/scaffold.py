"""`mlwright task new`: a complete task folder from a table of one's own, or from a made-up one to replace."""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from mlwright_api.manifests import dump_manifest
from mlwright_api.metric_catalog import CATALOG, MetricInfo, nearest_metric
from mlwright_api.mltask import (
    MetricSpec,
    MLTask,
    MLTaskSpec,
    Split,
    SplitSpec,
    SubmissionKind,
    SubmissionSpec,
    TaskLimits,
    TaskReference,
)
from mlwright_api.results import GraderResult
from pydantic import ValidationError

from mlwright_trainer.errors import UserError, refusal
from mlwright_trainer.tasks import scaffold_text
from mlwright_trainer.tasks.answers import numbers_where_possible, read_text_table
from mlwright_trainer.tasks.folder import MANIFEST, TaskError, TaskFolder, load_task
from mlwright_trainer.tasks.preparation import prepare_task
from mlwright_trainer.tasks.references import record_reference
from mlwright_trainer.tasks.splitting import hashed_order
from mlwright_trainer.tasks.trial import grade_submission

SOURCE = "source.csv"
_SMALLEST_ROWS = 40
_MOST_CLASSES = 1000
_POSITIVE = {"1", "1.0", "yes", "true", "y", "t", "positive"}


Grade = Callable[[TaskFolder, bytes, tuple[Split, ...]], GraderResult]


@dataclass(frozen=True)
class NewTask:
    """What a task is made from; `kind` None: the metric's only kind."""

    folder: Path
    metric: str
    kind: SubmissionKind | None = None
    source: Path | None = None
    targets: tuple[str, ...] = ()
    id_column: str = "id"
    title: str | None = None
    seed: int = 0
    group: str | None = None
    """A column of the source whose rows of one value stay in one split."""


def new_task(new: NewTask, *, grade: Grade = grade_submission) -> TaskFolder:
    """Write a task folder that is ready to check: manifest, table, prepare.py, solution.py, the data itself.

    `grade` scores the constant predictor, whose score is recorded. Raises UserError; then nothing is there.
    """
    info = _metric(new.metric)
    kind = _kind(new, info)
    if new.folder.exists() and (not new.folder.is_dir() or any(new.folder.iterdir())):
        raise TaskError(f"{new.folder}: already exists; choose another name, nothing was written")
    table, targets = _source(new, kind)
    plan = _plan(table, targets, kind=kind, info=info)
    try:
        new.folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=new.folder.parent) as staging:
            made = Path(staging) / "task"
            made.mkdir()
            _write(made, new, table, plan)
            _prepare(made, grade)
            if new.folder.is_dir():
                new.folder.rmdir()
            made.rename(new.folder)
    except OSError as error:
        raise TaskError(f"{new.folder}: {refusal(error)}; nothing was written") from error
    return load_task(new.folder)


def _prepare(folder: Path, grade: Grade) -> None:
    """Make the data, and record what the constant predictor scores."""
    task = prepare_task(folder).task
    sample = grade(task, task.sample.read_bytes(), (Split.REWARD,))
    record_reference(folder / MANIFEST, baseline=sample.scores.get(Split.REWARD, 0.0))


@dataclass(frozen=True)
class Plan:
    """How the table becomes a task: the columns of the submission and how the answers are coded."""

    info: MetricInfo
    kind: SubmissionKind
    targets: tuple[str, ...]
    classes: tuple[str, ...]
    """For Probabilities: the positive class alone, or all classes, a column each; else empty."""

    @property
    def columns(self) -> tuple[str, ...]:
        return self.classes if len(self.classes) > 1 else self.targets


def _metric(name: str) -> MetricInfo:
    if name not in CATALOG:
        near = nearest_metric(name)
        hint = f"; did you mean {near}?" if near else ""
        raise UserError(f"--metric {name}: not a registered metric{hint} (the names: mlwright task metrics)")
    return CATALOG[name]


def _kind(new: NewTask, info: MetricInfo) -> SubmissionKind:
    if new.kind is None and len(info.kinds) == 1:
        return next(iter(info.kinds))
    if new.kind is None:
        return SubmissionKind.PROBABILITIES
    if new.kind not in info.kinds:
        raise UserError(f"--kind {new.kind}: {info.name} takes {' or '.join(sorted(info.kinds))}")
    return new.kind


def _source(new: NewTask, kind: SubmissionKind) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table as text, and the target columns."""
    if new.id_column in new.targets:
        raise UserError(f"--target {new.id_column}: is the id column (--id gives it another name)")
    if new.source is None and new.group is not None:
        raise UserError("--group needs --from: the made-up table has no groups")
    if new.source is None:
        return _made_up(kind, new), new.targets or ("target",)
    if not new.source.is_file():
        raise UserError(f"--from {new.source}: no such file")
    table = read_text_table(new.source)
    if not new.targets:
        raise UserError(
            f"--target is required: which of {', '.join(map(str, table.columns[:12]))} is to be predicted?"
        )
    missing = [target for target in new.targets if target not in table.columns]
    if missing:
        raise UserError(f"--target {missing[0]}: {new.source} has {', '.join(map(str, table.columns[:12]))}")
    if new.group is not None and (
        new.group not in table.columns or new.group in (*new.targets, new.id_column)
    ):
        raise UserError(f"--group {new.group}: no feature of {new.source} has this name")
    complete = table[(table[list(new.targets)] != "").all(axis=1)].reset_index(drop=True)
    if len(complete) < _SMALLEST_ROWS:
        raise UserError(
            f"--from {new.source}: {len(complete)} rows with a target; at least {_SMALLEST_ROWS} are needed"
        )
    return complete, new.targets


def _made_up(kind: SubmissionKind, new: NewTask) -> pd.DataFrame:
    """2,000 rows that can be learned from, the same on every machine."""
    rows = 2000
    first, second, noise = (
        (hashed_order(rows, seed=new.seed, purpose=name) + 0.5) / rows
        for name in ("first", "second", "noise")
    )
    signal = 0.6 * first + 0.3 * (second > 0.5) + 0.3 * noise
    group = pd.Series(["low", "high"]).take((second > 0.5).astype(int)).to_numpy()
    table = pd.DataFrame({"amount": first.round(4), "group": group})
    for target in new.targets or ("target",):
        values = (10 * signal).round(3) if kind is SubmissionKind.VALUES else (signal > 0.6).astype(int)
        table[target] = values
    return table.astype(str)


def _plan(table: pd.DataFrame, targets: tuple[str, ...], *, kind: SubmissionKind, info: MetricInfo) -> Plan:
    if len(targets) > 1 and not info.many_columns:
        raise UserError(f"--metric {info.name} scores one target, not {len(targets)}")
    if kind is SubmissionKind.VALUES or (kind is SubmissionKind.PROBABILITIES and len(targets) > 1):
        for target in targets:
            if numbers_where_possible(table[target]).dtype.kind != "f":
                raise UserError(f"--target {target}: not all of its values are numbers, as {info.name} needs")
        return Plan(info, kind, targets, ())
    if kind is SubmissionKind.LABELS:
        return Plan(info, kind, targets, ())
    return Plan(info, kind, targets, _classes(table[targets[0]], targets[0], info))


def _classes(column: pd.Series, target: str, info: MetricInfo) -> tuple[str, ...]:
    found = sorted(column.unique(), key=_natural)
    if len(found) < 2 or len(found) > _MOST_CLASSES:
        raise UserError(
            f"--target {target}: {len(found)} distinct values; 2 to {_MOST_CLASSES} classes are possible"
        )
    if len(found) == 2:
        return tuple(value for value in found if value.lower() in _POSITIVE)[:1] or (found[1],)
    if not info.many_columns:
        raise UserError(f"--target {target}: {len(found)} classes, and {info.name} is for two")
    return tuple(found)


def _natural(value: str) -> tuple[float, str]:
    try:
        return float(value), value
    except ValueError:
        return math.inf, value


def _write(folder: Path, new: NewTask, table: pd.DataFrame, plan: Plan) -> None:
    table.to_csv(folder / SOURCE, index=False, lineterminator="\n")
    digest = hashlib.sha256((folder / SOURCE).read_bytes()).hexdigest()
    settings = scaffold_text.Settings(
        id_column=new.id_column,
        targets=plan.targets,
        classes=plan.classes,
        kind=plan.kind,
        metric=plan.info.name,
        seed=new.seed,
        digest=digest,
        group=new.group,
    )
    (folder / "prepare.py").write_text(scaffold_text.preparer(settings), "utf-8")
    (folder / "solution.py").write_text(scaffold_text.solution(settings), "utf-8")
    try:
        manifest = _manifest(new, table, plan)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UserError(f"the table does not fit an MLTask: {where}: {first['msg']}") from error
    (folder / MANIFEST).write_text(dump_manifest(manifest), "utf-8")


def _manifest(new: NewTask, table: pd.DataFrame, plan: Plan) -> MLTask:
    name = re.sub(r"[^a-z0-9]+", "-", new.folder.resolve().name.lower()).strip("-")[:63] or "task"
    title = new.title or f"Predict {' and '.join(plan.targets)}"
    description = scaffold_text.description(
        title=title,
        targets=plan.targets,
        features=_features(table, plan.targets, new.id_column),
        columns=plan.columns,
        id_column=new.id_column,
        metric=plan.info,
    )
    return MLTask(
        api_version="mlwright.dev/v1alpha1",
        kind="MLTask",
        metadata={"name": name},
        spec=MLTaskSpec(
            title=title,
            description=description,
            metric=MetricSpec(name=plan.info.name),
            submission=SubmissionSpec(
                id_column=new.id_column, target_columns=list(plan.columns), kind=plan.kind
            ),
            splits=SplitSpec(strategy="Group", column=new.group) if new.group else SplitSpec(),
            limits=TaskLimits(timeout_seconds=60),
            reference=TaskReference(baseline=0),
        ),
    )


def _features(table: pd.DataFrame, targets: Sequence[str], id_column: str) -> list[tuple[str, str]]:
    """Each feature with what can be said of it without knowing what it means."""
    said = []
    for name in table.columns:
        if name in (*targets, id_column):
            continue
        column = numbers_where_possible(table[name])
        if column.dtype.kind == "f":
            said.append((str(name), f"number, {column.min():g} to {column.max():g}"))
        else:
            examples = ", ".join(f"`{value[:24]}`" for value in column.value_counts().index[:3])
            said.append((str(name), f"text, such as {examples}"))
    return said
