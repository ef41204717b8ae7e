"""Makes a task's data by its prepare.py: all of it or nothing, and never over data that differs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlwright_trainer.errors import UserError, refusal
from mlwright_trainer.tasks.checksums import (
    CHECKSUMS,
    difference,
    digest_files,
    read_checksums,
    write_checksums,
)
from mlwright_trainer.tasks.final_reads import LOG
from mlwright_trainer.tasks.folder import DATA_FOLDERS, TaskError, TaskFolder, read_task, verify_data


@dataclass(frozen=True)
class Prepared:
    """What a preparation did: `changed` is False where the same data was there already."""

    task: TaskFolder
    files: Mapping[str, str]
    changed: bool
    recorded: bool
    """Whether checksums.txt was written."""


def prepare_task(folder: Path, *, force: bool = False, record: bool = False) -> Prepared:
    """Run the task's prepare.py and put public, private and sealed in place.

    `force` allows to replace data that differs, `record` writes checksums.txt anew (the first time it is
    written anyway). Raises TaskError; then nothing has changed.
    """
    task = read_task(folder)
    if task.preparer is None:
        raise TaskError(f"{folder}: no prepare.py: put public/, private/ and sealed/ there yourself")
    with _writable(folder), _staging(task.root) as staging:
        _run_preparer(task, staging)
        _verify(task, staging)
        made = digest_files(staging, DATA_FOLDERS)
        recorded = None if record else read_checksums(task.root)
        wrong = difference(recorded, made) if recorded is not None else ""
        if wrong:
            raise TaskError(
                f"{folder}: prepare.py did not make the data that {CHECKSUMS} records ({wrong}); another version "
                "of a package? (--record accepts the new data)"
            )
        changed = _replace(task.root, staging, made, force=force)
        if recorded is None:
            write_checksums(task.root, made)
    return Prepared(task=task, files=made, changed=changed, recorded=recorded is None)


def _run_preparer(task: TaskFolder, out: Path) -> None:
    """Trusted code, in an ordinary process of its own."""
    ended = subprocess.run(
        [sys.executable, "prepare.py", str(out)],
        cwd=task.root,
        env=os.environ | {"PYTHONHASHSEED": "0"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if ended.returncode != 0:
        last = next((line for line in reversed(ended.stdout.splitlines()) if line.strip()), "no output")
        raise TaskError(f"{task.root / 'prepare.py'} failed (exit {ended.returncode}): {last.strip()[:400]}")


def _verify(task: TaskFolder, staging: Path) -> None:
    missing = [name for name in DATA_FOLDERS if not (staging / name).is_dir()]
    if missing:
        raise TaskError(f"{task.root / 'prepare.py'} made no folder {missing[0]}/ in the folder it was given")
    try:
        verify_data(TaskFolder(root=staging, manifest=task.manifest))
    except UserError as error:
        said = str(error).replace(str(staging), "what it made")
        raise TaskError(f"{task.root / 'prepare.py'}: {said}") from error


def _replace(root: Path, staging: Path, made: Mapping[str, str], *, force: bool) -> bool:
    """Move the folders into place; whether anything had to be moved."""
    present = [name for name in DATA_FOLDERS if (root / name).exists()]
    wrong = difference(digest_files(root, present), made) if present else "nothing is there yet"
    if not wrong:
        return False
    if present and not force:
        raise TaskError(
            f"{root}: other data is already there ({wrong}): look at it, then --force to replace it"
        )
    log = root / "sealed" / LOG
    if log.is_file():
        shutil.copy2(log, staging / "sealed" / LOG)
    _swap(root, staging, present)
    return True


def _swap(root: Path, staging: Path, present: list[str]) -> None:
    """Renames only; put back as it was where one of them fails."""
    aside = staging / "replaced"
    aside.mkdir()
    moves = [(root / name, aside / name) for name in present]
    moves += [(staging / name, root / name) for name in DATA_FOLDERS]
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            target.rename(source)
        raise


@contextmanager
def _staging(root: Path) -> Iterator[Path]:
    """A folder on the same file system, gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=".prepare-", dir=root, ignore_cleanup_errors=True) as staging:
        yield Path(staging)


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """Turn what the system refuses (permission, disk full) into a TaskError."""
    try:
        yield
    except OSError as error:
        where = error.filename or folder
        raise TaskError(f"{where}: {refusal(error)}; the task's data was left as it was") from error
