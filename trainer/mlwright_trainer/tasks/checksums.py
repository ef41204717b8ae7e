"""checksums.txt: what a task's data must be, byte for byte, in the format of sha256sum."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.final_reads import LOG

CHECKSUMS = "checksums.txt"


def digest_files(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """sha256 of every file below `folders` of `root`, by its path relative to `root`, sorted; not the log."""
    found = {}
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.name != LOG:
                found[path.relative_to(root).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def read_checksums(task_root: Path) -> dict[str, str] | None:
    """The recorded checksums, None where there are none yet. Raises UserError for a line that is not one."""
    path = task_root / CHECKSUMS
    if not path.is_file():
        return None
    recorded = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        digest, _, name = line.partition("  ")
        if len(digest) != 64 or not name:
            raise UserError(f"{path}: line {number}: not a line of sha256sum: {line[:40]!r}")
        recorded[name] = digest
    return recorded


def write_checksums(task_root: Path, digests: Mapping[str, str]) -> None:
    """Record checksums; `sha256sum -c checksums.txt` can verify them, too."""
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    (task_root / CHECKSUMS).write_text("".join(lines), "utf-8")


def difference(recorded: Mapping[str, str], found: Mapping[str, str]) -> str:
    """The first difference in words, empty where there is none."""
    for name in sorted({*recorded, *found}):
        if name not in found:
            return f"{name} is missing"
        if name not in recorded:
            return f"{name} is new"
        if recorded[name] != found[name]:
            return f"{name} has other contents"
    return ""
