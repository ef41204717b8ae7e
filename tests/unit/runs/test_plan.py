"""What a run file has to say, and how it is told what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import MLTask
from mlwright_trainer.errors import UserError
from mlwright_trainer.runs.plan import differences, load_plan, recorded_run

TASK: dict[str, Any] = {
    "apiVersion": "mlwright.dev/v1alpha1",
    "kind": "MLTask",
    "metadata": {"name": "coins"},
    "spec": {
        "title": "Coins",
        "description": "Which coins are real?",
        "metric": {"name": "roc_auc"},
        "submission": {"targetColumns": ["real"], "kind": "Probabilities"},
        "reference": {"baseline": 0.5, "best": 0.9},
    },
}
RUN: dict[str, Any] = {
    "apiVersion": "mlwright.dev/v1alpha1",
    "kind": "TrainingRun",
    "metadata": {"name": "coins-run"},
    "spec": {"tasks": [{"name": "coins"}], "model": {"source": {"path": "model"}}},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_task(tmp_path / "coins")
    write(tmp_path / "run.yaml", RUN)
    return tmp_path


def make_task(folder: Path, name: str = "coins") -> None:
    for part in ("public", "private", "sealed"):
        (folder / part).mkdir(parents=True)
    write(folder / "task.yaml", {**TASK, "metadata": {"name": name}})
    (folder / "public" / "sample_submission.csv").write_text(
        "id,real\n1,0.5\n2,0.5\n3,0.5\n4,0.5\n5,0.5\n6,0.5\n"
    )
    (folder / "private" / "answers.csv").write_text(
        "id,real,split\n1,0,Reward\n2,1,Reward\n3,0,Selection\n4,1,Selection\n"
    )
    (folder / "sealed" / "answers.csv").write_text("id,real,split\n5,0,Final\n6,1,Final\n")


def write(path: Path, *documents: dict[str, Any]) -> None:
    path.write_text("\n---\n".join(json.dumps(document, indent=1) for document in documents))


def changed(**spec: Any) -> dict[str, Any]:
    return {**RUN, "spec": {**RUN["spec"], **spec}}


def test_a_task_is_found_beside_the_run_file(folder: Path) -> None:
    plan = load_plan(folder / "run.yaml")
    assert plan.name == "coins-run"
    assert plan.tasks["coins"].root == folder / "coins"


def test_a_task_is_found_where_the_command_says(folder: Path) -> None:
    (folder / "coins").rename(folder / "elsewhere")
    plan = load_plan(folder / "run.yaml", task_folders={"coins": folder / "elsewhere"})
    assert plan.tasks["coins"].root == folder / "elsewhere"


def test_a_task_is_found_where_an_annotated_document_says(folder: Path) -> None:
    (folder / "coins").rename(folder / "elsewhere")
    annotated = {**TASK, "metadata": {"name": "coins", "annotations": {"mlwright.dev/folder": "elsewhere"}}}
    write(folder / "run.yaml", RUN, annotated)
    assert load_plan(folder / "run.yaml").tasks["coins"].root == folder / "elsewhere"


def test_local_paths_are_relative_to_the_run_file_and_end_up_absolute(folder: Path) -> None:
    plan = load_plan(folder / "run.yaml")
    assert plan.spec.model.source.path == str(folder / "model")


def test_the_resolved_file_says_the_same_as_the_file_it_came_from(folder: Path) -> None:
    plan = load_plan(folder / "run.yaml")
    (folder / "run").mkdir()
    (folder / "run" / "run.yaml").write_text(plan.dump())
    again = load_plan(folder / "run" / "run.yaml")
    assert again.spec == plan.spec
    assert again.tasks["coins"].root == plan.tasks["coins"].root
    assert again.dump() == plan.dump()


def test_the_resolved_file_shows_every_default(folder: Path) -> None:
    text = load_plan(folder / "run.yaml").dump()
    assert "batchSize: 128" in text
    assert "learningRate:" in text


def test_the_number_of_updates_can_be_replaced(folder: Path) -> None:
    plan = load_plan(folder / "run.yaml")
    assert plan.with_updates(7).updates == 7
    assert plan.with_updates(None) == plan


def refusal(folder: Path, *documents: dict[str, Any]) -> str:
    write(folder / "run.yaml", *documents)
    with pytest.raises(UserError) as caught:
        load_plan(folder / "run.yaml")
    return str(caught.value)


def test_a_misspelt_field_is_named_with_the_nearest_known_one(folder: Path) -> None:
    message = refusal(folder, changed(algorithm={"learningrate": 1e-4}))
    assert "spec.algorithm.learningrate" in message
    assert "learningRate" in message


def test_a_missing_field_is_named(folder: Path) -> None:
    assert "spec.model" in refusal(folder, {**RUN, "spec": {"tasks": [{"name": "coins"}]}})


def test_a_file_without_a_run_says_so(folder: Path) -> None:
    assert "0 TrainingRun documents" in refusal(folder, TASK)


def test_a_file_with_two_runs_says_so(folder: Path) -> None:
    assert "2 TrainingRun documents" in refusal(folder, RUN, {**RUN, "metadata": {"name": "other"}})


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nothing\.yaml"):
        load_plan(tmp_path / "nothing.yaml")


def test_a_task_without_a_folder_is_named(folder: Path) -> None:
    assert "leaf" in refusal(folder, changed(tasks=[{"name": "coins"}, {"name": "leaf"}]))


def test_a_task_folder_for_a_task_that_the_run_has_not_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="no 'coin' "):
        load_plan(folder / "run.yaml", task_folders={"coin": folder / "coins"})


def test_a_folder_that_holds_another_task_is_refused(folder: Path) -> None:
    make_task(folder / "other", name="leaf")
    with pytest.raises(UserError, match="this is task 'leaf'"):
        load_plan(folder / "run.yaml", task_folders={"coins": folder / "other"})


def test_a_reward_under_which_failing_beats_succeeding_is_refused(folder: Path) -> None:
    assert "invalid" in refusal(folder, changed(reward={"invalid": 0.5}))


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"inference": {"kind": "VLLM"}}, ("inference.kind", "Transformers")),
        ({"suspend": True}, ("spec.suspend",)),
    ],
)
def test_what_only_a_cluster_can_give_is_refused(
    folder: Path, spec: dict[str, Any], words: tuple[str, ...]
) -> None:
    message = refusal(folder, changed(**spec))
    assert all(word in message for word in words)


def tuned(**examples: str) -> dict[str, Any]:
    return changed(fineTuning={"examples": examples})


def test_a_generator_that_is_not_shipped_is_refused_before_anything_begins(folder: Path) -> None:
    assert "sklearn-tabular" in refusal(folder, tuned(generator="sklearn-regression"))


def test_examples_that_are_not_there_are_refused_before_anything_begins(folder: Path) -> None:
    assert "nothing.jsonl is not a file" in refusal(folder, tuned(path="nothing.jsonl"))


def test_a_generator_is_refused_for_a_task_that_its_scripts_cannot_solve(folder: Path) -> None:
    task = {**TASK, "spec": {**TASK["spec"], "metric": {"name": "log_loss"}, "reference": {"baseline": 0.69}}}
    write(folder / "coins" / "task.yaml", task)
    message = refusal(folder, tuned(generator="sklearn-tabular"))
    assert "roc_auc" in message
    assert "log_loss" in message
    assert "examples.path" in message


@pytest.mark.parametrize("limits", [{"gpus": 1}, {"cpu": "2"}])
def test_a_task_that_needs_more_than_a_core_is_refused(folder: Path, limits: dict[str, Any]) -> None:
    write(folder / "coins" / "task.yaml", {**TASK, "spec": {**TASK["spec"], "limits": limits}})
    (name,) = limits
    assert f"limits.{name}" in refusal(folder, RUN)


def test_differences_are_named_by_their_field() -> None:
    ours = {"algorithm": {"epochs": 2, "gamma": 1}, "seed": 1}
    theirs = {"algorithm": {"epochs": 1, "gamma": 1}, "seed": 1, "suspend": False}
    assert differences(ours, theirs) == ["spec.algorithm.epochs: 2, not 1", "spec.suspend: None, not False"]


def test_the_recorded_run_is_read_without_its_tasks(folder: Path) -> None:
    plan = load_plan(folder / "run.yaml")
    (folder / "recorded.yaml").write_text(plan.dump())
    (folder / "coins" / "task.yaml").unlink()
    assert recorded_run(folder / "recorded.yaml").spec == plan.spec


def test_each_task_of_the_resolved_file_carries_its_folder(folder: Path) -> None:
    from mlwright_api.manifests import load_manifests

    (folder / "resolved.yaml").write_text(load_plan(folder / "run.yaml").dump())
    (task,) = [one for one in load_manifests(folder / "resolved.yaml") if isinstance(one, MLTask)]
    assert task.metadata.annotations["mlwright.dev/folder"] == str(folder / "coins")
