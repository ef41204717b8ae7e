"""The second task is in no training text, and RL asks as fine-tuning taught."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_api.mltask import MLTask
from mlwright_trainer.errors import InternalError
from mlwright_trainer.generators import Example, generate
from mlwright_trainer.runs.plan import RunPlan, recorded_run
from mlwright_trainer.tasks.folder import TaskFolder, read_task

from benchmarks.quickstart.plans import varied
from benchmarks.quickstart.settings import RUN_FILE, TASKS, Arm, Job, Sizes
from benchmarks.quickstart.unseen import require_unseen, seen, words_of


def example(completion: str, prompt: str = "# metric\n") -> Example:
    return Example(prompt=prompt, completion=completion)


def test_words_are_found_where_they_stand_alone() -> None:
    assert seen(["age"], [example('train["age"] = 1')]) == {"age"}
    assert seen(["age"], [example("x = train.age + 1")]) == {"age"}
    assert seen(["age"], [example("", prompt="# predict age\n")]) == {"age"}


def test_parts_of_words_and_other_spellings_are_other_words() -> None:
    assert seen(["id", "age"], [example('row_id, "Id", average, storage_age')]) == set()


@pytest.fixture
def task(tmp_path: Path) -> TaskFolder:
    (tmp_path / "public").mkdir()
    manifest = (TASKS / "credit" / "task.yaml").read_text()
    (tmp_path / "task.yaml").write_text(manifest)
    (tmp_path / "public" / "train.csv").write_text("id,seniority,marital,default\n1,2,single,0\n")
    (tmp_path / "public" / "test.csv").write_text("id,seniority,marital\n2,2,single\n")
    return read_task(tmp_path)


def plan_of(task: TaskFolder) -> RunPlan:
    run = varied(recorded_run(RUN_FILE), Job(1, "credit", Arm.RL), Sizes(examples=500))
    return RunPlan("test", run.spec, {"credit": task})


def test_name_and_columns_are_the_words_looked_for(task: TaskFolder) -> None:
    assert words_of(task) == ["credit", "id", "seniority", "marital", "default"]


def test_the_quickstart_s_training_texts_know_nothing_of_the_second_task(task: TaskFolder) -> None:
    found = require_unseen(plan_of(task), task)
    assert (found.task, found.seed, found.examples) == ("credit", 1, 500)


def test_a_column_that_occurs_stops_the_benchmark(task: TaskFolder) -> None:
    (task.public / "train.csv").write_text("id,model,default\n1,2,0\n")
    with pytest.raises(InternalError, match="training texts contain model"):
        require_unseen(plan_of(task), task)


def test_the_generator_s_texts_lack_every_column_that_the_manifest_describes() -> None:
    """Of the task as shipped, its data not needed: the columns are in the description's table."""
    manifest = read_task(TASKS / "credit").manifest
    assert isinstance(manifest, MLTask)
    rows = [line for line in manifest.spec.description.splitlines() if line.startswith("| `")]
    columns = {
        name for line in rows for name in line.split("|")[1].replace("`", " ").replace(",", " ").split()
    }
    assert len(columns) >= 14
    assert seen([manifest.metadata.name, *columns], generate("sklearn-tabular", seed=1, count=2000)) == set()
