"""checksums.txt is what sha256sum writes, and says which file differs."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.checksums import difference, digest_files, read_checksums, write_checksums


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "public/images").mkdir(parents=True)
    (tmp_path / "sealed").mkdir()
    (tmp_path / "public/train.csv").write_text("a\n")
    (tmp_path / "public/images/one.bin").write_bytes(b"\0\1")
    (tmp_path / "sealed/answers.csv").write_text("b\n")
    (tmp_path / "sealed/reads.log").write_text("{}\n")
    return tmp_path


def test_every_file_is_digested_but_the_log(root: Path) -> None:
    assert digest_files(root, ["public", "sealed"]) == {
        "public/images/one.bin": hashlib.sha256(b"\0\1").hexdigest(),
        "public/train.csv": hashlib.sha256(b"a\n").hexdigest(),
        "sealed/answers.csv": hashlib.sha256(b"b\n").hexdigest(),
    }


def test_what_was_written_is_read_back(root: Path) -> None:
    digests = digest_files(root, ["public"])
    write_checksums(root, digests)

    assert read_checksums(root) == digests


def test_sha256sum_agrees(root: Path) -> None:
    write_checksums(root, digest_files(root, ["public", "sealed"]))

    subprocess.run(
        ["sha256sum", "--check", "--strict", "checksums.txt"], cwd=root, check=True, stdout=subprocess.DEVNULL
    )


def test_no_checksums_are_none(root: Path) -> None:
    assert read_checksums(root) is None


def test_a_line_that_is_none_is_named(root: Path) -> None:
    (root / "checksums.txt").write_text("0" * 64 + "  public/train.csv\nnonsense\n")

    with pytest.raises(UserError, match=r"checksums\.txt: line 2: .*nonsense"):
        read_checksums(root)


def test_the_first_difference_is_said() -> None:
    assert difference({"a": "1"}, {"a": "1"}) == ""
    assert difference({"a": "1"}, {"a": "2"}) == "a has other contents"
    assert difference({"a": "1", "b": "1"}, {"b": "1"}) == "a is missing"
    assert difference({"b": "1"}, {"a": "1", "b": "1"}) == "a is new"
