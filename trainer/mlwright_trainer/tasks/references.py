"""Writes measured scores into a task.yaml, leaving everything else in it as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from mlwright_trainer.tasks.folder import TaskError, read_task


def record_reference(manifest: Path, *, baseline: float | None = None, best: float | None = None) -> None:
    """Set spec.reference.baseline and best (None: leave it). Raises TaskError; then the file is as it was."""
    before = manifest.read_text("utf-8")
    after = before
    if baseline is not None:
        after = _set(after, "baseline", baseline)
    if best is not None:
        after = _set(after, "best", best)
    try:
        manifest.write_text(after, "utf-8")
        read_task(manifest.parent)
    except BaseException:
        manifest.write_text(before, "utf-8")
        raise


def _set(text: str, name: str, value: float) -> str:
    """The first line `name: ...` below `reference:` with another value; after `baseline:` where there is none."""
    start = re.search(r"^ +reference:.*$", text, re.MULTILINE)
    if start is None:
        raise TaskError("no spec.reference in block style to write measured scores into")
    head, tail = text[: start.end()], text[start.end() :]
    number = f"{value:.6g}"
    replaced, count = re.subn(rf"(?m)^( +{name}:).*$", rf"\g<1> {number}", tail, count=1)
    if not count:
        replaced, count = re.subn(
            r"(?m)^( +)(baseline:.*)$", rf"\g<1>\g<2>\n\g<1>{name}: {number}", tail, count=1
        )
    if not count:
        raise TaskError(f"no spec.reference.{name} in block style to write a measured score into")
    return head + replaced
