"""`python -I -m mlwright_sandbox.grader` as a pod runs it: arguments in, one JSON result out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mlwright_api.mltask import MetricSpec, MLTaskSpec, Split, SubmissionKind, SubmissionSpec, TaskReference
from mlwright_api.results import GraderResult, Verdict, read_grader_result
from mlwright_sandbox.grader import RESULT_BYTES, result_json

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


def test_plants_in_the_work_folder_are_not_imported(folder: Path) -> None:
    for name in ("numpy.py", "sitecustomize.py", "csv.py"):
        (folder / "work" / name).write_text("raise SystemExit('planted')")
        (folder / name).write_text("raise SystemExit('planted')")
    assert result_of(grade(folder)).verdict is Verdict.VALID


def test_the_longest_result_fits() -> None:
    result = GraderResult(
        verdict=Verdict.INVALID,
        reason="\N{GRINNING FACE}" * 512,
        scores=dict.fromkeys(Split, -1.2345678901234567e-300),
        intervals=dict.fromkeys(Split, (-1.2345678901234567e-300, 1.2345678901234567e-300)),
        digest="f" * 64,
        grading_seconds=1.2345678901234567,
    )
    assert len(result_json(result)) <= RESULT_BYTES
    assert GraderResult.model_validate_json(result_json(result)) == result
