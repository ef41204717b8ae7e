"""From the bytes of a submission to aligned, typed predictions: one column a target, rows as the sample has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mlwright_api.mltask import MLTaskSpec, SubmissionKind

from mlwright_sandbox.cells import (
    Cells,
    Vocabulary,
    check_row_sums,
    labels,
    not_negative,
    numbers,
    probabilities,
    ratings,
    words,
)
from mlwright_sandbox.csv_table import parse_table
from mlwright_sandbox.identifiers import Identifiers, order_rows
from mlwright_sandbox.metrics import WORDS, needs_not_negative
from mlwright_sandbox.metrics.columns import Column

_SUMMING_TO_ONE = frozenset({"log_loss", "brier"})


@dataclass(frozen=True)
class Expectation:
    """What a submission must look like; `vocabularies` by target column, for Labels only."""

    spec: MLTaskSpec
    identifiers: Identifiers
    vocabularies: Mapping[str, Vocabulary]


def read_predictions(content: bytes, expected: Expectation) -> dict[str, Column]:
    """Every target column, in the order of the expected ids; shape (rows,) each.

    Errors: InvalidSubmissionError, one line without the file's name.
    """
    submission = expected.spec.submission
    wanted = [submission.id_column, *submission.target_columns]
    table = parse_table(content, wanted, rows_expected=len(expected.identifiers.ids))
    order = order_rows(table, submission.id_column, expected.identifiers)
    typed = {
        name: _typed(Cells(name, table.columns[name], table.lines), expected)
        for name in submission.target_columns
    }
    if len(typed) > 1 and expected.spec.metric.name in _SUMMING_TO_ONE:
        check_row_sums(list(typed.values()), table.lines)
    return {name: column[order] for name, column in typed.items()}


def _typed(cells: Cells, expected: Expectation) -> Column:
    metric = expected.spec.metric.name
    match expected.spec.submission.kind:
        case SubmissionKind.PROBABILITIES:
            return probabilities(cells)
        case SubmissionKind.VALUES:
            return not_negative(cells, metric) if needs_not_negative(metric) else numbers(cells)
        case SubmissionKind.LABELS:
            if metric in WORDS:
                return words(cells)
            known = expected.vocabularies[cells.name]
            return ratings(cells, known) if metric == "quadratic_weighted_kappa" else labels(cells, known)
