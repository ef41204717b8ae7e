"""The request: read from two files that may hold anything, refused with file, field and reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.rollout import FILES_BYTES
from mlwright_sandbox.errors import RequestError
from mlwright_sandbox.request import read_request

JOB: dict[str, Any] = {
    "entrypoint": "script.py",
    "seed": 7,
    "timeoutSeconds": 30,
    "memoryBytes": 1 << 28,
    "workBytes": 1 << 25,
    "submission": "submission.csv",
    "instrument": True,
}
FILES = [{"path": "script.py", "content": "print(1)\n"}, {"path": "helper.py", "content": "x = 'é€'\n"}]


def write(folder: Path, job: object = JOB, files: object = FILES) -> Path:
    (folder / "job.json").write_text(job if isinstance(job, str) else json.dumps(job))
    (folder / "files.json").write_text(files if isinstance(files, str) else json.dumps(files))
    return folder


def complaint(folder: Path) -> str:
    with pytest.raises(RequestError) as raised:
        read_request(folder)
    text = str(raised.value)
    assert len(text.splitlines()) == 1
    return text


def test_a_request_becomes_a_job(tmp_path: Path) -> None:
    job = read_request(write(tmp_path))
    assert (job.script, job.files, job.entrypoint) == ("print(1)\n", {"helper.py": "x = 'é€'\n"}, "script.py")
    assert (job.seed, job.timeout_seconds, job.memory_bytes, job.work_bytes) == (7, 30.0, 1 << 28, 1 << 25)
    assert (job.submission, job.instrument, job.probe) == ("submission.csv", True, None)
    assert job.poll_memory
    assert job.poll_processes


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("entrypoint", "../script.py"),
        ("entrypoint", ".."),
        ("entrypoint", ""),
        ("seed", -1),
        ("seed", "7"),
        ("timeoutSeconds", 0),
        ("timeoutSeconds", 1e9),
        ("timeoutSeconds", None),
        ("memoryBytes", 0),
        ("memoryBytes", 1.5),
        ("workBytes", 1 << 60),
        ("submission", "a/b.csv"),
        ("submission", "script.py"),
        ("instrument", "yes"),
    ],
)
def test_a_field_out_of_bounds_is_named(tmp_path: Path, field: str, value: object) -> None:
    assert complaint(write(tmp_path, {**JOB, field: value})).startswith(f"job.json.{field}: ")


@pytest.mark.parametrize("field", list(JOB))
def test_a_missing_field_is_named(tmp_path: Path, field: str) -> None:
    job = {name: value for name, value in JOB.items() if name != field}
    assert complaint(write(tmp_path, job)) == f"job.json.{field}: Field required"


def test_an_unknown_field_is_refused(tmp_path: Path) -> None:
    assert complaint(write(tmp_path, {**JOB, "privileged": True})).startswith("job.json.privileged: ")


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([], "files.json: List should have at least 1 item"),
        ([{"path": "a/b.py", "content": ""}], "files.json.0.path: "),
        ([{"path": ".hidden", "content": ""}], "files.json.0.path: "),
        ([{"path": "script.py", "content": 1}], "files.json.0.content: "),
        ([*FILES, FILES[0]], "files.json: has a path more than once"),
        ([FILES[1]], "files.json: the entrypoint 'script.py' is not among the files"),
        ([*FILES, {"path": "data", "content": ""}], "files.json: 'data' is the name of the public data"),
        ([{"path": f"f{n}", "content": ""} for n in range(17)], "files.json: List should have at most 16"),
        (
            [{"path": "script.py", "content": "é" * (FILES_BYTES // 2)}, {"path": "b", "content": "x"}],
            f"files.json: has {FILES_BYTES + 1} bytes of content",
        ),
    ],
)
def test_files_that_are_none_are_refused(tmp_path: Path, files: object, reason: str) -> None:
    assert complaint(write(tmp_path, files=files)).startswith(reason)


def test_all_the_bytes_that_a_rollout_may_have_are_read_however_they_are_escaped(tmp_path: Path) -> None:
    escaped = json.dumps([{"path": "script.py", "content": "\x01" * FILES_BYTES}])
    assert len(escaped) > 5 * FILES_BYTES
    assert len(read_request(write(tmp_path, files=escaped)).script) == FILES_BYTES


@pytest.mark.parametrize("name", ["job.json", "files.json"])
def test_a_file_that_is_too_long_or_missing_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path)
    (tmp_path / name).write_bytes(b" " * (1 << 20))
    assert complaint(tmp_path).startswith(f"{name} has more than ")
    (tmp_path / name).unlink()
    assert complaint(tmp_path) == f"{name} cannot be read: No such file or directory"


@given(st.binary(max_size=200), st.binary(max_size=200))
def test_whatever_lies_there_is_a_job_or_a_refusal(
    tmp_path_factory: pytest.TempPathFactory, job: bytes, files: bytes
) -> None:
    folder = tmp_path_factory.mktemp("request")
    (folder / "job.json").write_bytes(job)
    (folder / "files.json").write_bytes(files)
    assert complaint(folder)
    write(folder)
    (folder / "files.json").write_bytes(files)
    assert complaint(folder).startswith("files.json")


def test_half_a_character_is_refused(tmp_path: Path) -> None:
    files = '[{"path": "script.py", "content": "\\ud800"}]'
    assert complaint(write(tmp_path, files=files)).startswith("files.json: Invalid JSON")
