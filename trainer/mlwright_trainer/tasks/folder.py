"""A task folder: its manifest, its data, and what is wrong with either, said so that it can be mended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlwright_api.digests import spec_digest
from mlwright_api.errors import ManifestError
from mlwright_api.manifests import load_manifests
from mlwright_api.metric_catalog import CATALOG, MetricInfo, metric_info
from mlwright_api.mltask import MLTask, MLTaskSpec
from mlwright_sandbox.backend import ANSWERS_FILE, SAMPLE_FILE, TaskMounts

from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.answers import Answers, read_answers, read_ids

MANIFEST = "task.yaml"
DATA_FOLDERS = ("public", "private", "sealed")


class TaskError(UserError):
    """A task folder that cannot be used as it is."""


@dataclass(frozen=True)
class TaskFolder:
    """A task on this machine; `root` is absolute. The optional files are None where there is none."""

    root: Path
    manifest: MLTask

    @property
    def name(self) -> str:
        return self.manifest.metadata.name

    @property
    def spec(self) -> MLTaskSpec:
        return self.manifest.spec

    @property
    def digest(self) -> str:
        """sha256 of the canonical spec, as Rollout.spec.taskRef has it."""
        return spec_digest(self.spec)

    @property
    def metric(self) -> MetricInfo:
        return metric_info(self.spec.metric)

    @property
    def public(self) -> Path:
        return self.root / "public"

    @property
    def private(self) -> Path:
        return self.root / "private"

    @property
    def sealed(self) -> Path | None:
        return _existing(self.root / "sealed")

    @property
    def solution(self) -> Path | None:
        return _existing(self.root / "solution.py")

    @property
    def grader(self) -> Path | None:
        return _existing(self.root / "grade.py")

    @property
    def preparer(self) -> Path | None:
        return _existing(self.root / "prepare.py")

    @property
    def sample(self) -> Path:
        return self.public / SAMPLE_FILE

    @property
    def prepared(self) -> bool:
        """Whether the two folders that every task needs are there."""
        return self.public.is_dir() and self.private.is_dir()

    def mounts(self) -> TaskMounts:
        """The task as a sandbox backend and the grader take it."""
        return TaskMounts(
            name=self.name,
            spec=self.spec,
            public=self.public,
            private=self.private,
            sealed=self.sealed,
            grader=self.grader,
        )


def load_task(folder: Path) -> TaskFolder:
    """A task folder that is ready to use: manifest, metric, data and ids hold together.

    Raises TaskError, one line that says what is wrong, where, and what to do.
    """
    task = read_task(folder)
    if not task.prepared:
        raise TaskError(f"{folder}: the task's data is not there; run: mlwright task prepare {folder}")
    try:
        verify_data(task)
    except UserError as error:
        raise TaskError(f"{error}; run: mlwright task prepare {folder}") from error
    return task


def verify_data(task: TaskFolder) -> None:
    """Sample and answers are there, have the right columns, and name the same ids; else a UserError."""
    with readable(task.root):
        _require(task.sample, "the sample submission names the expected ids")
        _require(task.private / ANSWERS_FILE, "the answers of Reward and Selection belong there")
        if task.sealed is not None:
            _require(task.sealed / ANSWERS_FILE, "the answers of Final belong there")
        _check_ids(task)


def read_task(folder: Path) -> TaskFolder:
    """As `load_task`, without looking at the data: for a task that may not have been prepared yet."""
    root = folder.resolve()
    manifest = root / MANIFEST
    with readable(folder):
        if not root.is_dir():
            raise TaskError(f"{folder}: no such folder; a task is a folder with a {MANIFEST}")
        if not manifest.is_file():
            raise TaskError(f"{folder}: no {MANIFEST} in it; make one with: mlwright task new {folder}")
        task = TaskFolder(root=root, manifest=_only_task(manifest))
    _check_grader(task, folder)
    return task


def read_task_answers(task: TaskFolder, *, sealed: bool = True) -> Answers:
    """The hidden answers; those of Final only where asked (ids and structure need no entry in the log)."""
    paths = [task.private / ANSWERS_FILE]
    if sealed and task.sealed is not None:
        paths.append(task.sealed / ANSWERS_FILE)
    return read_answers(paths, submission=task.spec.submission)


def _check_ids(task: TaskFolder) -> None:
    """The ids of the sample submission are those of the answers, each once."""
    sample, answers = read_ids(task.sample, task.spec.submission.id_column), read_task_answers(task)
    for ids, where in ((sample, "the sample submission"), (answers.ids, "the answers")):
        if len(set(ids)) != len(ids):
            twice = next(id_ for id_, count in Counter(ids).items() if count > 1)
            raise TaskError(f"{task.root}: the id {twice!r} occurs more than once in {where}")
    without_sample = set(answers.ids) - set(sample)
    without_answer = set(sample) - set(answers.ids) if task.sealed is not None else set()
    if without_sample or without_answer:
        example = min(without_sample or without_answer)
        which = "is not in the sample submission" if without_sample else "has no answer"
        raise TaskError(
            f"{task.root}: the ids of sample submission and answers do not match: {example!r} {which} "
            f"({len(without_sample) + len(without_answer)} such ids)"
        )


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Turn the system's refusals below `folder` into a TaskError with the file's name."""
    try:
        yield
    except PermissionError as error:
        raise TaskError(f"{error.filename or folder}: no permission to read it") from error
    except IsADirectoryError as error:
        raise TaskError(f"{error.filename}: a file is expected, this is a folder") from error


def _only_task(manifest: Path) -> MLTask:
    try:
        documents = load_manifests(manifest)
    except ManifestError as error:
        raise TaskError(str(error)) from error
    tasks = [document for document in documents if isinstance(document, MLTask)]
    if len(tasks) != 1:
        raise TaskError(f"{manifest}: {len(tasks)} MLTask documents in it; a task folder has exactly one")
    return tasks[0]


def _check_grader(task: TaskFolder, folder: Path) -> None:
    """A metric is registered, or the task brings a grade.py and says the direction."""
    if task.grader is not None and task.spec.metric.direction is None:
        raise TaskError(f"{folder}/{MANIFEST}: spec.metric.direction: is required beside a grade.py")
    if task.grader is None and task.spec.metric.name not in CATALOG:
        raise TaskError(
            f"{folder}/{MANIFEST}: spec.metric.name: {task.spec.metric.name!r} is not registered and "
            "there is no grade.py; the names: mlwright task metrics"
        )


def _require(path: Path, why: str) -> None:
    if not path.is_file():
        raise TaskError(f"{path}: is missing ({why})")


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None
