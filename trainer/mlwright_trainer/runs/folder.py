"""A run's folder: where each thing is, and that one process at a time works in it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mlwright_trainer.errors import UserError


@dataclass(frozen=True)
class RunFolder:
    """`run.yaml` (resolved), `ledger.sqlite`, `weights/<version>/`, `checkpoints/`, `best/`, `report.html`."""

    path: Path

    @property
    def run_file(self) -> Path:
        return self.path / "run.yaml"

    @property
    def ledger(self) -> Path:
        return self.path / "ledger.sqlite"

    @property
    def weights(self) -> Path:
        return self.path / "weights"

    @property
    def initial_weights(self) -> Path:
        return self.weights / "0"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def best(self) -> Path:
        return self.path / "best"

    @property
    def report(self) -> Path:
        return self.path / "report.html"

    @property
    def holds_a_run(self) -> bool:
        return self.ledger.is_file()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Make the folder and keep other processes out of it; released by the kernel at death.

        Raises UserError where another process works in it or it cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot be written ({error.strerror}); choose another --dir"
            ) from error
        try:
            self._take(descriptor)
            yield
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip()
            raise UserError(
                f"{self.path}: process {holder or 'unknown'} is working in this folder; "
                "wait for it, stop it, or choose another --dir"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def open_run(path: Path) -> RunFolder:
    """The folder of a run that exists. Raises UserError where there is none."""
    folder = RunFolder(path)
    if not folder.holds_a_run:
        raise UserError(
            f"{path}: there is no run here (no ledger.sqlite); name the folder that `mlwright run` made"
        )
    return folder


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that at any moment it is absent, as it was, or whole."""
    unfinished = path.with_name(f".{path.name}.new")
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
