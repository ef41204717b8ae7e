"""Whatever a public file is called, its columns are found."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlwright_trainer.tasks.public_files import canonical, read_public


def _columns(root: Path) -> dict[str, list[str]]:
    """Values by column name over all tables."""
    return {
        str(name): list(table.columns[name]) for table in read_public(root).tables for name in table.columns
    }


def test_numbers_are_the_same_however_they_are_written() -> None:
    assert list(canonical(pd.Series(["1", "1.0", " 1.00", "2e0"]))) == ["1.0", "1.0", "1.0", "2.0"]
    assert list(canonical(pd.Series([1, 2]))) == ["1.0", "2.0"]
    assert list(canonical(pd.Series(["1", "a"]))) == ["1", "a"]
    assert list(canonical(pd.Series([], dtype=object))) == []


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_tables_are_read_with_any_separator(tmp_path: Path, separator: str) -> None:
    (tmp_path / "readme").write_text(f"k{separator}v\n1{separator}a\n2{separator}b\n")

    assert _columns(tmp_path)["v"] == ["a", "b"]


def test_a_table_without_header_keeps_its_first_row(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("1,a\n2,b\n")

    assert _columns(tmp_path)["1"] == ["a", "b"]
    assert any(list(table.columns.iloc[:, 1]) == ["a", "b"] for table in read_public(tmp_path).tables)


def test_compressed_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "hidden.gz").write_bytes(gzip.compress(b"k,v\n1,a\n2,b\n"))

    assert _columns(tmp_path)["v"] == ["a", "b"]


def test_arrays_are_columns_and_keep_their_rows(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]]))
    np.savez(tmp_path / "b.npz", answers=np.array([5.0, 6.0]))
    tables = {table.name: table for table in read_public(tmp_path).tables}

    assert list(tables["a.npy"].columns["1"]) == ["2.0", "4.0"]
    assert list(tables["b.npz[answers]"].columns["0"]) == ["5.0", "6.0"]
    assert tables["a.npy"].array is not None


@pytest.mark.parametrize(
    "content",
    [[{"k": 1, "v": "a"}, {"k": 2, "v": "b"}], {"k": [1, 2], "v": ["a", "b"]}],
)
def test_json_tables_are_read(tmp_path: Path, content: object) -> None:
    (tmp_path / "x.json").write_text(json.dumps(content))

    assert _columns(tmp_path)["v"] == ["a", "b"]


def test_a_json_map_has_keys_and_values(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"17": 0, "18": 1}))
    columns = _columns(tmp_path)

    assert (columns["key"], columns["value"]) == (["17.0", "18.0"], ["0.0", "1.0"])


def test_prose_is_a_column_of_words(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Notes 1\nnothing (really) here\n")

    assert _columns(tmp_path)["words"] == ["#", "Notes", "1.0", "nothing", "really", "here"]


def test_what_cannot_be_read_is_listed_and_pickles_are_never_loaded(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return exec, (f"open({str(tmp_path / 'owned')!r}, 'w')",)

    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Bomb()) + b"\xff\xfe")
    np.save(tmp_path / "objects.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    files = read_public(tmp_path)

    assert files.unread == ("model.pkl", "objects.npy")
    assert not (tmp_path / "owned").exists()


def test_links_that_lead_out_are_listed(tmp_path: Path) -> None:
    public = tmp_path / "public"
    public.mkdir()
    (tmp_path / "answers.csv").write_text("id,y\n1,2\n")
    (public / "inside.csv").write_text("a,b\n1,2\n")
    (public / "out.csv").symlink_to(tmp_path / "answers.csv")
    (public / "in.csv").symlink_to(public / "inside.csv")

    assert read_public(public).links_out == ("out.csv",)
