"""`python -I -m mlwright_sandbox.grader` as a pod runs it: arguments in, one JSON result out."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mlwright_api.mltask import MetricSpec, MLTaskSpec, Split, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_api.results import (
    GRADER_MESSAGE_BYTES,
    GraderResult,
    Verdict,
    read_grader_failure,
    read_grader_result,
)
from mlwright_sandbox.grader import result_json
from mlwright_sandbox.handover import AgentLock

GRADE = "print('noise from grade.py')\ndef grade(s, a):\n    print('more')\n    return abs(s - a)['target'].mean()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A task with one row a split, a grade.py, and a work folder with a submission."""
    files = {
        "public/sample_submission.csv": "id,target\n1,0\n2,0\n3,0\n",
        "private/answers.csv": "id,target,split\n1,1,Reward\n2,2,Selection\n",
        "sealed/answers.csv": "id,target,split\n3,3,Final\n",
        "work/submission.csv": "id,target\n1,2\n2,5\n3,9\n",
        "grade.py": GRADE,
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    write_spec(tmp_path, MetricSpec(name="mae"))
    return tmp_path


def write_spec(folder: Path, metric: MetricSpec) -> None:
    spec = MLTaskSpec(
        title="task",
        description="-",
        metric=metric,
        submission=SubmissionSpec(target_columns=["target"], kind=SubmissionKind.VALUES),
        reference=TaskReference(baseline=0),
    )
    (folder / "task.json").write_text(spec.model_dump_json(by_alias=True, exclude_none=True))


def grade(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-I",
        "-m",
        "mlwright_sandbox.grader",
        "--task",
        "task.json",
        "--public",
        "public",
    ]
    return subprocess.run(
        [*command, "--private", "private", "--work", "work", *more],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def result_of(done: subprocess.CompletedProcess[str]) -> GraderResult:
    assert done.returncode == 0, done.stderr
    result = read_grader_result(done.stdout)
    assert result is not None
    return result


def test_reward_and_selection_are_scored_unless_other_splits_are_asked_for(folder: Path) -> None:
    assert result_of(grade(folder)).scores == {Split.REWARD: 1.0, Split.SELECTION: 3.0}
    final = grade(folder, "--sealed", "sealed", "--splits", "Final")
    assert result_of(final).scores == {Split.FINAL: 6.0}


def test_the_result_can_go_to_a_file(folder: Path) -> None:
    done = grade(folder, "--result", "result.json")
    assert (done.returncode, done.stdout) == (0, "")
    written = read_grader_result((folder / "result.json").read_text())
    assert written is not None
    assert written.verdict is Verdict.VALID


def test_what_a_grade_py_prints_does_not_mix_with_the_result(folder: Path) -> None:
    write_spec(folder, MetricSpec.model_validate({"name": "own", "direction": "Minimize"}))
    done = grade(folder, "--grader", "grade.py")
    assert result_of(done).scores == {Split.REWARD: 1.0, Split.SELECTION: 3.0}
    assert "noise from grade.py" in done.stderr


def test_a_grade_py_beside_the_answers_is_used(folder: Path) -> None:
    """In a pod there is nothing else that could bring it."""
    (folder / "grade.py").rename(folder / "private/grade.py")
    write_spec(folder, MetricSpec.model_validate({"name": "own", "direction": "Minimize"}))
    assert result_of(grade(folder)).scores == {Split.REWARD: 1.0, Split.SELECTION: 3.0}


def test_the_sample_can_be_graded_in_its_place(folder: Path) -> None:
    done = grade(folder, "--work", "public", "--submission", "sample_submission.csv")
    assert result_of(done).verdict is Verdict.TRIVIAL


def test_a_bad_submission_is_a_result_and_no_failure(folder: Path) -> None:
    (folder / "work/submission.csv").unlink()
    (folder / "work/submission.csv").symlink_to("../private/answers.csv")
    result = result_of(grade(folder))
    assert result.verdict is Verdict.INVALID
    assert result.reason == "submission.csv is a symbolic link; write a regular file"


def test_a_task_at_fault_is_a_failure_with_one_line(folder: Path) -> None:
    (folder / "private/answers.csv").unlink()
    done = grade(folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "private/answers.csv cannot be read: No such file or directory\n"


def test_a_result_file_says_why_there_is_no_result(folder: Path) -> None:
    (folder / "private/answers.csv").unlink()
    assert grade(folder, "--result", "result.json").returncode == 3
    message = (folder / "result.json").read_text()
    assert read_grader_failure(message) == "private/answers.csv cannot be read: No such file or directory"
    assert read_grader_result(message) is None


def test_a_fault_of_our_own_is_a_traceback_and_a_line_in_the_result_file(folder: Path) -> None:
    (folder / "task.json").write_text("{}")
    done = grade(folder, "--result", "result.json")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert read_grader_failure((folder / "result.json").read_text()).startswith("ValidationError: ")


def test_a_grader_whose_agent_never_starts_gives_up_in_time(folder: Path) -> None:
    done = grade(folder, "--wait", "lock", "--wait-seconds", "0.1", "--result", "result.json")
    assert (done.returncode, done.stderr) == (75, "the agent has not started\n")
    assert read_grader_failure((folder / "result.json").read_text()) == "the agent has not started"


def test_a_grader_reads_the_work_folder_after_the_agents_end_and_not_before(folder: Path) -> None:
    (folder / "work/submission.csv").rename(folder / "late.csv")
    lock = AgentLock(folder / "lock")
    with ThreadPoolExecutor(1) as pool:
        grading = pool.submit(grade, folder, "--wait", "lock", "--wait-seconds", "60")
        # Nothing to wait for but time: a grader that does not wait ends.
        with pytest.raises(TimeoutError):
            grading.result(timeout=2)
        (folder / "late.csv").rename(folder / "work/submission.csv")
        lock.clean()
        lock.close()
        assert result_of(grading.result()).scores == {Split.REWARD: 1.0, Split.SELECTION: 3.0}


def test_plants_in_the_work_folder_are_not_imported(folder: Path) -> None:
    for name in ("numpy.py", "sitecustomize.py", "csv.py"):
        (folder / "work" / name).write_text("raise SystemExit('planted')")
        (folder / name).write_text("raise SystemExit('planted')")
    assert result_of(grade(folder)).verdict is Verdict.VALID


def test_a_result_that_is_too_long_loses_of_its_reason_only() -> None:
    scores = {Split.REWARD: 0.5}
    result = GraderResult(verdict=Verdict.INVALID, reason='"\x1b' * 256, scores=scores, digest="f" * 64)
    longer = result.model_copy(update={"reason": "\x1b" * 512})
    for each in (result, longer):
        content = result_json(each)
        assert len(content) <= GRADER_MESSAGE_BYTES
        read = read_grader_result(content.decode())
        assert read is not None
        assert (read.verdict, read.scores, read.digest) == (each.verdict, scores, each.digest)
        assert read.reason.rstrip("…") in each.reason


def test_the_longest_result_fits() -> None:
    result = GraderResult(
        verdict=Verdict.INVALID,
        reason="\N{GRINNING FACE}" * 512,
        scores=dict.fromkeys(Split, -1.2345678901234567e-300),
        intervals=dict.fromkeys(Split, (-1.2345678901234567e-300, 1.2345678901234567e-300)),
        digest="f" * 64,
        grading_seconds=1.2345678901234567,
    )
    assert len(result_json(result)) <= GRADER_MESSAGE_BYTES
    assert GraderResult.model_validate_json(result_json(result)) == result
