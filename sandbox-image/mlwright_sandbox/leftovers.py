"""Folders of rollouts that have no namespace of their own: made private, emptied surely, cleared after a crash."""

from __future__ import annotations

import fcntl
import os
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "mlwright-sandbox-"
_OWNER = "owner"


class StateFolder:
    """A private folder for what sandboxes need on disk; a later start removes it if this process is killed."""

    def __init__(self) -> None:
        remove_stale(Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Held as long as this process lives; descriptors of its children are closed on exec.
        self._owner = os.open(self.path / _OWNER, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._owner, fcntl.LOCK_EX)
        self._made = 0

    def fresh(self, slot: int) -> Path:
        """A new empty folder."""
        return Path(tempfile.mkdtemp(prefix=f"slot-{slot}-", dir=self.path))

    def close(self) -> None:
        """Remove everything; idempotent."""
        if self._owner >= 0:
            os.close(self._owner)
            self._owner = -1
        remove(self.path)


def remove(folder: Path) -> None:
    """Remove a folder that a hostile script has filled: any depth, any modes, links never followed."""
    # rm walks trees of any depth, which shutil.rmtree does not; chmod is for folders closed to their owner.
    for command in (["rm", "-rf"], ["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        subprocess.run([*command, "--", str(folder)], check=False, capture_output=True)
        if not folder.exists():
            return


def remove_stale(parent: Path) -> None:
    """Remove the folders of backends that were killed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            owner = os.open(folder / _OWNER, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(owner, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
            finally:
                os.close(owner)
