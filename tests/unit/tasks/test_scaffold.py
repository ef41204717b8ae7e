"""`mlwright task new` makes a folder that loads, from the user's table or from a made-up one, or nothing."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from mlwright_api.mltask import Split, SubmissionKind
from mlwright_api.results import GraderResult
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.folder import TaskFolder, load_task, read_task_answers
from mlwright_trainer.tasks.preparation import prepare_task
from mlwright_trainer.tasks.scaffold import NewTask, new_task

Grade = Callable[..., GraderResult]
ROWS = 200


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A user's table: an id, features with gaps, and several columns that could be predicted."""
    path = tmp_path / "mine.csv"
    pd.DataFrame(
        {
            "id": range(ROWS),
            "age": [str(20 + row % 50) if row % 7 else "" for row in range(ROWS)],
            "city": ["Ulm", "Bern, Switzerland", 'the "big" one', "Łódź"] * (ROWS // 4),
            "left": ["no", "yes", "no", "no"] * (ROWS // 4),
            "grade": ["1", "2", "3", "2"] * (ROWS // 4),
            "price": [f"{row * 1.5:.2f}" for row in range(ROWS)],
            "weight": [str(row % 9) for row in range(ROWS)],
            "note": [f"n{row}" for row in range(ROWS)],
        }
    ).to_csv(path, index=False)
    return path


def _new(table: Path | None, grade: Grade, *targets: str, **settings: object) -> TaskFolder:
    folder = (table.parent if table else Path()) / "task"
    return new_task(NewTask(folder=folder, source=table, targets=targets, **settings), grade=grade)  # type: ignore[arg-type]  # **settings


def test_a_binary_task_codes_the_positive_class_as_one(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "left", metric="roc_auc")
    train = pd.read_csv(task.public / "train.csv")

    assert task.spec.submission.kind is SubmissionKind.PROBABILITIES
    assert list(train.columns) == ["id", "age", "city", "grade", "price", "weight", "note", "left"]
    assert train["left"].mean() == pytest.approx(0.25, abs=0.01)
    assert read_task_answers(task).counts() == {"Reward": 36, "Selection": 32, "Final": 32}
    assert task.spec.reference.baseline == 0.5


def test_many_classes_get_a_column_each(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "grade", metric="log_loss")

    assert task.spec.submission.target_columns == ["1", "2", "3"]
    assert set(pd.read_csv(task.public / "train.csv")["grade"]) == {1, 2, 3}
    assert read_task_answers(task).values.sum(axis=1).eq(1).all()
    assert task.spec.reference.baseline == pytest.approx(1.04, abs=0.01)


def test_labels_stay_as_they_are_and_the_commonest_is_the_baseline(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "city", metric="accuracy")

    assert set(pd.read_csv(task.public / "train.csv")["city"]) == {
        "Ulm",
        "Bern, Switzerland",
        'the "big" one',
        "Łódź",
    }
    assert task.spec.reference.baseline == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize(
    ("metric", "constant"), [("rmse", 149.25), ("mae", 149.25), ("rmsle", 110.4), ("r2", 149.25)]
)
def test_numbers_get_the_constant_that_is_best_for_the_metric(
    table: Path, grade: Grade, metric: str, constant: float
) -> None:
    task = _new(table, grade, "price", metric=metric)

    assert pd.read_csv(task.sample)["price"].iloc[0] == pytest.approx(constant, rel=0.05)


def test_several_targets_are_scored_together(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "price", "weight", metric="mcrmse")

    assert task.spec.submission.target_columns == ["price", "weight"]


def test_an_id_column_of_the_source_does_not_become_a_feature(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "left", metric="roc_auc")
    source = pd.read_csv(table)
    train = pd.read_csv(task.public / "train.csv")
    merged = train.merge(source[["id", "note"]], on="note", suffixes=("", "_source"))

    assert not (merged["id"] == merged["id_source"] + 1).all()
    assert abs(merged["id"].corr(merged["id_source"])) < 0.3


def test_rows_of_a_group_stay_together(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "left", metric="roc_auc", group="weight")
    weights = [set(pd.read_csv(task.public / f"{name}.csv")["weight"]) for name in ("train", "test")]

    assert task.spec.splits.column == "weight"
    assert weights[0] | weights[1] == set(range(9))
    assert not weights[0] & weights[1]


def test_gaps_in_the_target_are_left_out(table: Path, grade: Grade) -> None:
    text = table.read_text().replace(",no,1,", ",,1,", 10)
    table.write_text(text)
    task = _new(table, grade, "left", metric="roc_auc")

    assert len(pd.read_csv(task.root / "source.csv")) == ROWS - 10


@pytest.mark.parametrize(
    ("metric", "kind"),
    [
        ("roc_auc", None),
        ("log_loss", SubmissionKind.PROBABILITIES),
        ("f1", SubmissionKind.LABELS),
        ("rmse", SubmissionKind.VALUES),
    ],
)
def test_without_a_table_one_is_made_up(
    tmp_path: Path,
    grade: Grade,
    metric: str,
    kind: SubmissionKind | None,
) -> None:
    task = new_task(NewTask(folder=tmp_path / "My Task!", metric=metric, kind=kind), grade=grade)

    assert task.name == "my-task"
    assert len(pd.read_csv(task.public / "train.csv")) == 1000
    assert f"judged by {metric}" in task.spec.description


def test_the_data_can_be_prepared_again(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "left", metric="roc_auc")

    assert prepare_task(task.root).changed is False


def test_a_changed_source_is_not_prepared_silently(table: Path, grade: Grade) -> None:
    task = _new(table, grade, "left", metric="roc_auc")
    source = task.root / "source.csv"
    source.write_text(source.read_text() + "x,x,x,no,1,1,1,x\n")

    with pytest.raises(UserError, match=r"source\.csv has changed"):
        prepare_task(task.root)


@pytest.mark.parametrize(
    ("metric", "targets"),
    [
        ("roc_auc", ["left"]),
        ("log_loss", ["grade"]),
        ("accuracy", ["city"]),
        ("rmsle", ["price"]),
        ("mcrmse", ["price", "weight"]),
    ],
)
def test_the_written_solution_solves_it(
    table: Path, grade: Grade, metric: str, targets: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = _new(table, grade, *targets, metric=metric)
    assert task.solution is not None
    work = table.parent / "work"
    work.mkdir()
    (work / "data").symlink_to(task.public)
    monkeypatch.chdir(work)
    runpy.run_path(str(task.solution))
    graded = grade(task, (work / "submission.csv").read_bytes(), (Split.REWARD,))

    assert graded.verdict == "Valid", graded.reason


@pytest.mark.parametrize(
    ("settings", "targets", "said"),
    [
        ({"metric": "roc_auk"}, ["left"], "did you mean roc_auc?"),
        ({"metric": "rmse", "kind": SubmissionKind.LABELS}, ["price"], "rmse takes Values"),
        ({"metric": "roc_auc"}, [], "--target is required: which of id, age, city"),
        ({"metric": "roc_auc"}, ["lefd"], "--target lefd:"),
        ({"metric": "roc_auc"}, ["grade"], "3 classes, and roc_auc is for two"),
        ({"metric": "rmse"}, ["city"], "not all of its values are numbers"),
        ({"metric": "accuracy"}, ["city", "left"], "scores one target, not 2"),
        ({"metric": "log_loss"}, ["id"], "at most"),
        ({"metric": "roc_auc", "group": "town"}, ["left"], "--group town: no feature"),
        ({"metric": "roc_auc", "group": "left"}, ["left"], "--group left: no feature"),
    ],
)
def test_what_cannot_be_made_is_refused_and_nothing_is_written(
    table: Path, grade: Grade, settings: dict[str, object], targets: list[str], said: str
) -> None:
    if said == "at most":
        table.write_text("id,x\n" + "\n".join(f"{row},1" for row in range(20)))
        said, targets = "at least 40 are needed", ["x"]
    with pytest.raises(UserError) as caught:
        _new(table, grade, *targets, **settings)

    assert said in str(caught.value)
    assert [path.name for path in table.parent.iterdir()] == ["mine.csv"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"group": "city"}, "--group needs --from"), ({"targets": ("id",)}, "--target id: is the id column")],
)
def test_a_made_up_table_has_what_it_has(
    tmp_path: Path, grade: Grade, settings: dict[str, object], said: str
) -> None:
    with pytest.raises(UserError, match=said):
        new_task(NewTask(folder=tmp_path / "t", metric="roc_auc", **settings), grade=grade)  # type: ignore[arg-type]  # **settings
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_manifest_may_have_is_refused(table: Path, grade: Grade) -> None:
    table.write_text(table.read_text().replace("left", "l" * 200, 1))

    with pytest.raises(UserError, match=r"does not fit an MLTask: target_columns.*128"):
        _new(table, grade, "l" * 200, metric="roc_auc")
    assert [path.name for path in table.parent.iterdir()] == ["mine.csv"]


def test_a_missing_table_is_named(tmp_path: Path, grade: Grade) -> None:
    with pytest.raises(UserError, match=r"--from .*nothing\.csv: no such file"):
        _new(tmp_path / "nothing.csv", grade, "left", metric="roc_auc")


def test_an_existing_folder_is_never_written_into(table: Path, grade: Grade) -> None:
    folder = table.parent / "task"
    folder.mkdir()
    (folder / "mine").write_text("keep")

    with pytest.raises(UserError, match="already exists; choose another name, nothing was written"):
        _new(table, grade, "left", metric="roc_auc")
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_an_empty_folder_may_be_used(table: Path, grade: Grade) -> None:
    (table.parent / "task").mkdir()
    _new(table, grade, "left", metric="roc_auc")

    assert load_task(table.parent / "task").prepared


def test_a_failure_while_grading_leaves_nothing(table: Path) -> None:
    def fail(*_: object) -> GraderResult:
        raise UserError("no grader today")

    with pytest.raises(UserError, match="no grader today"):
        _new(table, fail, "left", metric="roc_auc")
    assert [path.name for path in table.parent.iterdir()] == ["mine.csv"]
