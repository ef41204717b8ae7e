"""LocalGrader with its real process: the same results as in memory, from many threads, through every death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlwright_api.mltask import MetricSpec, MLTaskSpec, Split, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_api.results import GraderResult, Verdict
from mlwright_sandbox.backend import TaskMounts
from mlwright_sandbox.errors import AnswersError, GraderDied
from mlwright_sandbox.grading import answers_for, grade_bytes
from mlwright_sandbox.grading_server import LocalGrader

pytestmark = pytest.mark.sandbox
BOTH = (Split.REWARD, Split.SELECTION)
ROWS = 60


@pytest.fixture(scope="module")
def grader() -> Iterator[LocalGrader]:
    with LocalGrader(deadline_seconds=30) as grader:
        yield grader


def make_task(folder: Path, *, metric: str = "mae", grade: str | None = None) -> TaskMounts:
    """Ids and answers are 0 to 59; a third of them each is Reward, Selection, Final."""
    lines = [f"{i},{i},{list(Split)[i % 3]}" for i in range(ROWS)]
    files = {
        "public/sample_submission.csv": ["id,target", *(f"{i},0" for i in range(ROWS))],
        "private/answers.csv": ["id,target,split", *(line for line in lines if not line.endswith("Final"))],
        "sealed/answers.csv": ["id,target,split", *(line for line in lines if line.endswith("Final"))],
        **({} if grade is None else {"grade.py": [grade]}),
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(content))
    direction = {} if grade is None else {"direction": "Maximize"}
    spec = MLTaskSpec(
        title="task",
        description="-",
        metric=MetricSpec.model_validate({"name": metric, **direction}),
        submission=SubmissionSpec(target_columns=["target"], kind=SubmissionKind.VALUES),
        reference=TaskReference(baseline=0),
    )
    return TaskMounts(
        name="task",
        spec=spec,
        public=folder / "public",
        private=folder / "private",
        sealed=folder / "sealed",
        grader=None if grade is None else folder / "grade.py",
    )


def submission(shift: float = 1) -> bytes:
    return "\n".join(["id,target", *(f"{i},{i + shift}" for i in range(ROWS))]).encode()


def without_time(result: GraderResult) -> GraderResult:
    return result.model_copy(update={"grading_seconds": 0})


def test_a_result_is_the_one_of_grading_in_memory(grader: LocalGrader, tmp_path: Path) -> None:
    task = make_task(tmp_path)
    for content in (submission(), submission(0.25), b"rubbish", b""):
        expected = grade_bytes(answers_for(task, BOTH), content, BOTH)
        assert without_time(grader.grade(task, content, BOTH)) == without_time(expected)


def test_a_folder_is_graded_through_its_descriptor_though_its_name_is_gone(
    grader: LocalGrader, tmp_path: Path
) -> None:
    task, work = make_task(tmp_path), tmp_path / "work"
    work.mkdir()
    (work / "submission.csv").write_bytes(submission(2))
    descriptor = os.open(work, os.O_RDONLY | os.O_DIRECTORY)
    work.rename(tmp_path / "elsewhere")
    try:
        result = grader.grade_folder(task, descriptor, (*BOTH, Split.FINAL))
    finally:
        os.close(descriptor)
    assert result.scores == dict.fromkeys((*BOTH, Split.FINAL), 2.0)


def test_intervals_can_be_asked_for(grader: LocalGrader, tmp_path: Path) -> None:
    result = grader.grade(make_task(tmp_path), submission(), (Split.FINAL,), intervals=True)
    assert result.intervals == {Split.FINAL: (1.0, 1.0)}


def test_changed_answers_are_read_again(grader: LocalGrader, tmp_path: Path) -> None:
    task = make_task(tmp_path)
    assert grader.grade(task, submission(), BOTH).scores[Split.REWARD] == 1.0
    path = task.private / "answers.csv"
    path.write_text(path.read_text().replace("0,0,Reward", "0,1000,Reward"))
    assert grader.grade(task, submission(), BOTH).scores[Split.REWARD] > 40


def test_threads_get_their_own_results(grader: LocalGrader, tmp_path: Path) -> None:
    task = make_task(tmp_path)
    found: dict[int, list[float]] = {}

    def work(number: int) -> None:
        found[number] = [grader.grade(task, submission(number), BOTH).scores[Split.REWARD] for _ in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: [number] * 5 for number in range(1, 7)}


def test_a_task_at_fault_is_an_error_here_and_leaves_the_process_working(
    grader: LocalGrader, tmp_path: Path
) -> None:
    broken, task = make_task(tmp_path / "broken"), make_task(tmp_path / "task")
    (broken.private / "answers.csv").write_text("id,target\n1,1\n")
    with pytest.raises(AnswersError, match=r"private/answers\.csv has no column 'split'"):
        grader.grade(broken, submission(), BOTH)
    assert grader.grade(task, submission(), BOTH).verdict is Verdict.VALID


def test_a_grade_py_may_print_and_raise(grader: LocalGrader, tmp_path: Path) -> None:
    source = "def grade(s, a):\n    print('x' * 100_000)\n    raise ValueError('no')\n"
    result = grader.grade(make_task(tmp_path, metric="own", grade=source), submission(), BOTH)
    assert (result.verdict, result.reason) == (Verdict.INVALID, "submission.csv: no")


DEATHS = {
    "a signal": ("import os; os.kill(os.getpid(), 11)", "it ended with signal 11"),
    "an exit": ("import os; os._exit(7)", "it ended with exit code 7"),
    "out of memory": ("x = bytearray(1 << 40)", "it ended with exit code 70"),
}


@pytest.mark.parametrize(("body", "end"), DEATHS.values(), ids=DEATHS.keys())
def test_a_grading_that_dies_on_every_attempt_is_invalid_with_a_reason(
    grader: LocalGrader, tmp_path: Path, body: str, end: str
) -> None:
    source = f"class E(BaseException): pass\ndef grade(s, a):\n    {body}\n"
    if "bytearray" in body:
        source = (
            f"def grade(s, a):\n    try:\n        {body}\n    except MemoryError:\n        raise SystemExit\n"
        )
    task, sound = make_task(tmp_path / "deadly", metric="own", grade=source), make_task(tmp_path / "sound")
    result = grader.grade(task, submission(), BOTH)
    assert result.verdict is Verdict.INVALID
    assert result.reason == f"GraderDied: on every attempt {end}"
    assert grader.grade(sound, submission(), BOTH).scores[Split.REWARD] == 1.0


def test_a_grading_that_dies_once_is_tried_again(grader: LocalGrader, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    source = (
        f"import os, pathlib\nflag = pathlib.Path({str(flag)!r})\n"
        "def grade(s, a):\n    if not flag.exists():\n        flag.touch()\n        os._exit(1)\n    return 5\n"
    )
    result = grader.grade(make_task(tmp_path, metric="own", grade=source), submission(), BOTH)
    assert result.scores == dict.fromkeys(BOTH, 5.0)


def test_a_grading_that_does_not_end_is_ended(tmp_path: Path) -> None:
    source = "import threading\ndef grade(s, a):\n    threading.Event().wait()\n"
    with LocalGrader(deadline_seconds=0.3) as grader:
        result = grader.grade(make_task(tmp_path, metric="own", grade=source), submission(), BOTH)
    assert result.reason == "GraderDied: on every attempt it did not end in time"


def server_of(grader: LocalGrader) -> subprocess.Popen[bytes]:
    assert grader._server is not None
    return grader._server._process


def test_a_process_that_was_killed_is_started_again(tmp_path: Path) -> None:
    task = make_task(tmp_path)
    with LocalGrader() as grader:
        grader.grade(task, submission(), BOTH)
        first = server_of(grader)
        first.kill()
        first.wait()
        assert grader.grade(task, submission(), BOTH).verdict is Verdict.VALID
        assert server_of(grader).pid != first.pid


def test_a_process_that_cannot_live_is_a_typed_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with LocalGrader() as grader, pytest.raises(GraderDied, match="grading process"):
        grader.grade(make_task(tmp_path), submission(), BOTH)


def test_an_interpreter_that_is_not_there_is_a_typed_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with LocalGrader() as grader, pytest.raises(GraderDied, match="cannot be started: No such file"):
        grader.grade(make_task(tmp_path), submission(), BOTH)


def test_a_closed_grader_says_so_and_closes_twice(tmp_path: Path) -> None:
    grader = LocalGrader()
    grader.grade(make_task(tmp_path), submission(), BOTH)
    process = server_of(grader)
    grader.close()
    grader.close()
    assert process.returncode == 0
    with pytest.raises(GraderDied, match="closed"):
        grader.grade(make_task(tmp_path), submission(), BOTH)


def test_no_process_starts_before_the_first_grading() -> None:
    with LocalGrader() as grader:
        assert grader._server is None


def test_the_process_and_its_children_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """A parent in the middle of a grading gets SIGKILL: it can clean nothing up."""
    pids = tmp_path / "pids"
    os.mkfifo(pids)
    source = (
        f"import os, threading\ndef grade(s, a):\n    with open({str(pids)!r}, 'w') as f:\n"
        "        f.write(f'{os.getppid()} {os.getpid()}')\n    threading.Event().wait()\n"
    )
    task = make_task(tmp_path, metric="own", grade=source)
    reader = os.fork()
    if reader == 0:
        try:
            LocalGrader().grade(task, submission(), BOTH)
        finally:
            os._exit(0)
    server, child = map(int, pids.read_text().split())
    watched = [os.pidfd_open(server), os.pidfd_open(child)]
    os.kill(reader, signal.SIGKILL)
    os.waitpid(reader, 0)
    for descriptor in watched:
        ended = waited(descriptor)
        os.close(descriptor)
        assert ended


def waited(descriptor: int) -> bool:
    """Whether the process behind a pidfd ends within seconds."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(20_000))


def test_a_plant_in_the_working_directory_is_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("numpy.py", "sitecustomize.py", "usercustomize.py", "json.py", "pandas.py"):
        (tmp_path / name).write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "numpy.py"))
    with LocalGrader() as grader:
        assert grader.grade(make_task(tmp_path / "task"), submission(), BOTH).verdict is Verdict.VALID
