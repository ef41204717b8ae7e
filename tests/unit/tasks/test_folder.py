"""A task folder loads, or says in one line what is wrong, where, and what to do."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_api.digests import spec_digest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.folder import TaskFolder, load_task, read_task, readable


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_a_sound_folder_loads_with_everything_that_others_need(task: TaskFolder) -> None:
    (task.root / "solution.py").write_text("")
    mounts = task.mounts()

    assert task.name == "made-up"
    assert task.digest == spec_digest(task.spec)
    assert task.metric.name == "roc_auc"
    assert task.solution == task.root / "solution.py"
    assert (mounts.name, mounts.spec, mounts.grader) == (task.name, task.spec, None)
    assert (mounts.public, mounts.private, mounts.sealed) == tuple(
        task.root / name for name in ("public", "private", "sealed")
    )


def test_paths_are_absolute_even_if_the_folder_was_not(
    task: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(task.root.parent)

    assert load_task(Path(task.root.name)).mounts().public.is_absolute()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere: no such folder"):
        load_task(tmp_path / "nowhere")


def test_a_folder_without_manifest_teaches_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no task\.yaml in it; make one with: mlwright task new"):
        load_task(tmp_path)


def test_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="no such folder"):
        load_task(tmp_path / "file")


def test_two_tasks_in_one_manifest_are_refused(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    manifest.write_text(manifest.read_text() + "---\n" + manifest.read_text())

    with pytest.raises(UserError, match="2 MLTask documents in it"):
        load_task(task.root)


def test_a_manifest_without_a_task_is_refused(task: TaskFolder) -> None:
    (task.root / "task.yaml").write_text(
        "apiVersion: mlwright.dev/v1alpha1\nkind: TrainingRun\nmetadata: {name: r}\n"
        "spec: {tasks: [{name: t}], model: {source: {hub: a/b}}}\n"
    )
    with pytest.raises(UserError, match="0 MLTask documents in it"):
        load_task(task.root)


def test_a_misspelt_field_is_reported_with_its_place(task: TaskFolder) -> None:
    _edit(task.root / "task.yaml", "timeoutSeconds", "timeoutSecond")

    with pytest.raises(UserError, match=r"task\.yaml.*limits.*timeoutSecond"):
        load_task(task.root)


def test_an_unknown_metric_is_refused_with_a_near_name(task: TaskFolder) -> None:
    _edit(task.root / "task.yaml", "roc_auc", "roc_auk")

    with pytest.raises(UserError, match=r"roc_auk.*roc_auc"):
        load_task(task.root)


def test_a_metric_of_its_own_needs_its_grader(task: TaskFolder) -> None:
    _edit(task.root / "task.yaml", "name: roc_auc", "name: profit\n    direction: Maximize")
    with pytest.raises(UserError, match=r"'profit' is not registered and there is no grade\.py"):
        load_task(task.root)

    (task.root / "grade.py").write_text("def grade(submission, answers): return 1.0\n")
    assert load_task(task.root).mounts().grader == task.root / "grade.py"


def test_a_grader_needs_a_direction(task: TaskFolder) -> None:
    (task.root / "grade.py").write_text("def grade(submission, answers): return 1.0\n")

    with pytest.raises(UserError, match=r"spec\.metric\.direction: is required beside a grade\.py"):
        load_task(task.root)


def test_data_that_was_not_prepared_names_the_command(task: TaskFolder) -> None:
    shutil.rmtree(task.root / "private")

    with pytest.raises(UserError, match=f"run: mlwright task prepare {re.escape(str(task.root))}"):
        load_task(task.root)
    assert not read_task(task.root).prepared


@pytest.mark.parametrize(
    "lost", ["public/sample_submission.csv", "private/answers.csv", "sealed/answers.csv"]
)
def test_a_missing_file_is_named(task: TaskFolder, lost: str) -> None:
    (task.root / lost).unlink()

    with pytest.raises(UserError, match=rf"{lost}: is missing .*run: mlwright task prepare"):
        load_task(task.root)


def test_a_task_without_final_loads(task: TaskFolder) -> None:
    shutil.rmtree(task.root / "sealed")

    assert load_task(task.root).mounts().sealed is None


def test_an_answer_that_the_sample_does_not_ask_for_is_refused(task: TaskFolder) -> None:
    lines = task.sample.read_text().splitlines()
    task.sample.write_text("\n".join(lines[:-1]) + "\n")

    with pytest.raises(
        UserError, match=r"do not match: '\d+' is not in the sample submission \(1 such ids\)"
    ):
        load_task(task.root)


def test_an_id_without_answer_is_refused(task: TaskFolder) -> None:
    task.sample.write_text(task.sample.read_text() + "9999,0.5\n")

    with pytest.raises(UserError, match=r"'9999' has no answer"):
        load_task(task.root)


def test_an_id_in_two_splits_is_refused(task: TaskFolder) -> None:
    private = (task.root / "private/answers.csv").read_text().splitlines()
    (task.root / "sealed/answers.csv").write_text(f"id,big,split\n{private[1].rsplit(',', 1)[0]},Final\n")

    with pytest.raises(UserError, match="occurs more than once in the answers"):
        load_task(task.root)


def test_the_systems_refusal_becomes_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"answers\.csv: no permission to read it"), readable(tmp_path):
        raise PermissionError(13, "Permission denied", str(tmp_path / "answers.csv"))


def test_an_unreadable_manifest_is_the_users_error(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    manifest.chmod(0)
    if os.access(manifest, os.R_OK):  # root reads everything
        manifest.unlink()
        manifest.mkdir()

    with pytest.raises(UserError, match=r"task\.yaml"):
        load_task(task.root)


def test_every_kind_of_target_loads(made_up: Callable[..., TaskFolder]) -> None:
    labels = made_up(target="kind", metric="accuracy", kind="Labels", constant="middle", name="labels")
    reference = {"baseline": 2.0, "best": 0.6}
    values = made_up(
        target="size", metric="rmse", kind="Values", constant=0, name="values", reference=reference
    )

    assert (labels.spec.submission.kind, values.spec.submission.kind) == ("Labels", "Values")
