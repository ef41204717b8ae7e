"""The example tasks and the task commands, with the real sandbox and grader."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from mlwright_api.mltask import SubmissionKind
from mlwright_trainer.command.task import app
from mlwright_trainer.tasks.checking import check_task
from mlwright_trainer.tasks.checks import Check, Status
from mlwright_trainer.tasks.checksums import digest_files
from mlwright_trainer.tasks.folder import DATA_FOLDERS, load_task, read_task
from mlwright_trainer.tasks.preparation import prepare_task
from mlwright_trainer.tasks.scaffold import NewTask, new_task
from mlwright_trainer.tasks.trial import SandboxTrial
from typer.testing import CliRunner

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tasks"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/task.yaml"))


def _copied(name: str, to: Path) -> Path:
    """An example as git has it: without data."""
    target = to / name
    shutil.copytree(EXAMPLES / name, target, ignore=shutil.ignore_patterns(*DATA_FOLDERS, "__pycache__"))
    return target


def _complaints(checks: list[Check]) -> list[str]:
    """What is not green; that the reference was slow says more about who else uses the machine."""
    return [
        f"{check.status} {check.name}: {check.line}"
        for check in checks
        if check.status is Status.FAIL or (check.status is Status.WARN and check.name != "reference-runs")
    ]


def test_there_are_examples_for_every_family_of_metrics() -> None:
    specs = [read_task(EXAMPLES / name).spec for name in NAMES]

    assert {spec.metric.name for spec in specs} >= {
        "roc_auc",
        "log_loss",
        "quadratic_weighted_kappa",
        "rmsle",
        "mcrmse",
        "accuracy",
    }
    assert {spec.submission.kind for spec in specs} == set(SubmissionKind)


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_an_example_prepares_the_same_twice_and_stands(name: str, tmp_path: Path) -> None:
    folder = _copied(name, tmp_path)
    first = prepare_task(folder)
    assert (first.changed, first.recorded) == (True, False)

    for data in DATA_FOLDERS:
        shutil.rmtree(folder / data)
    assert dict(prepare_task(folder).files) == dict(first.files) == digest_files(folder, DATA_FOLDERS)

    task = load_task(folder)
    assert _complaints(list(check_task(task, SandboxTrial(task)))) == []


@pytest.fixture(scope="module")
def churn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = _copied("churn", tmp_path_factory.mktemp("tasks"))
    prepare_task(folder)
    return folder


@pytest.mark.sandbox
def test_a_script_is_run_and_graded_by_the_command(churn: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import pandas as pd\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "train, test = pd.read_csv('data/train.csv'), pd.read_csv('data/test.csv')\n"
        "columns = [c for c in test.columns if train[c].dtype.kind in 'if' and c != 'id']\n"
        "model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(train[columns], train['churn'])\n"
        "test['churn'] = model.predict_proba(test[columns])[:, 1]\n"
        "test[['id', 'churn']].to_csv('submission.csv', index=False)\n"
    )
    kept = tmp_path / "kept.csv"
    arguments = ["run", str(churn), str(script), "--json", "--submission", str(kept)]
    ran = json.loads(CliRunner().invoke(app, arguments).stdout)
    graded = json.loads(CliRunner().invoke(app, ["grade", str(churn), str(kept), "--json"]).stdout)

    assert (ran["outcome"], list(ran["scores"])) == ("Scored", ["Reward"])
    assert 0.75 < ran["scores"]["Reward"] < 0.93
    assert graded["scores"] == ran["scores"]
    assert {"imports", "data_loaded", "model_trained", "submission_written"} <= set(ran["milestones"])


@pytest.mark.sandbox
def test_a_script_that_fails_is_reported_with_its_reason(churn: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import pandas as pd\npd.read_csv('data/trian.csv')\n")
    ran = json.loads(CliRunner().invoke(app, ["run", str(churn), str(script), "--json"]).stdout)

    assert (ran["outcome"], ran["scores"]) == ("Error", {})
    assert "FileNotFoundError" in ran["reason"]


@pytest.mark.sandbox
def test_the_sandbox_sees_no_answers(churn: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import os\n"
        f"for root in ({str(churn)!r}, 'data', '.'):\n"
        "    for folder, _, files in os.walk(root):\n"
        "        print(folder, [name for name in files if 'answers' in name])\n"
        f"open({str(churn / 'private' / 'answers.csv')!r})\n"
    )
    ran = json.loads(CliRunner().invoke(app, ["run", str(churn), str(script), "--json"]).stdout)

    assert ran["outcome"] == "Error"
    assert "'answers.csv'" not in ran["outputTail"].replace(str(churn), "")


@pytest.mark.sandbox
def test_a_new_task_from_a_table_of_ones_own_stands(churn: Path, tmp_path: Path) -> None:
    task = new_task(
        NewTask(
            folder=tmp_path / "mine",
            metric="log_loss",
            source=churn / "public" / "train.csv",
            targets=("area_code",),
        )
    )
    checks = list(check_task(task, SandboxTrial(task)))

    assert task.spec.submission.target_columns == ["area_code_408", "area_code_415", "area_code_510"]
    assert [check.name for check in checks if check.status is Status.FAIL] == ["reference-beats-baseline"]


@pytest.mark.sandbox
def test_check_with_record_makes_a_new_task_complete(churn: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    new_task(
        NewTask(folder=folder, metric="roc_auc", source=churn / "public" / "train.csv", targets=("churn",))
    )
    result = CliRunner().invoke(app, ["check", str(folder), "--record", "--json"])
    document = json.loads(result.stdout)
    reference = load_task(folder).spec.reference

    assert document["ok"], document
    assert (reference.baseline, reference.best is not None and reference.best > 0.8) == (0.5, True)


@pytest.mark.sandbox
def test_a_task_with_a_grader_of_its_own_is_checked_by_it(churn: Path, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(churn, folder)
    manifest = folder / "task.yaml"
    text = manifest.read_text().replace("name: roc_auc", "name: separation\n    direction: Maximize")
    manifest.write_text(text.replace("baseline: 0.5", "baseline: 0"))
    (folder / "grade.py").write_text(
        "def grade(submission, answers):\n"
        "    scores = submission.merge(answers, on='id', suffixes=('', '_true'))\n"
        "    means = scores.groupby('churn_true')['churn'].mean()\n"
        "    return float(means.loc[1] - means.loc[0])\n"
    )
    (folder / "solution.py").write_text(
        "import pandas as pd\n"
        "from sklearn.tree import DecisionTreeClassifier\n"
        "train, test = pd.read_csv('data/train.csv'), pd.read_csv('data/test.csv')\n"
        "columns = [c for c in test.columns if train[c].dtype.kind in 'if' and c != 'id']\n"
        "model = DecisionTreeClassifier(max_depth=6, random_state=0).fit(train[columns], train['churn'])\n"
        "test['churn'] = model.predict_proba(test[columns])[:, 1]\n"
        "test[['id', 'churn']].to_csv('submission.csv', index=False)\n"
    )
    task = load_task(folder)
    checks = {check.name: check for check in check_task(task, SandboxTrial(task))}

    assert checks["perfect-answers"].line == "Reward 1, Selection 1, Final 1 (the metric has no bound)"
    assert checks["reference-beats-baseline"].status is Status.PASS
    assert checks["large-enough"].status in (Status.PASS, Status.WARN)
    assert checks["ids-shuffled"].status is Status.PASS
