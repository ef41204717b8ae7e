"""The grader's process, `python -I -m mlwright_sandbox.grader`: grades one work folder, writes one JSON result.

In a pod it is told to wait: it reads the answers at once, and the work folder when the agent has ended.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NoReturn

from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_api.results import GRADER_MESSAGE_BYTES, GraderFailure, GraderResult

from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError, HandoverError
from mlwright_sandbox.grading import answers_for, grade_folder
from mlwright_sandbox.handover import wait_for_agent
from mlwright_sandbox.reasons import one_line, shorten

ANSWERS_WRONG = 3
"""Exit code where the task's answers or its grade.py are at fault: no submission can be graded."""
NO_AGENT = 75
"""Exit code where the agent did not start or end in time: another attempt may do better."""
TERMINATED = 143
OWN_GRADER = "grade.py"
_SHORTEST_REASON = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit 0 with a result, whatever the submission is; 3 where the task, 75 where the agent is at fault.

    Anything else is our fault and a traceback. A result file, which is all that comes out of a pod, then says why.
    """
    options = _parser().parse_args(arguments)
    with _open_result(options.result) as output:
        os.chdir("/")
        try:
            output.write(result_json(_grade(options)))
        except Exception as error:
            if options.result is not None:
                output.write(failure_json(error))
            if not isinstance(error, AnswersError | HandoverError):
                raise
            sys.stderr.write(f"{one_line(str(error))}\n")
            return ANSWERS_WRONG if isinstance(error, AnswersError) else NO_AGENT
    return 0


def _grade(options: argparse.Namespace) -> GraderResult:
    answers = answers_for(_task(options), options.splits)
    if options.wait is not None:
        signal.signal(signal.SIGTERM, _leave)
        wait_for_agent(options.wait, seconds=options.wait_seconds)
    work_fd = os.open(options.work, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return grade_folder(answers, work_fd, options.splits, intervals=options.intervals)
    finally:
        os.close(work_fd)


def _leave(_number: int, _frame: object) -> NoReturn:
    """The pod is being deleted; PID 1 would not hear of it without a handler."""
    os._exit(TERMINATED)


def result_json(result: GraderResult) -> bytes:
    """The result on one line, at most GRADER_MESSAGE_BYTES long: what does not fit is cut off its reason."""
    content = result.model_dump_json(by_alias=True, exclude_defaults=True).encode()
    if len(content) <= GRADER_MESSAGE_BYTES or len(result.reason) <= _SHORTEST_REASON:
        return content
    return result_json(result.model_copy(update={"reason": shorten(result.reason, len(result.reason) // 2)}))


def failure_json(error: Exception) -> bytes:
    """Why there is no result."""
    known = isinstance(error, AnswersError | HandoverError)
    text = str(error) if known else f"{type(error).__name__}: {error}"
    return GraderFailure(failure=one_line(text) or type(error).__name__).model_dump_json().encode()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mlwright_sandbox.grader", description=__doc__)
    parser.add_argument("--task", type=_absolute, required=True, help="MLTask.spec as JSON")
    parser.add_argument("--public", type=_absolute, required=True, help="folder with sample_submission.csv")
    parser.add_argument("--private", type=_absolute, required=True, help="folder with answers.csv")
    parser.add_argument("--sealed", type=_absolute, help="folder with the answers of Final")
    parser.add_argument(
        "--grader", type=_absolute, help="the task's own grade.py; default: the one beside the answers"
    )
    parser.add_argument("--work", type=_absolute, required=True, help="the script's work folder")
    parser.add_argument("--submission", help="grade this file instead of the one that the task names")
    parser.add_argument("--wait", type=_absolute, help="lock file that the agent holds until it ends")
    parser.add_argument("--wait-seconds", type=float, default=0.0, help="how long to wait for the agent")
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
    if options.submission is not None:
        submission = spec.submission.model_copy(update={"file_name": options.submission})
        spec = spec.model_copy(update={"submission": submission})
    beside = options.private / OWN_GRADER
    return TaskMounts(
        name=spec.title,
        spec=spec,
        public=options.public,
        private=options.private,
        sealed=options.sealed,
        grader=options.grader or (beside if beside.is_file() else None),
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
