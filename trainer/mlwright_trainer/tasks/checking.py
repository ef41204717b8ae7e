"""`mlwright task check`: all checks of a task, and whether it stands."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from mlwright_sandbox.backend import ANSWERS_FILE

from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.checks import Check, Status, TaskData, check_data
from mlwright_trainer.tasks.final_reads import log_final_read
from mlwright_trainer.tasks.folder import TaskFolder, read_task_answers
from mlwright_trainer.tasks.public_files import read_public
from mlwright_trainer.tasks.trial import Trial
from mlwright_trainer.tasks.trial_checks import check_by_use


def check_task(task: TaskFolder, trial: Trial | None) -> Iterator[Check]:
    """Check after check, as they are done; without `trial`, only those of the data."""
    final = _log_final(task)
    if final is not None:
        yield final
    data = TaskData(
        task=task,
        answers=read_task_answers(task, sealed=final is None),
        files=read_public(task.public),
    )
    yield from check_data(data)
    if trial is not None:
        yield from check_by_use(task, data.answers, trial)


def failed(checks: list[Check]) -> bool:
    """Whether the task does not stand."""
    return any(check.status is Status.FAIL for check in checks)


def _log_final(task: TaskFolder) -> Check | None:
    """Log that Final's answers are looked at; a check that says so where that is impossible."""
    if task.sealed is None:
        return None
    answers: Path = task.sealed / ANSWERS_FILE
    digest = hashlib.sha256(answers.read_bytes()).hexdigest()
    try:
        log_final_read(task.sealed, purpose="task check", digest=digest)
    except UserError as error:
        return Check("final-logged", Status.WARN, f"Final was not looked at: {error}")
    return None
