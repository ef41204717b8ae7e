"""`mlwright task list`: the tasks below some folders, with what is known of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.folder import MANIFEST, TaskFolder, read_task, read_task_answers

_DEEPEST = 3


@dataclass(frozen=True)
class ListedTask:
    """A task, or why a folder with a task.yaml is none."""

    folder: Path
    task: TaskFolder | None
    rows: dict[str, int] | None = None
    problem: str = ""

    def document(self) -> dict[str, Any]:
        """As JSON."""
        if self.task is None:
            return {"folder": str(self.folder), "problem": self.problem}
        spec = self.task.spec
        return {
            "folder": str(self.folder),
            "name": self.task.name,
            "title": spec.title,
            "digest": self.task.digest,
            "metric": spec.metric.name,
            "direction": self.task.metric.direction.value,
            "limits": {
                "timeoutSeconds": spec.limits.timeout_seconds,
                "cpu": spec.limits.cpu,
                "memory": spec.limits.memory,
            },
            "baseline": spec.reference.baseline,
            "best": spec.reference.best,
            "prepared": self.rows is not None,
            "rows": self.rows,
            "problem": self.problem,
        }


def list_tasks(folders: Sequence[Path]) -> list[ListedTask]:
    """Every task at or below `folders`, three levels deep. Raises UserError for a folder that is not there."""
    found = []
    for folder in folders:
        if not folder.is_dir():
            raise UserError(f"{folder}: no such folder")
        patterns = ["/".join(["*"] * depth + [MANIFEST]) for depth in range(_DEEPEST + 1)]
        found += sorted({path.parent for pattern in patterns for path in folder.glob(pattern)})
    return [_listed(folder) for folder in dict.fromkeys(found)]


def _listed(folder: Path) -> ListedTask:
    try:
        task = read_task(folder)
    except UserError as error:
        return ListedTask(folder, None, problem=str(error))
    if not task.prepared:
        return ListedTask(folder, task)
    try:
        # Final is counted by its ids; its answers are not looked at.
        return ListedTask(folder, task, rows=read_task_answers(task).counts())
    except (UserError, OSError) as error:
        return ListedTask(folder, task, problem=str(error))
