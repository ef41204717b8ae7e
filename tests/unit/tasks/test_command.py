"""`mlwright task`: one JSON document on stdout and nothing else, errors as MlwrightError, Final guarded."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_api.mltask import Split
from mlwright_api.results import GraderResult, Receipt, ReceiptCheck
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_sandbox.backend import Finished
from mlwright_trainer.command import task as command
from mlwright_trainer.errors import InternalError, MlwrightError, UserError
from mlwright_trainer.tasks.folder import TaskFolder, read_task_answers
from typer.testing import CliRunner, Result

Grade = Callable[..., GraderResult]


def _call(*arguments: object) -> Result:
    return CliRunner().invoke(command.app, [str(argument) for argument in arguments])


def _error(result: Result) -> MlwrightError:
    assert isinstance(result.exception, MlwrightError), result.output
    return result.exception


@pytest.fixture(autouse=True)
def _grading_here(monkeypatch: pytest.MonkeyPatch, grade: Grade) -> None:
    monkeypatch.setattr(command, "grade_submission", grade)


def _ended(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome = Outcome.SCORED
) -> list[tuple[str, tuple[Split, ...]]]:
    """Scripts "run" at once; returns what was asked for."""
    asked: list[tuple[str, tuple[Split, ...]]] = []

    def run_script(
        task: TaskFolder, script: str, *, kind: str, seed: int, splits: tuple[Split, ...]
    ) -> Finished:
        asked.append((script, splits))
        receipt = Receipt(
            backend="Lock",
            user_namespace=False,
            seccomp=True,
            landlock_abi=5,
            checks=[ReceiptCheck(name="NoNetworkSockets", locked=True)],
        )
        status = RolloutStatus(
            outcome=outcome,
            reason="ValueError: no [bold] luck" if outcome is Outcome.ERROR else "",
            scores={Split.REWARD: 0.75} if outcome is Outcome.SCORED else {},
            milestones=["imports"],
            seconds=RolloutSeconds(execution=1.25),
            output_tail="hello\n",
            isolation=receipt,
        )
        return Finished("task-run", status, started_at=0.0, submission=b"id,big\n")

    monkeypatch.setattr(command, "run_script", run_script)
    return asked


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text("print('hello')\n")
    return path


def test_grade_prints_the_score_of_reward(task: TaskFolder) -> None:
    result = _call("grade", task.root, task.sample)

    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, "Reward: 0.5")
    assert "Trivial" in result.stdout
    assert "Final" not in result.stdout


def test_grade_as_json_is_one_document(task: TaskFolder) -> None:
    document = json.loads(_call("grade", task.root, task.sample, "--json").stdout)

    assert document["task"] == "made-up"
    assert (document["verdict"], document["scores"]) == ("Trivial", {"Reward": 0.5})


def test_an_invalid_submission_is_the_users_mistake(task: TaskFolder, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id,big\n1,2\n")
    result = _call("grade", task.root, tmp_path / "bad.csv", "--json")

    assert json.loads(result.stdout)["verdict"] == "Invalid"
    assert (_error(result).exit_code, "bad.csv: Invalid" in str(_error(result))) == (2, True)


def test_final_is_graded_only_when_asked_for_and_logged(task: TaskFolder) -> None:
    perfect = task.root / "perfect.csv"
    perfect.write_bytes(read_task_answers(task).submission_csv())
    log = task.root / "sealed/reads.log"
    _call("grade", task.root, perfect)
    assert not log.exists()

    result = _call("grade", task.root, perfect, "--split", "Final", "--json")
    assert json.loads(result.stdout)["scores"] == {"Final": 1}
    assert "this read is in sealed/reads.log" in result.stderr
    assert json.loads(log.read_text())["digest"] == json.loads(result.stdout)["digest"]


def test_final_that_cannot_be_logged_is_not_graded(task: TaskFolder) -> None:
    (task.root / "sealed/reads.log").mkdir()
    result = _call("grade", task.root, task.sample, "--split", "Final")

    assert "Final is not read" in str(_error(result))
    assert result.stdout == ""


def test_a_missing_submission_is_named(task: TaskFolder) -> None:
    error = _error(_call("grade", task.root, task.root / "nothing.csv"))

    assert (str(error), error.exit_code) == (f"{task.root}/nothing.csv: no such file or directory", 2)


def test_run_says_how_the_script_ended(
    task: TaskFolder, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _ended(monkeypatch)
    result = _call("run", task.root, script)

    assert asked == [("print('hello')\n", (Split.REWARD,))]
    assert result.stdout.splitlines() == [
        "outcome     Scored",
        "Reward      0.75 (baseline 0.5, best 0.9)",
        "seconds     1.25 of 10 (cpu 0.00, starting 0.00, grading 0.00)",
        "milestones  imports",
        "isolation   Lock: 1 of 1 checks held",
        "output",
        "  hello",
    ]


def test_run_as_json_has_what_others_read(
    task: TaskFolder, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ended(monkeypatch, Outcome.ERROR)
    result = _call("run", task.root, script, "--split", "Selection", "--json")
    document = json.loads(result.stdout)

    assert result.exit_code == 0
    assert {
        "outcome",
        "scores",
        "milestones",
        "seconds",
        "reason",
        "outputTail",
        "isolation",
        "taskDigest",
    } <= set(document)
    assert (document["outcome"], document["reason"]) == ("Error", "ValueError: no [bold] luck")


def test_text_in_brackets_is_shown_as_it_is(
    task: TaskFolder, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ended(monkeypatch, Outcome.ERROR)

    assert "ValueError: no [bold] luck" in _call("run", task.root, script).stdout


def test_a_script_that_no_run_would_start_is_not_run(task: TaskFolder, script: Path) -> None:
    script.write_text("#" * (128 * 1024 + 1))
    error = _error(_call("run", task.root, script))
    assert isinstance(error, UserError)
    assert f"{script}: larger than 131072 bytes" in str(error)


def test_run_never_reads_final(task: TaskFolder, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _ended(monkeypatch)

    assert "never run against Final" in str(_error(_call("run", task.root, script, "--split", "Final")))
    assert asked == []


def test_run_keeps_the_submission_where_asked(
    task: TaskFolder, script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ended(monkeypatch)
    _call("run", task.root, script, "--submission", tmp_path / "kept.csv")
    assert (tmp_path / "kept.csv").read_bytes() == b"id,big\n"

    refused = _call("run", task.root, script, "--submission", tmp_path / "no" / "kept.csv")
    assert isinstance(_error(refused), UserError)


def test_a_broken_sandbox_is_our_fault(
    task: TaskFolder, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ended(monkeypatch, Outcome.INFRASTRUCTURE_FAILED)
    result = _call("run", task.root, script, "--json")

    assert isinstance(_error(result), InternalError)
    assert json.loads(result.stdout)["outcome"] == "InfrastructureFailed"


def test_check_fails_with_the_names_of_what_failed(task: TaskFolder) -> None:
    read_task_answers(task).table.to_csv(task.public / "oops.csv", index=False)
    result = _call("check", task.root, "--no-run")

    assert "fail answers-hidden" in result.stdout
    assert str(_error(result)).endswith("checks failed: answers-hidden")
    assert _error(result).exit_code == 2


def test_check_as_json_is_one_document_even_when_it_fails(task: TaskFolder) -> None:
    sound = json.loads(_call("check", task.root, "--no-run", "--json").stdout)
    read_task_answers(task).table.to_csv(task.public / "oops.csv", index=False)
    broken = json.loads(_call("check", task.root, "--no-run", "--json").stdout)

    assert (sound["ok"], broken["ok"]) == (True, False)
    assert {check["status"] for check in sound["checks"]} == {"pass", "warn"}


def test_list_shows_tasks_and_problems(made_up: Callable[..., TaskFolder]) -> None:
    made_up(name="sound")
    broken = made_up(name="broken")
    (broken.root / "task.yaml").write_text("kind: [")
    result = _call("list", broken.root.parent)

    assert "80/80/80" in result.stdout
    assert "Made up" in result.stdout
    assert f"{broken.root}: " in result.stdout


def test_list_of_nothing_teaches(tmp_path: Path) -> None:
    assert "mlwright task new" in _call("list", tmp_path).stdout
    assert json.loads(_call("list", tmp_path, "--json").stdout) == {"tasks": []}


def test_metrics_are_listed_both_ways() -> None:
    names = {each["name"] for each in json.loads(_call("metrics", "--json").stdout)["metrics"]}

    assert {"roc_auc", "log_loss", "quadratic_weighted_kappa", "rmsle", "mcrmse", "accuracy"} <= names
    assert all(name in _call("metrics").stdout for name in names)


def test_prepare_says_what_it_did(task: TaskFolder) -> None:
    error = _error(_call("prepare", task.root))

    assert "no prepare.py" in str(error)
