"""A task's answers and sample submission, read once, checked, and aligned by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from mlwright_api.metric_catalog import CATALOG, MetricError, metric_problems
from mlwright_api.mltask import MLTaskSpec, Split, SubmissionKind

from mlwright_sandbox.backend import ANSWERS_FILE, SAMPLE_FILE, SPLIT_COLUMN, TaskMounts
from mlwright_sandbox.cells import Cells, Vocabulary, numbers, words
from mlwright_sandbox.csv_table import Table, parse_table
from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError
from mlwright_sandbox.identifiers import Identifiers
from mlwright_sandbox.metrics import WORDS, score
from mlwright_sandbox.metrics.columns import Column
from mlwright_sandbox.predictions import Expectation, read_predictions
from mlwright_sandbox.reasons import about

_SEALED = f"sealed/{ANSWERS_FILE}"
_SMALLEST_CAP_BYTES = 16 << 20
_SAMPLES = 16


@dataclass(frozen=True)
class SplitAnswers:
    """The answers of one split: `rows` are places in the expected ids, `columns` the targets there."""

    rows: npt.NDArray[np.intp]
    columns: Mapping[str, Column]


@dataclass(frozen=True)
class TaskAnswers:
    """All that is needed to grade a submission of one task.

    `cap`: the most bytes of a submission that are read. `grader`: the task's own grade.py, if it has one.
    """

    expected: Expectation
    sample: Mapping[str, Column]
    splits: Mapping[Split, SplitAnswers]
    cap: int
    grader: Path | None = None

    @property
    def spec(self) -> MLTaskSpec:
        return self.expected.spec


def load_answers(task: TaskMounts, *, sealed: bool) -> TaskAnswers:
    """Reads the sample, private/answers.csv and, only where `sealed`, sealed/answers.csv.

    Errors: AnswersError, one line: file and what is wrong.
    """
    if sealed and task.sealed is None:
        raise AnswersError(f"task {task.name} has no sealed answers, so nothing can be graded on Final")
    return build_answers(
        task.spec,
        sample=_read(task.public / SAMPLE_FILE),
        private=_read(task.private / ANSWERS_FILE),
        sealed=_read(task.sealed / ANSWERS_FILE) if sealed and task.sealed is not None else None,
        complete=sealed,  # elsewhere the sealed answers are simply not mounted
        grader=task.grader,
    )


def build_answers(
    spec: MLTaskSpec,
    *,
    sample: bytes,
    private: bytes,
    sealed: bytes | None = None,
    complete: bool = False,
    grader: Path | None = None,
) -> TaskAnswers:
    """The same from the files' contents; `complete`: every id of the sample must have an answer in them.

    Errors: AnswersError, one line.
    """
    if grader is None:
        _check_metric(spec)
    contents = {f"private/{ANSWERS_FILE}": private} | ({} if sealed is None else {_SEALED: sealed})
    tables = {source: _answers_table(source, content, spec) for source, content in contents.items()}
    expected, sample_columns = _read_sample(spec, sample, list(tables.values()))
    splits: dict[Split, SplitAnswers] = {}
    for source, table in tables.items():
        splits |= _splits(source, table, expected)
    _check_covered(splits, expected.identifiers, complete=complete)
    cap = max(_SMALLEST_CAP_BYTES, _SAMPLES * len(sample))
    answers = TaskAnswers(expected, sample_columns, splits, cap, grader)
    if grader is None:
        _check_scorable(answers)
    return answers


def _check_metric(spec: MLTaskSpec) -> None:
    if spec.metric.name not in CATALOG:
        raise AnswersError(f"metric {spec.metric.name} is not in the catalogue, and the task has no grade.py")
    try:
        problem = next(metric_problems(spec.metric, spec.submission), None)
    except MetricError as error:
        raise AnswersError(str(error)) from error
    if problem is not None:
        raise AnswersError(problem)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        where = f"{path.parent.name}/{path.name}"
        raise AnswersError(f"{where} cannot be read: {error.strerror}") from error


def _answers_table(source: str, content: bytes, spec: MLTaskSpec) -> Table:
    wanted = [spec.submission.id_column, *spec.submission.target_columns, SPLIT_COLUMN]
    try:
        return parse_table(content, wanted, others=True)
    except InvalidSubmissionError as error:
        raise AnswersError(about(source, str(error))) from error


def _read_sample(
    spec: MLTaskSpec, content: bytes, answers: Sequence[Table]
) -> tuple[Expectation, dict[str, Column]]:
    """What a submission must look like, and the sample's own predictions."""
    submission = spec.submission
    try:
        table = parse_table(content, [submission.id_column, *submission.target_columns])
        identifiers = _distinct(table.columns[submission.id_column])
        expected = Expectation(spec, identifiers, _vocabularies(spec, [table, *answers]))
        return expected, read_predictions(content, expected)
    except InvalidSubmissionError as error:
        raise AnswersError(about(f"public/{SAMPLE_FILE}", str(error))) from error


def _distinct(ids: Sequence[str]) -> Identifiers:
    identifiers = Identifiers.of(ids)
    if len(identifiers.positions) != len(ids):
        raise InvalidSubmissionError("has an id more than once")
    return identifiers


def _vocabularies(spec: MLTaskSpec, tables: Sequence[Table]) -> dict[str, Vocabulary]:
    if spec.submission.kind is not SubmissionKind.LABELS:
        return {}
    return {
        name: Vocabulary.of([text for table in tables for text in table.columns[name]])
        for name in spec.submission.target_columns
    }


def _splits(source: str, table: Table, expected: Expectation) -> dict[Split, SplitAnswers]:
    allowed = {Split.FINAL} if source == _SEALED else {Split.REWARD, Split.SELECTION}
    rows = _positions(source, table, expected)
    columns = {
        name: _answer_column(source, Cells(name, table.columns[name], table.lines), expected)
        for name in expected.spec.submission.target_columns
    }
    names = np.array([text.strip() for text in table.columns[SPLIT_COLUMN]], dtype=object)
    strange = set(names) - {split.value for split in allowed}
    if strange:
        raise AnswersError(f"{source}: split is {min(strange)!r}, not {' or '.join(sorted(allowed))}")
    return {
        split: SplitAnswers(rows[chosen], {name: column[chosen] for name, column in columns.items()})
        for split in sorted(allowed)
        if (chosen := names == split.value).any()
    }


def _positions(source: str, table: Table, expected: Expectation) -> npt.NDArray[np.intp]:
    identifiers = expected.identifiers
    ids = [identifiers.plain(value) for value in table.columns[expected.spec.submission.id_column]]
    strange = next((value for value in ids if value not in identifiers.positions), None)
    if strange is not None:
        raise AnswersError(f"{source}: id {strange!r} is not in public/{SAMPLE_FILE}")
    if len(set(ids)) != len(ids):
        raise AnswersError(f"{source} has an id more than once")
    return np.array([identifiers.positions[value] for value in ids], dtype=np.intp)


def _answer_column(source: str, cells: Cells, expected: Expectation) -> Column:
    if expected.spec.submission.kind is SubmissionKind.LABELS:
        if expected.spec.metric.name in WORDS:
            return words(cells)
        return expected.vocabularies[cells.name].column(cells.texts)
    try:
        return numbers(cells)
    except InvalidSubmissionError as error:
        raise AnswersError(about(source, str(error))) from error


def _check_covered(splits: Mapping[Split, SplitAnswers], identifiers: Identifiers, *, complete: bool) -> None:
    """Every expected id in one split, as far as the answers at hand can tell."""
    rows = np.concatenate([split.rows for split in splits.values()])
    if len(np.unique(rows)) != len(rows):
        raise AnswersError("an id is in private and in sealed answers")
    if complete and len(rows) != len(identifiers.ids):
        missing = next(iter(set(range(len(identifiers.ids))) - set(rows.tolist())))
        raise AnswersError(f"public/{SAMPLE_FILE}: id {identifiers.ids[missing]!r} has no answer")


def _check_scorable(answers: TaskAnswers) -> None:
    """Perfect predictions must have a score on every split: else the answers are at fault."""
    for split, truth in answers.splits.items():
        try:
            score(answers.spec, truth.columns, truth.columns)
        except (AnswersError, InvalidSubmissionError) as error:
            raise AnswersError(f"{split} answers: {error}") from error
