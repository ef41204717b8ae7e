"""Folders of rollouts that have no namespace of their own: made private, emptied surely, cleared after a crash."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
import warnings
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
    """Remove a folder that a hostile script has filled: any depth, any modes, links never followed.

    Nothing may run in it any more. What cannot be removed is left, with a warning.
    """
    try:
        _remove_within(folder)
        folder.rmdir()
    except FileNotFoundError:
        return
    except OSError as error:
        warnings.warn(f"a sandbox's folder could not be removed: {error}", RuntimeWarning, stacklevel=2)


def _remove_within(top: Path) -> None:
    """Folders are moved up beside one another before they are emptied.

    A path to the deepest may be longer than the kernel takes, recursion deeper than Python goes, and the walk of
    `rm` takes time with the square of the depth.
    """
    _open_to_owner(top)
    names = (top / f".removed-{number}" for number in itertools.count())
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        for entry in list(os.scandir(folder)):
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)  # noqa: PTH108  # a name may be no text
                continue
            _open_to_owner(entry.path)
            moved = next(name for name in names if not name.exists())
            os.rename(entry.path, moved)  # noqa: PTH104
            waiting.append(moved)
        if folder != top:
            folder.rmdir()


def _open_to_owner(folder: str | Path) -> None:
    with suppress(PermissionError):
        os.chmod(folder, 0o700)  # noqa: PTH101


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
