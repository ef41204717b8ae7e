"""Folders that appear whole or not at all, whatever moment the process is killed at.

`Disk` is the port: every method is one step after which a kill must be survivable, and tests kill at each.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from mlwright_trainer.errors import InternalError
from mlwright_trainer.learning.digest import file_digest

MARKER = "marker.json"
"""Last file of a complete folder: sha256 of every other file, and who wrote it."""


class Disk:
    """The real file system."""

    def make_folder(self, path: Path) -> None:
        """With its parents."""
        path.mkdir(parents=True, exist_ok=True)

    def fill(self, folder: Path, writer: Callable[[Path], None]) -> None:
        """Let `writer` write files into `folder`, and bring them to the disk."""
        writer(folder)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                _sync(path)

    def write(self, path: Path, text: str) -> None:
        """A small file, on the disk when this returns."""
        path.write_text(text, encoding="utf-8")
        _sync(path)

    def rename(self, source: Path, target: Path) -> None:
        """Atomically; on the disk when this returns."""
        source.rename(target)
        _sync(target.parent)

    def remove(self, path: Path) -> None:
        """A folder that nobody may be reading any more."""
        shutil.rmtree(path, ignore_errors=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def commit_folder(
    target: Path, writer: Callable[[Path], None], *, facts: Mapping[str, object], disk: Disk
) -> None:
    """Make `target` from what `writer` writes, replacing one that is there; `facts` go into the marker."""
    partial, old = partial_path(target), target.parent / f".{target.name}.old"
    disk.remove(partial)
    disk.make_folder(partial)
    disk.fill(partial, writer)
    marker = {**facts, "files": _digests(partial)}
    disk.write(partial / MARKER, json.dumps(marker, indent=1, sort_keys=True))
    if target.exists():
        disk.remove(old)
        disk.rename(target, old)
    disk.rename(partial, target)
    disk.remove(old)


def partial_path(target: Path) -> Path:
    """Where `target` is while it is being filled."""
    return target.parent / f".{target.name}.partial"


def discard_folder(path: Path, *, disk: Disk) -> None:
    """Take a folder out of sight in one step, then delete it."""
    doomed = path.parent / f".{path.name}.old"
    disk.remove(doomed)
    disk.rename(path, doomed)
    disk.remove(doomed)


def sweep(parent: Path, *, disk: Disk) -> None:
    """Delete what an earlier process left half-made or half-deleted."""
    for pattern in (".*.partial", ".*.candidate", ".*.old"):
        for path in sorted(parent.glob(pattern)):
            disk.remove(path)


def torn(folder: Path) -> str:
    """What is wrong with a committed folder; empty if it is complete and every checksum holds."""
    marker = folder / MARKER
    if not marker.is_file():
        return f"no {MARKER}"
    try:
        expected = json.loads(marker.read_text(encoding="utf-8"))["files"]
    except (ValueError, KeyError, TypeError):
        return f"{MARKER} is not readable"
    found = _digests(folder)
    wrong = sorted(n for n in expected.keys() | found.keys() if expected.get(n) != found.get(n))
    return f"missing, added or changed: {', '.join(wrong)}" if wrong else ""


def numbered(parent: Path) -> list[int]:
    """Names of the committed folders that are numbers, ascending."""
    return sorted(int(path.name) for path in parent.glob("[0-9]*") if path.is_dir() and path.name.isdigit())


class Fence:
    """Lets one learner at a time write: the one with the highest restart number."""

    def __init__(self, parent: Path, *, disk: Disk, restart: int | None = None) -> None:
        """Take the next number, or `restart` if it is not lower than the last one; InternalError if it is."""
        self._file = parent / "restart.json"
        last = self._last()
        self.restart = last + 1 if restart is None else restart
        self.check()
        partial = parent / ".restart.json.partial"
        disk.make_folder(parent)
        disk.write(partial, json.dumps({"restart": self.restart}))
        disk.rename(partial, self._file)

    def check(self) -> None:
        """InternalError once a newer learner has started."""
        last = self._last()
        if last > self.restart:
            raise InternalError(
                f"restart {self.restart} of the learner is refused: "
                f"restart {last} has taken over {self._file.parent}"
            )

    def _last(self) -> int:
        if not self._file.is_file():
            return 0
        return int(json.loads(self._file.read_text(encoding="utf-8"))["restart"])


def _digests(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != MARKER)
    return {str(path.relative_to(folder)): file_digest(path) for path in files}
