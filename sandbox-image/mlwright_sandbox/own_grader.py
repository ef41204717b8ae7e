"""A task's own grade.py: trusted code that comes with the task and gets aligned data frames."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import pandas as pd

from mlwright_sandbox.errors import AnswersError, InvalidSubmissionError
from mlwright_sandbox.metrics import finite
from mlwright_sandbox.metrics.columns import Column

GradeFunction: TypeAlias = Callable[[pd.DataFrame, pd.DataFrame], Any]
"""grade(submission, answers) -> score; both have the id column and every target column, the same rows in order."""


def load_grade(path: Path) -> GradeFunction:
    """The function `grade` of a task's grade.py. Errors: AnswersError where there is none."""
    specification = importlib.util.spec_from_file_location("grade", path)
    if specification is None or specification.loader is None:
        raise AnswersError(f"{path.name} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    _execute(module, specification.loader, path)
    grade = getattr(module, "grade", None)
    if not callable(grade):
        raise AnswersError(f"{path.name} has no function grade(submission, answers)")
    return grade  # type: ignore[no-any-return]  # callable() narrows Any to an unknown signature


def _execute(module: ModuleType, loader: Any, path: Path) -> None:
    try:
        loader.exec_module(module)
    except Exception as error:
        raise AnswersError(f"{path.name} cannot be imported: {type(error).__name__}: {error}") from error


def own_score(grade: GradeFunction, predictions: pd.DataFrame, answers: pd.DataFrame) -> float:
    """What the task's grader says, as a finite number.

    InvalidSubmissionError (ours or one of that name, as MLE-bench has) and ValueError carry the reason;
    any other exception becomes the reason `grade.py raised ...`.
    """
    try:
        return finite(_number(grade(predictions, answers)))
    except InvalidSubmissionError:
        raise
    except Exception as error:
        raise InvalidSubmissionError(_reason(error)) from error


def frame(
    id_column: str, ids: list[str], columns: Mapping[str, Column], *, numeric_ids: bool
) -> pd.DataFrame:
    """One split as a data frame: the id column, then the targets, index 0..rows-1."""
    identifiers = pd.to_numeric(pd.Series(ids)) if numeric_ids else pd.Series(ids)
    return pd.DataFrame({id_column: identifiers, **columns})


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise InvalidSubmissionError(f"grade.py returned {type(value).__name__}, not a number") from error


def _reason(error: Exception) -> str:
    names = {kind.__name__ for kind in type(error).__mro__}
    message = str(error)
    if names & {"InvalidSubmissionError", "ValueError"} and message:
        return message
    return f"grade.py raised {type(error).__name__}" + (f": {message}" if message else "")
