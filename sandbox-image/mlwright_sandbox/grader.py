"""The grader's process, `python -I -m mlwright_sandbox.grader`: grades one work folder, writes one JSON result."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_api.results import GraderResult

from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError
from mlwright_sandbox.grading import grade_folder_fd
from mlwright_sandbox.reasons import one_line

RESULT_BYTES = 3 * 1024
ANSWERS_WRONG = 3
"""Exit code where the task's answers or its grade.py are at fault: no submission can be graded."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit 0 with a result, whatever the submission is; 3 where the task is at fault; else a traceback."""
    options = _parser().parse_args(arguments)
    with _open_result(options.result) as output:
        os.chdir("/")
        work_fd = os.open(options.work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            result = grade_folder_fd(_task(options), work_fd, options.splits, intervals=options.intervals)
        except AnswersError as error:
            sys.stderr.write(f"{one_line(str(error))}\n")
            return ANSWERS_WRONG
        finally:
            os.close(work_fd)
        output.write(result_json(result))
    return 0


def result_json(result: GraderResult) -> bytes:
    """The result on one line, at most RESULT_BYTES long."""
    return result.model_dump_json(by_alias=True, exclude_defaults=True).encode()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mlwright_sandbox.grader", description=__doc__)
    parser.add_argument("--task", type=_absolute, required=True, help="MLTask.spec as JSON")
    parser.add_argument("--public", type=_absolute, required=True, help="folder with sample_submission.csv")
    parser.add_argument("--private", type=_absolute, required=True, help="folder with answers.csv")
    parser.add_argument("--sealed", type=_absolute, help="folder with the answers of Final")
    parser.add_argument("--grader", type=_absolute, help="the task's own grade.py")
    parser.add_argument("--work", type=_absolute, required=True, help="the script's work folder")
    parser.add_argument("--splits", type=_splits, default=(Split.REWARD, Split.SELECTION))
    parser.add_argument("--intervals", action="store_true", help="add bootstrap intervals")
    parser.add_argument("--result", type=_absolute, help="file for the result; default: standard output")
    return parser


def _absolute(path: str) -> Path:
    return Path(path).absolute()


def _splits(names: str) -> tuple[Split, ...]:
    return tuple(Split(name) for name in names.split(","))


def _task(options: argparse.Namespace) -> TaskMounts:
    spec = MLTaskSpec.model_validate_json(options.task.read_bytes())
    return TaskMounts(
        name=spec.title,
        spec=spec,
        public=options.public,
        private=options.private,
        sealed=options.sealed,
        grader=options.grader,
    )


def _open_result(path: Path | None) -> BinaryIO:
    """Where the result goes; standard output itself is then the log, so that a grade.py may print."""
    if path is not None:
        return path.open("wb")
    result = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return result


if __name__ == "__main__":
    sys.exit(main())
