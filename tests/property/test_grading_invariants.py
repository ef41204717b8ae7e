"""What holds for every submission: one of four verdicts, a fit reason, and scores that rows' order cannot change."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from functools import cache
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlwright_api.metric_catalog import CATALOG, MetricInfo
from mlwright_api.mltask import MetricSpec, MLTaskSpec, Split, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_api.results import GRADER_MESSAGE_BYTES, GraderResult, Verdict
from mlwright_sandbox.answers import TaskAnswers, build_answers
from mlwright_sandbox.grader import result_json
from mlwright_sandbox.grading import grade_bytes

BOTH = (Split.REWARD, Split.SELECTION)
ROWS = 16
TEXT_METRICS = ("word_jaccard", "map_at_k", "recall_at_k")
MANY_CLASS = ("log_loss", "brier")
Cell = TypeVar("Cell")


def truth_of(info: MetricInfo, columns: int) -> list[list[str]]:
    """Answers by row, the same at every call, with every class in either split."""
    source = random.Random(info.name)
    if info.name in TEXT_METRICS:
        return [[source.choice("abcd")] for _ in range(ROWS)]
    if columns > 1 and info.name in MANY_CLASS:
        return [["1" if place == row % columns else "0" for place in range(columns)] for row in range(ROWS)]
    if SubmissionKind.VALUES in info.kinds and info.kinds != CATALOG["roc_auc"].kinds:
        return [[repr(source.uniform(1, 9)) for _ in range(columns)] for _ in range(ROWS)]
    return [[str((row // 2 + place) % 2) for place in range(columns)] for row in range(ROWS)]


@cache
def task_of(name: str, columns: int) -> TaskAnswers:
    info = CATALOG[name]
    targets = [f"t{place}" for place in range(columns)]
    kind = SubmissionKind.VALUES if name == "spearman" else sorted(info.kinds)[0]
    sample = ["a" if name in TEXT_METRICS else repr(1 / columns) if kind != "Labels" else "0"] * columns
    correlated = name in ("pearson", "spearman")
    rows = [[str(row + 1)] * columns if correlated else sample for row in range(ROWS)]
    truth = truth_of(info, columns)
    return build_answers(
        MLTaskSpec(
            title="task",
            description="-",
            metric=MetricSpec(name=name),
            submission=SubmissionSpec(target_columns=targets, kind=kind),
            reference=TaskReference(baseline=0),
        ),
        sample=table(["id", *targets], numbered(rows)),
        private=table(
            ["id", *targets, "split"], [[*row, BOTH[i % 2]] for i, row in enumerate(numbered(truth))]
        ),
        complete=True,
    )


def numbered(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [[f"row-{place}", *row] for place, row in enumerate(rows)]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    return "".join(",".join(row) + "\n" for row in [header, *rows]).encode()


def columns_of(info: MetricInfo) -> int:
    return 3 if info.many_columns else 1


TASKS = [(info.name, columns_of(info)) for info in CATALOG.values()]


def perfect(name: str, columns: int) -> bytes:
    targets = [f"t{place}" for place in range(columns)]
    return table(["id", *targets], numbered(truth_of(CATALOG[name], columns)))


@pytest.mark.parametrize(("name", "columns"), TASKS)
def test_perfect_answers_get_the_best_value(name: str, columns: int) -> None:
    result = grade_bytes(task_of(name, columns), perfect(name, columns), BOTH)
    assert (result.verdict, result.reason) == (Verdict.VALID, "")
    for score in result.scores.values():
        assert score == pytest.approx(CATALOG[name].best, abs=1e-12)


@st.composite
def predictions(draw: st.DrawFn, name: str, columns: int) -> list[list[str]]:
    """Valid predictions of any quality, by row."""
    info = CATALOG[name]
    if columns > 1 and name in MANY_CLASS:
        weights = draw(table_of(st.integers(1, 50), columns))
        return [[repr(weight / sum(row)) for weight in row] for row in weights]
    if name in TEXT_METRICS:
        return draw(table_of(st.sampled_from(["a", "b c", "d a", ""]), columns))
    if info.kinds == frozenset({SubmissionKind.LABELS}):
        return draw(table_of(st.sampled_from(["0", "1"]), columns))
    upper = 1e6 if info.kinds == frozenset({SubmissionKind.VALUES}) or name == "spearman" else 1
    return draw(table_of(st.floats(0, upper).map(repr), columns))


def table_of(cells: st.SearchStrategy[Cell], columns: int) -> st.SearchStrategy[list[list[Cell]]]:
    rows = st.lists(cells, min_size=columns, max_size=columns)
    return st.lists(rows, min_size=ROWS, max_size=ROWS)


@pytest.mark.parametrize(("name", "columns"), TASKS)
@settings(max_examples=12)
@given(data=st.data())
def test_the_order_of_rows_and_columns_never_changes_a_score(
    name: str, columns: int, data: st.DataObject
) -> None:
    task = task_of(name, columns)
    rows = numbered(data.draw(predictions(name, columns)))
    header = ["id", *(f"t{place}" for place in range(columns))]
    order = data.draw(st.permutations(range(len(header))))
    shuffled = [[row[place] for place in order] for row in data.draw(st.permutations(rows))]
    first = grade_bytes(task, table(header, rows), BOTH)
    second = grade_bytes(task, table([header[place] for place in order], shuffled), BOTH)
    assert (first.verdict, first.scores) == (second.verdict, second.scores)
    check(first)


@pytest.mark.parametrize(("name", "columns"), TASKS)
@settings(max_examples=12)
@given(data=st.data())
def test_a_valid_score_is_finite_and_within_the_metrics_bounds(
    name: str, columns: int, data: st.DataObject
) -> None:
    info = CATALOG[name]
    header = ["id", *(f"t{place}" for place in range(columns))]
    result = grade_bytes(
        task_of(name, columns), table(header, numbered(data.draw(predictions(name, columns)))), BOTH
    )
    for score in result.scores.values():
        assert info.lower is None or score >= info.lower - 1e-12
        assert info.upper is None or score <= info.upper + 1e-12


def check(result: GraderResult) -> None:
    """What every result must keep, whatever came in."""
    assert isinstance(result.verdict, Verdict)
    assert len(result.reason) <= 512
    assert result.reason == "" or result.reason.isprintable()
    assert (result.reason == "") == (result.verdict is Verdict.VALID)
    assert bool(result.scores) == (result.verdict in (Verdict.VALID, Verdict.TRIVIAL))
    assert all(math.isfinite(score) for score in result.scores.values())
    assert len(result_json(result)) <= GRADER_MESSAGE_BYTES
    assert GraderResult.model_validate_json(result_json(result), strict=True) == result


@given(content=st.binary(max_size=300), task=st.sampled_from(TASKS))
def test_any_bytes_get_a_verdict_and_a_fit_reason(content: bytes, task: tuple[str, int]) -> None:
    result = grade_bytes(task_of(*task), content, BOTH)
    check(result)
    assert result.verdict is Verdict.INVALID


@given(text=st.text(max_size=300), task=st.sampled_from(TASKS))
def test_any_text_under_the_right_header_gets_a_verdict_and_a_fit_reason(
    text: str, task: tuple[str, int]
) -> None:
    name, columns = task
    header = ",".join(["id", *(f"t{place}" for place in range(columns))])
    check(grade_bytes(task_of(name, columns), f"{header}\n{text}".encode(errors="replace"), BOTH))


@given(
    task=st.sampled_from(TASKS),
    place=st.floats(0, 1, exclude_max=True),
    removed=st.integers(0, 12),
    added=st.binary(max_size=12)
    | st.sampled_from([b"nan", b"inf", b"1e999", b'"', b"\r", b"\n\n", b",", b"\0"]),
)
def test_a_good_submission_damaged_anywhere_gets_a_verdict_and_a_fit_reason(
    task: tuple[str, int], place: float, removed: int, added: bytes
) -> None:
    good = perfect(*task)
    start = int(place * len(good))
    check(grade_bytes(task_of(*task), good[:start] + added + good[start + removed :], BOTH))


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_any_finite_number_is_read_back_exactly(value: float) -> None:
    from mlwright_sandbox.cells import Cells, numbers

    read = numbers(Cells("x", [repr(value)], [1]))
    assert read.dtype == np.float64
    assert read[0] == value


@given(
    values=st.lists(st.floats(0, 1, width=16), min_size=ROWS, max_size=ROWS),
    power=st.sampled_from([0.5, 2.0, 3.0]),
)
def test_a_strictly_rising_function_of_the_sample_is_trivial(values: list[float], power: float) -> None:
    sample = numbered([[repr(float(value))] for value in values])
    raised = numbered([[repr(float(value) ** power)] for value in values])
    task = build_answers(
        task_of("roc_auc", 1).spec,
        sample=table(["id", "t0"], sample),
        private=table(
            ["id", "t0", "split"],
            [[*row, BOTH[i % 2]] for i, row in enumerate(numbered(truth_of(CATALOG["roc_auc"], 1)))],
        ),
    )
    assert grade_bytes(task, table(["id", "t0"], raised), BOTH).verdict is Verdict.TRIVIAL
