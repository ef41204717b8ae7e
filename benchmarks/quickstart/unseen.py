"""That the second task was in no training text: neither its name nor any of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlwright_api.base import ApiModel
from mlwright_api.trainingrun import FineTuning
from mlwright_trainer.errors import InternalError
from mlwright_trainer.generators import Example
from mlwright_trainer.learning.examples import load_examples
from mlwright_trainer.runs.plan import RunPlan
from mlwright_trainer.tasks.folder import TaskFolder

_WORD = re.compile(r"\w+")


class Unseen(ApiModel):
    """What was looked for in a seed's training texts, and not found."""

    task: str
    seed: int
    examples: int
    words: list[str]


def require_unseen(plan: RunPlan, task: TaskFolder) -> Unseen:
    """Search every example of the plan's fine-tuning. Raises InternalError where a word of the task occurs."""
    tuning: FineTuning | None = plan.spec.fine_tuning
    assert tuning is not None
    examples = load_examples(tuning, base=task.root, seed=plan.spec.seed)
    words = words_of(task)
    found = seen(words, examples)
    if found:
        raise InternalError(f"{task.name}: training texts contain {', '.join(sorted(found))}")
    return Unseen(task=task.name, seed=plan.spec.seed, examples=len(examples), words=words)


def words_of(task: TaskFolder) -> list[str]:
    """The task's name and the columns of its tables."""
    headers = [path.open(encoding="utf-8").readline() for path in sorted(task.public.glob("*.csv"))]
    columns = [column.strip().strip('"') for header in headers for column in header.split(",")]
    return list(dict.fromkeys([task.name, *columns]))


def seen(words: Iterable[str], examples: Iterable[Example]) -> set[str]:
    """Those of `words` that occur as whole words, as they are written (`id` is not in `"Id"` or `row_id`)."""
    texts = {text for example in examples for text in (example.prompt, example.completion)}
    known = {word for text in texts for word in _WORD.findall(text)}
    return known & set(words)
