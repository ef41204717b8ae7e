"""Measured scores go into task.yaml; everything else in it stays as it stands."""

from __future__ import annotations

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.folder import TaskFolder, load_task
from mlwright_trainer.tasks.references import record_reference


def test_only_the_two_numbers_change(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    before = "# mine\n" + manifest.read_text()
    manifest.write_text(before)
    record_reference(manifest, baseline=0.25, best=0.875)

    assert manifest.read_text() == before.replace("baseline: 0.5", "baseline: 0.25").replace(
        "best: 0.9", "best: 0.875"
    )
    assert load_task(task.root).spec.reference.best == 0.875


def test_what_is_not_given_is_left(task: TaskFolder) -> None:
    record_reference(task.root / "task.yaml", best=0.95)

    assert load_task(task.root).spec.reference.model_dump(exclude_none=True) == {
        "baseline": 0.5,
        "best": 0.95,
    }


def test_a_missing_best_is_added(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    manifest.write_text(manifest.read_text().replace("    best: 0.9\n", ""))
    record_reference(manifest, best=0.95)

    assert load_task(task.root).spec.reference.best == 0.95


def test_a_manifest_without_a_place_for_it_is_left_alone(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    text = manifest.read_text().replace(
        "  reference:\n    baseline: 0.5\n    best: 0.9\n", "  reference: {baseline: 0.5, best: 0.9}\n"
    )
    manifest.write_text(text)

    with pytest.raises(UserError, match="in block style"):
        record_reference(manifest, best=0.95)
    assert manifest.read_text() == text


def test_scores_that_make_no_sense_are_taken_back(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    before = manifest.read_text()

    with pytest.raises(UserError, match="must not be worse than baseline"):
        record_reference(manifest, best=0.1)
    assert manifest.read_text() == before
