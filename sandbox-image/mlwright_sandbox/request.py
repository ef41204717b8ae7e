"""What a pod's agent is asked to run: two files of the downward API, believed in nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from mlwright_api.base import ApiModel
from mlwright_api.patterns import CSV_NAME, FILE_NAME
from mlwright_api.rollout import FILES_BYTES, ScriptFile
from pydantic import Field, TypeAdapter, ValidationError

from mlwright_sandbox.errors import RequestError
from mlwright_sandbox.reasons import one_line
from mlwright_sandbox.wire import Job

JOB_FILE, FILES_FILE = "job.json", "files.json"
Model = TypeVar("Model")
DATA_NAME = "data"
"""Of the public data in the work folder."""
_JOB_BYTES = 64 * 1024
_FILES_BYTES = 6 * FILES_BYTES + 64 * 1024
"""Every byte may be escaped as \\u0000."""
_BYTES = Annotated[int, Field(ge=1, le=1 << 50)]


class PodJob(ApiModel):
    """job.json: how to run the entrypoint, and what it may use."""

    entrypoint: Annotated[str, Field(pattern=FILE_NAME, max_length=128)]
    seed: Annotated[int, Field(ge=0, le=2**53)]
    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)]
    """Execution, from the script's start."""
    memory_bytes: _BYTES
    work_bytes: _BYTES
    submission: Annotated[str, Field(pattern=CSV_NAME, max_length=128)]
    """The file whose writing is a milestone."""
    instrument: bool


_JOB = TypeAdapter(PodJob)
_FILES = TypeAdapter(Annotated[list[ScriptFile], Field(min_length=1, max_length=16)])


def read_request(folder: Path) -> Job:
    """The job in `folder`. Errors: RequestError, one line: file, field, and what is wrong."""
    asked = _parsed(_JOB, folder / JOB_FILE, _JOB_BYTES)
    files = _parsed(_FILES, folder / FILES_FILE, _FILES_BYTES)
    problem = next(_problems(asked, files), None)
    if problem is not None:
        raise RequestError(f"{FILES_FILE}: {problem}")
    texts = {file.path: file.content for file in files}
    return Job(
        script=texts.pop(asked.entrypoint),
        seed=asked.seed,
        timeout_seconds=asked.timeout_seconds,
        memory_bytes=asked.memory_bytes,
        work_bytes=asked.work_bytes,
        submission=asked.submission,
        entrypoint=asked.entrypoint,
        files=texts,
        instrument=asked.instrument,
    )


def _problems(asked: PodJob, files: Sequence[ScriptFile]) -> Iterator[str]:
    paths = [file.path for file in files]
    size = sum(len(file.content.encode()) for file in files)
    if size > FILES_BYTES:
        yield f"has {size} bytes of content; at most {FILES_BYTES} are allowed"
    if len(set(paths)) != len(paths):
        yield "has a path more than once"
    if DATA_NAME in paths:
        yield f"{DATA_NAME!r} is the name of the public data"
    if asked.entrypoint not in paths:
        yield f"the entrypoint {asked.entrypoint!r} is not among the files"


def _parsed(adapter: TypeAdapter[Model], path: Path, cap: int) -> Model:
    try:
        return adapter.validate_json(_read(path, cap), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, (path.name, *first["loc"])))
        raise RequestError(one_line(f"{where}: {first['msg']}")) from None


def _read(path: Path, cap: int) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(cap + 1)
    except OSError as error:
        raise RequestError(f"{path.name} cannot be read: {os.strerror(error.errno or 0)}") from error
    if len(content) > cap:
        raise RequestError(f"{path.name} has more than {cap} bytes")
    return content
