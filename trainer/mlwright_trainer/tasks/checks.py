"""Checks of a task's data: each proves one thing, and says it in one line. Pure, but for reading the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from mlwright_api.mltask import Split
from scipy.stats import chi2_contingency, ks_2samp, spearmanr

from mlwright_trainer.tasks.answers import Answers, read_ids
from mlwright_trainer.tasks.checksums import CHECKSUMS, difference, digest_files, read_checksums
from mlwright_trainer.tasks.duplicates import find_duplicates
from mlwright_trainer.tasks.folder import DATA_FOLDERS, TaskFolder
from mlwright_trainer.tasks.leaks import find_leaks, targets_of
from mlwright_trainer.tasks.public_files import PublicFiles, canonical

_UNLIKELY = 0.001
_MOST_CLASSES = 50
_MOST_DUPLICATES = 0.05
_SHOWN = 3


class Status(StrEnum):
    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    status: Status
    line: str
    measured: float | None = None
    """What was measured, where that is what spec.reference should record."""


@dataclass(frozen=True)
class TaskData:
    """All that the data checks look at; `answers` are without Final where the read could not be logged."""

    task: TaskFolder
    answers: Answers
    files: PublicFiles

    @property
    def sample_ids(self) -> list[str]:
        return read_ids(self.task.sample, self.task.spec.submission.id_column)


def check_data(data: TaskData) -> Iterator[Check]:
    """Every check that needs neither the grader nor a sandbox."""
    yield check_checksums(data)
    yield check_disjoint(data)
    yield check_hidden(data)
    yield check_readable(data)
    yield check_duplicates(data)
    yield from check_grouped(data)
    yield check_stratified(data)
    yield check_order(data)


def check_checksums(data: TaskData) -> Check:
    """The data is what checksums.txt says."""
    recorded = read_checksums(data.task.root)
    if recorded is None:
        return Check(
            "checksums", Status.WARN, f"no {CHECKSUMS}: nobody can tell whether the data is the same"
        )
    present = [name for name in DATA_FOLDERS if (data.task.root / name).is_dir()]
    wrong = difference(recorded, digest_files(data.task.root, present))
    if wrong:
        return Check("checksums", Status.FAIL, f"the data is not what {CHECKSUMS} records: {wrong}")
    return Check("checksums", Status.PASS, f"{len(recorded)} files are what {CHECKSUMS} records")


def check_disjoint(data: TaskData) -> Check:
    """No id is in two splits, and none of them among the rows that scripts may train on."""
    test = set(canonical(pd.Series(data.answers.ids)))
    train = _train_ids(data)
    common = train & test
    if common:
        line = f"{len(common)} ids are in Train and in a hidden split, such as {min(common)}"
        return Check("splits-disjoint", Status.FAIL, line)
    if not data.answers.of(Split.REWARD).ids or not data.answers.of(Split.SELECTION).ids:
        return Check(
            "splits-disjoint", Status.FAIL, "private/answers.csv needs rows of Reward and of Selection"
        )
    sizes = {"Train": len(train)} | {str(split): data.answers.counts().get(split, 0) for split in Split}
    if not sizes[Split.FINAL]:
        line = "no Final answers: a run on this task cannot be judged once at its end"
        return Check("splits-disjoint", Status.WARN, line)
    return Check(
        "splits-disjoint", Status.PASS, ", ".join(f"{name} {size:,}" for name, size in sizes.items())
    )


def _train_ids(data: TaskData) -> set[str]:
    """Ids of public tables that are neither the sample submission nor the test rows."""
    id_column = data.task.spec.submission.id_column
    hidden = set(canonical(pd.Series(data.answers.ids)))
    found: set[str] = set()
    for table in data.files.tables:
        if id_column in table.columns:
            ids = set(table.columns[id_column])
            found |= ids if not hidden <= ids or len(ids) > len(set(data.sample_ids)) else set()
    return found


def check_hidden(data: TaskData) -> Check:
    """No public file gives answers away, whatever it is called."""
    leaks = find_leaks(data.files, data.answers, sample_ids=data.sample_ids)
    if leaks:
        shown = "; ".join(map(str, leaks[:_SHOWN]))
        more = f"; and {len(leaks) - _SHOWN} more" if len(leaks) > _SHOWN else ""
        return Check("answers-hidden", Status.FAIL, shown + more)
    columns = sum(table.columns.shape[1] for table in data.files.tables)
    return Check("answers-hidden", Status.PASS, f"none of {columns:,} public columns gives answers away")


def check_readable(data: TaskData) -> Check:
    """Every public file could be looked into."""
    if data.files.unread:
        names = ", ".join(data.files.unread[:_SHOWN])
        line = f"not looked into, so it may hold answers: {names} ({len(data.files.unread)} files)"
        return Check("public-files", Status.WARN, line)
    return Check("public-files", Status.PASS, "all of them could be looked into")


def check_duplicates(data: TaskData) -> Check:
    """Test rows whose answer can be looked up in a row with the same features."""
    found = find_duplicates(data.files, data.answers)
    if not found:
        return Check("duplicates", Status.PASS, "no test row is among the training rows")
    worst = max(found, key=lambda each: each.share)
    status = Status.FAIL if worst.share > _MOST_DUPLICATES else Status.WARN
    line = f"{worst.rows} of {worst.test_rows} test rows are in {worst.file}, too, {worst.answered} with the answer"
    return Check("duplicates", status, line)


def check_grouped(data: TaskData) -> Iterator[Check]:
    """Where splits are by group or time, no group (or time) is in two of Train, Reward, Selection and Final."""
    how = data.task.spec.splits
    if how.column is None:
        return
    found: dict[str, set[str]] = {}
    split_of = pd.Series(data.answers.splits, index=canonical(pd.Series(data.answers.ids)))
    for table in data.files.tables:
        id_column = data.task.spec.submission.id_column
        if id_column in table.columns and how.column in table.columns:
            splits = table.columns[id_column].map(split_of[~split_of.index.duplicated()]).fillna("Train")
            for group, split in zip(table.columns[how.column], splits, strict=True):
                found.setdefault(group, set()).add(split)
    torn = [group for group, splits in found.items() if len(splits) > 1]
    if not found:
        line = f"spec.splits.column {how.column!r} is in no public file beside the ids"
        yield Check("groups-whole", Status.FAIL, line)
    elif torn:
        line = f"{how.column} {min(torn)!r} is in {' and '.join(sorted(found[min(torn)]))} ({len(torn)} such)"
        yield Check("groups-whole", Status.FAIL, line)
    else:
        yield Check(
            "groups-whole", Status.PASS, f"each of {len(found):,} values of {how.column} is in one split"
        )


def check_stratified(data: TaskData) -> Check:
    """Each hidden split has the same distribution of targets as the others together."""
    how = data.task.spec.splits.strategy
    splits = np.array(data.answers.splits)
    differences = [
        f"{name}: {split} differs from the other splits (p = {p:.1g})"
        for name, values in targets_of(data.answers).items()
        for split in sorted(set(splits))
        if (p := _same_distribution(values[splits == split], values[splits != split])) < _UNLIKELY
    ]
    if not differences:
        return Check("stratified", Status.PASS, f"the splits' targets are distributed alike ({how})")
    if how == "Stratified":
        hint = " (split by group or time? then say so in spec.splits)"
        return Check("stratified", Status.FAIL, differences[0] + hint)
    return Check("stratified", Status.WARN, f"{differences[0]}, as may happen with strategy {how}")


def _same_distribution(some: pd.Series, others: pd.Series) -> float:
    """p-value of some and others being drawn alike: chi-squared for classes, Kolmogorov-Smirnov for numbers."""
    numbers = pd.to_numeric(pd.concat([some, others]), errors="coerce")
    if numbers.nunique() > _MOST_CLASSES and not numbers.isna().any():
        return float(ks_2samp(numbers[: len(some)], numbers[len(some) :]).pvalue)
    counts = pd.DataFrame({"some": some.value_counts(), "others": others.value_counts()}).fillna(0)
    if len(counts) < 2 or len(counts) > len(some):
        return 1.0
    return float(chi2_contingency(counts.to_numpy()).pvalue)


def check_order(data: TaskData) -> Check:
    """Neither the ids nor the order of the test rows say anything about the answers."""
    answers = data.answers.table.assign(position=range(len(data.answers.ids)))
    positions = pd.Series({id_: place for place, id_ in enumerate(data.sample_ids)})
    orders = {
        "the order of the sample submission": positions[answers[data.answers.submission.id_column]].to_numpy()
    }
    ids = pd.to_numeric(pd.Series(data.answers.ids), errors="coerce")
    if not ids.isna().any():
        orders["the ids"] = ids.to_numpy()
    for name, values in targets_of(data.answers).items():
        codes = pd.factorize(values, sort=True)[0]
        numbers = pd.to_numeric(values, errors="coerce")
        ranked = codes if numbers.isna().any() else numbers.to_numpy()
        for what, order in orders.items():
            result = spearmanr(order, ranked)
            if result.pvalue < _UNLIKELY**2:
                line = f"{what} goes with {name} (rank correlation {result.statistic:.2f}): shuffle before numbering"
                return Check("order", Status.FAIL, line)
    return Check("order", Status.PASS, "neither ids nor the order of rows go with the answers")
