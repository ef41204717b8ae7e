"""Each check of a task's data passes on a sound task and fails on what it is for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlwright_trainer.tasks.checking import check_task, failed
from mlwright_trainer.tasks.checks import Check, Status, TaskData, check_data
from mlwright_trainer.tasks.checksums import digest_files, write_checksums
from mlwright_trainer.tasks.folder import DATA_FOLDERS, TaskFolder, load_task, read_task_answers
from mlwright_trainer.tasks.public_files import read_public


def _checks(task: TaskFolder) -> dict[str, Check]:
    data = TaskData(task=task, answers=read_task_answers(task), files=read_public(task.public))
    return {check.name: check for check in check_data(data)}


def _edit(path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    change(pd.read_csv(path, dtype=str)).to_csv(path, index=False)


def test_a_sound_task_passes_everything(task: TaskFolder) -> None:
    write_checksums(task.root, digest_files(task.root, DATA_FOLDERS))

    assert {name: check.status for name, check in _checks(task).items()} == dict.fromkeys(
        [
            "checksums",
            "splits-disjoint",
            "answers-hidden",
            "public-files",
            "duplicates",
            "stratified",
            "order",
        ],
        Status.PASS,
    )


def test_every_check_says_one_line(task: TaskFolder) -> None:
    assert all(check.line and "\n" not in check.line for check in _checks(task).values())


def test_missing_checksums_are_a_warning(task: TaskFolder) -> None:
    assert _checks(task)["checksums"].status is Status.WARN


def test_changed_data_fails(task: TaskFolder) -> None:
    write_checksums(task.root, digest_files(task.root, DATA_FOLDERS))
    (task.public / "train.csv").write_text("id,big\n1,0\n")
    check = _checks(task)["checksums"]

    assert (check.status, "public/train.csv has other contents" in check.line) == (Status.FAIL, True)


def test_the_sizes_of_splits_are_said(task: TaskFolder) -> None:
    assert _checks(task)["splits-disjoint"].line == "Train 160, Reward 80, Selection 80, Final 80"


def test_an_id_of_a_hidden_split_in_train_fails(task: TaskFolder) -> None:
    hidden = read_task_answers(task).ids[0]
    train = pd.read_csv(task.public / "train.csv")
    train.loc[0, "id"] = int(hidden)
    train.to_csv(task.public / "train.csv", index=False)
    check = _checks(task)["splits-disjoint"]

    assert check.status is Status.FAIL
    assert "1 ids are in Train and in a hidden split" in check.line


@pytest.mark.parametrize("gone", ["Reward", "Selection"])
def test_both_private_splits_are_needed(task: TaskFolder, gone: str) -> None:
    other = {"Reward": "Selection", "Selection": "Reward"}[gone]
    _edit(task.private / "answers.csv", lambda table: table.assign(split=other))

    assert _checks(task)["splits-disjoint"].status is Status.FAIL


def test_a_task_without_final_is_a_warning(task: TaskFolder) -> None:
    sealed = pd.read_csv(task.root / "sealed/answers.csv")
    for name in ("test.csv", "sample_submission.csv"):
        _edit(task.public / name, lambda table: table[~table["id"].isin(sealed["id"].astype(str))])
    (task.root / "sealed/answers.csv").unlink()
    (task.root / "sealed").rmdir()

    assert _checks(load_task(task.root))["splits-disjoint"].status is Status.WARN


def test_a_leak_fails_and_names_the_file(task: TaskFolder) -> None:
    read_task_answers(task).table.to_csv(task.public / "leaf.csv", index=False)
    check = _checks(task)["answers-hidden"]

    assert (check.status, check.line.startswith("leaf.csv: ")) == (Status.FAIL, True)


def test_an_unreadable_file_is_a_warning(task: TaskFolder) -> None:
    (task.public / "blob.bin").write_bytes(b"\xff\xfe\x00\x01" * 10)
    check = _checks(task)["public-files"]

    assert (check.status, "blob.bin" in check.line) == (Status.WARN, True)


def _add_duplicates(task: TaskFolder, count: int) -> None:
    test = pd.read_csv(task.public / "test.csv").head(count)
    answers = read_task_answers(task).table[["id", "big"]].astype(int)
    copied = test.merge(answers, on="id").assign(id=lambda table: table["id"] + 10_000)
    train = pd.read_csv(task.public / "train.csv")
    pd.concat([train, copied]).to_csv(task.public / "train.csv", index=False)


@pytest.mark.parametrize(("count", "status"), [(0, Status.PASS), (3, Status.WARN), (60, Status.FAIL)])
def test_duplicates_fail_where_they_are_many(task: TaskFolder, count: int, status: Status) -> None:
    if count:
        _add_duplicates(task, count)

    assert _checks(task)["duplicates"].status is status


def _sort_into_splits(task: TaskFolder) -> None:
    """The hidden rows again, but Reward gets the small answers."""
    answers = read_task_answers(task).table
    private = answers[answers["split"] != "Final"].sort_values("big", ignore_index=True)
    private["split"] = ["Reward"] * 80 + ["Selection"] * 80
    private.sort_values("id").to_csv(task.private / "answers.csv", index=False)


def test_uneven_splits_fail_unless_the_task_says_how_it_split(task: TaskFolder) -> None:
    _sort_into_splits(task)
    assert _checks(task)["stratified"].status is Status.FAIL

    manifest = task.root / "task.yaml"
    manifest.write_text(
        manifest.read_text().replace("  limits:", "  splits: {strategy: Group, column: shade}\n  limits:")
    )
    assert _checks(load_task(task.root))["stratified"].status is Status.WARN


def test_uneven_numbers_fail(made_up: Callable[..., TaskFolder]) -> None:
    task = made_up(
        target="size", metric="rmse", kind="Values", constant=0, reference={"baseline": 2.3, "best": 0.6}
    )
    assert _checks(task)["stratified"].status is Status.PASS

    answers = read_task_answers(task).table
    private = answers[answers["split"] != "Final"].assign(number=lambda table: table["size"].astype(float))
    private = private.sort_values("number", ignore_index=True).drop(columns="number")
    private["split"] = ["Reward"] * 80 + ["Selection"] * 80
    private.to_csv(task.private / "answers.csv", index=False)

    assert _checks(task)["stratified"].status is Status.FAIL


def _with_groups(task: TaskFolder, *, torn: bool) -> TaskFolder:
    """A column `patient` in train and test: one value a split, or the same values in all."""
    split_of = dict(zip(read_task_answers(task).ids, read_task_answers(task).splits, strict=True))
    for name in ("train.csv", "test.csv"):
        _edit(
            task.public / name,
            lambda table: table.assign(
                patient=["one" if torn else split_of.get(id_, "Train") for id_ in table["id"]]
            ),
        )
    manifest = task.root / "task.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace("  limits:", "  splits: {strategy: Group, column: patient}\n  limits:"))
    return load_task(task.root)


def test_whole_groups_pass_and_torn_ones_fail(made_up: Callable[..., TaskFolder]) -> None:
    whole = _checks(_with_groups(made_up(name="whole"), torn=False))["groups-whole"]
    torn = _checks(_with_groups(made_up(name="torn"), torn=True))["groups-whole"]

    assert (whole.status, whole.line) == (Status.PASS, "each of 4 values of patient is in one split")
    assert (torn.status, torn.line) == (
        Status.FAIL,
        "patient 'one' is in Final and Reward and Selection and Train (1 such)",
    )


def test_a_group_column_that_is_nowhere_fails(task: TaskFolder) -> None:
    manifest = task.root / "task.yaml"
    text = manifest.read_text()
    manifest.write_text(text.replace("  limits:", "  splits: {strategy: Time, column: day}\n  limits:"))

    assert _checks(load_task(task.root))["groups-whole"].status is Status.FAIL


def test_ids_that_go_with_the_answers_fail(task: TaskFolder) -> None:
    answers = read_task_answers(task).table.sort_values("big", ignore_index=True)
    renamed = dict(zip(answers["id"], map(str, range(5000, 5000 + len(answers))), strict=True))
    for path in (
        task.public / "test.csv",
        task.sample,
        task.private / "answers.csv",
        task.root / "sealed/answers.csv",
    ):
        _edit(path, lambda table: table.assign(id=table["id"].map(renamed)))
    check = _checks(task)["order"]

    assert check.status is Status.FAIL
    assert "goes with big" in check.line or "go with big" in check.line


def test_an_order_of_rows_that_goes_with_the_answers_fails(task: TaskFolder) -> None:
    answers = read_task_answers(task).table.set_index("id")["big"]
    _edit(task.sample, lambda table: table.iloc[np.argsort(answers[table["id"]].to_numpy(), kind="stable")])

    assert "the order of the sample submission" in _checks(task)["order"].line


def test_checking_logs_that_final_was_looked_at(task: TaskFolder) -> None:
    list(check_task(task, None))

    assert '"task check"' in (task.root / "sealed/reads.log").read_text()


def test_final_is_left_alone_where_its_read_cannot_be_logged(task: TaskFolder) -> None:
    (task.root / "sealed/reads.log").mkdir()
    checks = {check.name: check for check in check_task(task, None)}

    assert checks["final-logged"].status is Status.WARN
    assert "no Final answers" in checks["splits-disjoint"].line


def test_one_failed_check_fails_the_task() -> None:
    sound = [Check("a", Status.PASS, ""), Check("b", Status.WARN, "")]

    assert not failed(sound)
    assert failed([*sound, Check("c", Status.FAIL, "")])
