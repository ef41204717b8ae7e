"""What the model is asked: to solve a task from scratch (draft), or to improve an earlier script of its own.

Pure: files and their first lines come in as data, messages go out. The choice between the two kinds
depends on (run seed, update, index) alone. Source: arXiv 2509.01684; design section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mlwright_api.metric_catalog import MetricInfo
from mlwright_api.mltask import Direction, MLTaskSpec

from mlwright_trainer.collection.draws import draw_fraction, draw_index
from mlwright_trainer.collection.parents import Parent
from mlwright_trainer.collection.templating import Templates, filled
from mlwright_trainer.exchange import PromptKind

Message = dict[str, str]
"""`{"role": ..., "content": ...}`, as chat templates take it."""

MAX_FILES = 20
"""Files listed one by one; the rest is counted."""
HEAD_LINES = 4
"""Lines of a data file that are shown."""
MAX_HEAD_LINE = 200
"""Characters of a data file's line that are shown."""


@dataclass(frozen=True)
class DataFile:
    """A public file: path relative to ./data, size in bytes, and the first lines of a csv file."""

    path: str
    size: int
    head: tuple[str, ...] = ()


@dataclass(frozen=True)
class TaskPrompt:
    """What a prompt says of a task."""

    name: str
    title: str
    description: str
    metric: str
    direction: Direction
    submission_file: str
    id_column: str
    target_columns: tuple[str, ...]
    submission_kind: str
    timeout_seconds: float
    cpu: str
    memory: str
    files: tuple[DataFile, ...] = ()


@dataclass(frozen=True)
class Detail:
    """How much of the parts that may be shortened is shown: characters of output, lines of each data head."""

    output_characters: int = 2048
    head_lines: int = HEAD_LINES


@dataclass(frozen=True)
class PromptChoice:
    """A prompt kind, with the parent to improve where it is `improve`."""

    kind: PromptKind
    parent: Parent | None = None


def task_prompt(name: str, spec: MLTaskSpec, info: MetricInfo, files: Sequence[DataFile]) -> TaskPrompt:
    """The facts of task `name` that its prompts are made of; `files` in any order."""
    return TaskPrompt(
        name=name,
        title=spec.title,
        description=spec.description.strip(),
        metric=info.title,
        direction=info.direction,
        submission_file=spec.submission.file_name,
        id_column=spec.submission.id_column,
        target_columns=tuple(spec.submission.target_columns),
        submission_kind=spec.submission.kind.lower(),
        timeout_seconds=spec.limits.timeout_seconds,
        cpu=spec.limits.cpu,
        memory=spec.limits.memory,
        files=tuple(sorted(files, key=lambda file: file.path)),
    )


def draft_messages(task: TaskPrompt, templates: Templates, detail: Detail = Detail()) -> list[Message]:
    """Chat messages that ask for a script from scratch."""
    values = _task_values(task, detail)
    return _messages(filled(templates.system, values), filled(templates.draft, values))


def improve_messages(
    task: TaskPrompt, parent: Parent, templates: Templates, detail: Detail = Detail()
) -> list[Message]:
    """Chat messages that ask to improve `parent`: its code, the end of its output, its Reward-split score."""
    values = _task_values(task, detail)
    system = filled(templates.system, values)
    values |= {
        "code": fenced(parent.script, "python"),
        "output": fenced(_tail(parent.output_tail, detail.output_characters)),
        "score": f"{parent.score:.5g}",
    }
    return _messages(system, filled(templates.improve, values))


def choose_prompt(
    *, seed: int, update: int, index: int, improve_fraction: float, parents: Sequence[Parent]
) -> PromptChoice:
    """Draft or improve, and which parent, for rollout `index` of `update`; draft where there is no parent.

    `parents` as `parent_pool` orders them. The same arguments give the same choice in every process.
    """
    key = (seed, update, index)
    if not parents or draw_fraction("prompt kind", *key) >= improve_fraction:
        return PromptChoice("draft")
    return PromptChoice("improve", parents[draw_index(len(parents), "parent", *key)])


def fenced(text: str, language: str = "") -> str:
    """`text` as a fenced block whose fence is longer than any run of backticks in it."""
    longest = max((len(run) for run in _backtick_runs(text)), default=0)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{language}\n{text.rstrip()}\n{mark}"


def _backtick_runs(text: str) -> list[str]:
    return "".join(character if character == "`" else " " for character in text).split()


def _messages(system: str, user: str) -> list[Message]:
    messages = [{"role": "system", "content": system}] if system.strip() else []
    return [*messages, {"role": "user", "content": user}]


def _task_values(task: TaskPrompt, detail: Detail) -> dict[str, str]:
    return {
        "title": task.title,
        "description": task.description,
        "metric": task.metric,
        "direction": "higher is better" if task.direction is Direction.MAXIMIZE else "lower is better",
        "files": _listing(task.files),
        "data_heads": _heads(task.files, detail.head_lines),
        "submission_file": task.submission_file,
        "submission_columns": ", ".join(f"`{name}`" for name in (task.id_column, *task.target_columns)),
        "id_column": task.id_column,
        "target_columns": ", ".join(task.target_columns),
        "submission_kind": task.submission_kind,
        "time_limit": _seconds(task.timeout_seconds),
        "cpu": task.cpu,
        "memory": task.memory,
    }


def _listing(files: Sequence[DataFile]) -> str:
    lines = [f"- `{file.path}` ({_size(file.size)})" for file in files[:MAX_FILES]]
    if len(files) > MAX_FILES:
        rest = files[MAX_FILES:]
        lines.append(f"- and {len(rest)} more files ({_size(sum(file.size for file in rest))})")
    return "\n".join(lines)


def _heads(files: Sequence[DataFile], lines: int) -> str:
    heads = [file for file in files[:MAX_FILES] if file.head] if lines > 0 else []
    return "\n".join(f"\nFirst lines of `{file.path}`:\n{_head(file, lines)}" for file in heads)


def _head(file: DataFile, lines: int) -> str:
    shown = (
        line if len(line) <= MAX_HEAD_LINE else f"{line[:MAX_HEAD_LINE]}..." for line in file.head[:lines]
    )
    return fenced("\n".join(shown))


def _tail(output: str, characters: int) -> str:
    """The end of an output, cut at the front, whole lines where the rest still has any."""
    text = output.strip()
    if not text:
        return "(nothing)"
    if characters <= 0:
        return "(left out)"
    if len(text) <= characters:
        return text
    cut = text[-characters:]
    first, newline, rest = cut.partition("\n")
    return f"...\n{rest if newline and rest.strip() else first}"


def _size(size: int) -> str:
    if size < 1000:
        return f"{size} bytes"
    power = min(int(math.log(size, 1000)), 4)
    return f"{size / 1000**power:.3g} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def _seconds(seconds: float) -> str:
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"
