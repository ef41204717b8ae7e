"""Answers in public files are found by content: under any name, in any format, renamed, scaled or shuffled."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlwright_trainer.tasks.answers import read_ids
from mlwright_trainer.tasks.folder import TaskFolder, read_task_answers
from mlwright_trainer.tasks.leaks import Leak, determines, find_leaks
from mlwright_trainer.tasks.public_files import read_public


def _leaks(task: TaskFolder) -> list[Leak]:
    return find_leaks(
        read_public(task.public), read_task_answers(task), sample_ids=read_ids(task.sample, "id")
    )


def _answers(task: TaskFolder) -> pd.DataFrame:
    """All hidden answers by ascending id."""
    answers = read_task_answers(task)
    table = answers.table.assign(id=answers.table["id"].astype(int))
    return table.sort_values("id", ignore_index=True)


Plant = Callable[[Path, pd.DataFrame], None]


def _whole(public: Path, answers: pd.DataFrame) -> None:
    answers.to_csv(public / "readme.txt", index=False)


def _reward_only(public: Path, answers: pd.DataFrame) -> None:
    answers[answers["split"] == "Reward"].to_csv(public / "extra.csv", index=False)


def _final_only(public: Path, answers: pd.DataFrame) -> None:
    answers[answers["split"] == "Final"][["id", "big"]].to_csv(public / "extra.csv", index=False)


def _shuffled_rows(public: Path, answers: pd.DataFrame) -> None:
    answers.sample(frac=1, random_state=3).to_csv(public / "log.tsv", index=False, sep="\t")


def _renamed(public: Path, answers: pd.DataFrame) -> None:
    names = answers["big"].map({"0": "stay", "1": "go"})
    pd.DataFrame({"number": answers["id"], "state": names}).to_csv(public / "x.csv", index=False)


def _floats(public: Path, answers: pd.DataFrame) -> None:
    values = answers["big"].astype(float) * 2.5 - 7
    pd.DataFrame({"number": answers["id"], "state": values}).to_csv(public / "x.csv", index=False)


def _few_wrong(public: Path, answers: pd.DataFrame) -> None:
    values = answers["big"].astype(int).to_numpy().copy()
    values[5] = 1 - values[5]
    pd.DataFrame({"id": answers["id"], "score": values}).to_csv(public / "x.csv", index=False)


def _without_ids(public: Path, answers: pd.DataFrame) -> None:
    (public / "column.txt").write_text("\n".join(answers["big"]) + "\n")


def _reversed(public: Path, answers: pd.DataFrame) -> None:
    (public / "column.txt").write_text("\n".join(answers["big"][::-1]) + "\n")


def _one_split_in_a_longer_column(public: Path, answers: pd.DataFrame) -> None:
    values = list(answers[answers["split"] == "Selection"]["big"])
    (public / "column.csv").write_text(
        "\n".join(["a,b", *(f"{value},0" for value in ["1", "1", *values, "0"])])
    )


def _array(public: Path, answers: pd.DataFrame) -> None:
    np.save(public / "features.npy", answers[["big"]].astype(float).to_numpy())


def _archive(public: Path, answers: pd.DataFrame) -> None:
    np.savez(public / "weights.npz", bias=np.zeros(3), layer=answers["big"].astype(np.int8).to_numpy())


def _json_map(public: Path, answers: pd.DataFrame) -> None:
    mapping = dict(zip(answers["id"].astype(str), answers["big"].astype(int), strict=True))
    (public / "meta.json").write_text(json.dumps(mapping))


def _json_list(public: Path, answers: pd.DataFrame) -> None:
    (public / "meta.json").write_text(json.dumps({"a": {"b": [int(value) for value in answers["big"]]}}))


def _prose(public: Path, answers: pd.DataFrame) -> None:
    (public / "notes.md").write_text("The answers are: " + ", ".join(answers["big"]) + ".\n")


def _compressed(public: Path, answers: pd.DataFrame) -> None:
    answers.to_csv(public / "cache.gz", index=False, compression="gzip")


def _in_a_folder(public: Path, answers: pd.DataFrame) -> None:
    (public / "a" / "b").mkdir(parents=True)
    answers.to_csv(public / "a" / "b" / ".hidden", index=False)


def _link(public: Path, answers: pd.DataFrame) -> None:
    (public / "more").symlink_to(public.parent / "private" / "answers.csv")


def _in_the_test_rows(public: Path, answers: pd.DataFrame) -> None:
    test = pd.read_csv(public / "test.csv")
    merged = test.merge(answers.assign(flag=answers["big"])[["id", "flag"]], on="id")
    merged.to_csv(public / "test.csv", index=False)


def _in_the_sample(public: Path, answers: pd.DataFrame) -> None:
    answers[["id", "big"]].to_csv(public / "sample_submission.csv", index=False)


PLANTS = [
    _whole,
    _reward_only,
    _final_only,
    _shuffled_rows,
    _renamed,
    _floats,
    _few_wrong,
    _without_ids,
    _reversed,
    _one_split_in_a_longer_column,
    _array,
    _archive,
    _json_map,
    _json_list,
    _prose,
    _compressed,
    _in_a_folder,
    _link,
    _in_the_test_rows,
    _in_the_sample,
]


def test_a_sound_task_has_no_leak(task: TaskFolder) -> None:
    assert _leaks(task) == []


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__.strip("_"))
def test_planted_answers_are_found(task: TaskFolder, plant: Plant) -> None:
    before = {path.name for path in task.public.iterdir()}
    plant(task.public, _answers(task))
    changed = {leak.file.split("/")[0].split("[")[0] for leak in _leaks(task)}

    assert changed
    assert changed <= ({path.name for path in task.public.iterdir()} - before) | {
        "test.csv",
        "sample_submission.csv",
    }


def test_a_leak_says_file_column_and_split(task: TaskFolder) -> None:
    _reward_only(task.public, _answers(task))

    assert "extra.csv: column 'big' gives big of Reward away (joined by 'id')" in map(str, _leaks(task))


@pytest.fixture
def numeric(made_up: Callable[..., TaskFolder]) -> TaskFolder:
    reference = {"baseline": 2.3, "best": 0.6}
    return made_up(target="size", metric="rmse", kind="Values", constant=0.1, reference=reference)


@pytest.mark.parametrize(
    "splits", [["Reward"], ["Final"], ["Reward", "Selection"], ["Reward", "Selection", "Final"]]
)
def test_numbers_in_another_order_are_found(numeric: TaskFolder, splits: list[str]) -> None:
    answers = _answers(numeric)
    values = answers[answers["split"].isin(splits)]["size"].sample(frac=1, random_state=1)
    (numeric.public / "pool.csv").write_text("value\n" + "\n".join(values))

    assert "in another order" in " ".join(map(str, _leaks(numeric)))


def test_classes_in_another_order_say_only_how_frequent_they_are(task: TaskFolder) -> None:
    values = _answers(task)["big"].sort_values()
    (task.public / "pool.csv").write_text("value\n" + "\n".join(values))

    assert _leaks(task) == []


@pytest.mark.parametrize(
    "function",
    [lambda x: 3 * x - 2, np.exp, lambda x: -(x**3), lambda x: x.round(2)],
    ids=["linear", "exponential", "falling", "rounded"],
)
def test_a_function_of_a_number_is_found(
    numeric: TaskFolder, function: Callable[[pd.Series], pd.Series]
) -> None:
    answers = _answers(numeric)
    values = function(answers["size"].astype(float))
    pd.DataFrame({"id": answers["id"], "u": values}).to_csv(numeric.public / "u.csv", index=False)

    assert any(leak.file == "u.csv" for leak in _leaks(numeric))


def test_a_good_feature_is_no_leak(numeric: TaskFolder) -> None:
    answers = _answers(numeric)
    noise = np.random.default_rng(0).normal(scale=0.3, size=len(answers))
    values = answers["size"].astype(float) + noise
    pd.DataFrame({"id": answers["id"], "u": values}).to_csv(numeric.public / "u.csv", index=False)

    assert _leaks(numeric) == []


def test_classes_as_columns_leak_as_one_name(made_up: Callable[..., TaskFolder], tmp_path: Path) -> None:
    task = made_up(target="kind", metric="accuracy", kind="Labels", constant="middle")
    answers = _answers(task)
    pd.DataFrame({"id": answers["id"], "code": pd.factorize(answers["kind"])[0]}).to_csv(
        task.public / "codes.csv", index=False
    )

    assert {leak.file for leak in _leaks(task)} == {"codes.csv"}


@pytest.mark.parametrize(
    ("column", "values", "given_away"),
    [
        (["0", "1"] * 50, ["0", "1"] * 50, True),
        (["b", "a"] * 50, ["0", "1"] * 50, True),
        (["a"] * 100, ["0", "1"] * 50, False),
        (["0", "1"] * 50, ["0"] * 100, False),
        ([str(row) for row in range(100)], ["0", "1"] * 50, False),
        (["0"] * 99 + ["1"], ["0"] * 98 + ["1", "0"], False),
        (["0", "1", "0", "0"] * 25, ["0", "1"] * 50, False),
        (["0.0", "1.0"] * 49 + ["0.0", "0.0"], ["0.0", "1.0"] * 50, True),
    ],
)
def test_what_gives_values_away(column: list[str], values: list[str], given_away: bool) -> None:
    assert determines(pd.Series(column), pd.Series(values)) is given_away
