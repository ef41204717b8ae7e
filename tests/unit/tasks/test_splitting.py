"""Splits and ids: stratified, reproducible, and silent about the source's order."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlwright_trainer.tasks.splitting import (
    SplitSizes,
    TaskTables,
    assign_grouped_splits,
    assign_splits,
    hashed_order,
    quantile_bins,
    shuffled_ids,
    write_tables,
)

SIZES = SplitSizes(train=50, reward=20, selection=16, final=14)


def test_the_order_is_a_permutation_that_depends_on_seed_and_purpose() -> None:
    order = hashed_order(100, seed=1, purpose="ids")

    assert sorted(order) == list(range(100))
    assert list(order) != list(range(100))
    assert list(order) == list(hashed_order(100, seed=1, purpose="ids"))
    assert list(order) != list(hashed_order(100, seed=2, purpose="ids"))
    assert list(order) != list(hashed_order(100, seed=1, purpose="splits"))


def test_the_order_is_the_same_on_every_machine() -> None:
    assert list(hashed_order(8, seed=0, purpose="pinned")) == PINNED


PINNED = [6, 4, 7, 0, 2, 3, 5, 1]


def test_ids_are_one_to_n_and_do_not_go_with_the_rows() -> None:
    ids = shuffled_ids(2000, seed=3)

    assert sorted(ids) == list(range(1, 2001))
    assert abs(np.corrcoef(ids, np.arange(2000))[0, 1]) < 0.08


def test_splits_have_the_asked_sizes() -> None:
    assert Counter(assign_splits(100, SIZES, seed=0)) == {
        "Train": 50,
        "Reward": 20,
        "Selection": 16,
        "Final": 14,
    }


def test_every_class_is_in_every_split_in_proportion() -> None:
    classes = ["rare"] * 50 + ["common"] * 950
    splits = assign_splits(1000, SIZES, seed=0, stratify=classes)
    rare = Counter(splits[:50])

    assert {name: abs(rare[name] - size / 2) <= 1 for name, size in SIZES.named} == {
        name: True for name, _ in SIZES.named
    }


def test_rows_of_a_class_are_drawn_and_not_taken_in_order() -> None:
    splits = assign_splits(1000, SIZES, seed=0, stratify=["same"] * 1000)

    assert 200 < sum(splits[:500] == "Train") < 300


def test_another_seed_gives_other_splits() -> None:
    first, second = (assign_splits(200, SIZES, seed=seed) for seed in (1, 2))

    assert list(first) != list(second)


def test_a_group_stays_in_one_split() -> None:
    groups = [f"patient {row // 5}" for row in range(500)]
    splits = assign_grouped_splits(groups, SIZES, seed=0)
    found = pd.DataFrame({"group": groups, "split": splits}).groupby("group")["split"].nunique()

    assert found.max() == 1
    assert Counter(splits)["Train"] == pytest.approx(250, abs=5)
    assert set(splits) == {"Train", "Reward", "Selection", "Final"}


def test_groups_are_stratified_where_asked() -> None:
    groups = list(range(400))
    levels = [row // 100 for row in groups]
    splits = assign_grouped_splits(groups, SIZES, seed=0, stratify=levels)
    shares = pd.crosstab(pd.Series(levels), pd.Series(splits))

    assert shares["Train"].between(49, 51).all()


def test_quantile_bins_are_equally_full_and_in_order() -> None:
    bins = quantile_bins([5.0, 1.0, 4.0, 2.0, 3.0, 6.0], bins=3)

    assert bins == [2, 0, 1, 0, 1, 2]


def test_a_split_without_rows_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        SplitSizes(10, 0, 1, 1)


def _tables() -> TaskTables:
    target = pd.DataFrame({"y": [0, 1, 0, 1, 0, 1]})
    return TaskTables(pd.DataFrame({"x": list("abcdef")}), target, target, {"y": 0.5})


def _write(out: Path) -> None:
    splits = np.array(["Train", "Train", "Reward", "Selection", "Final", "Final"], dtype=object)
    write_tables(out, _tables(), ids=np.array([6, 5, 4, 3, 2, 1]), splits=splits)


def test_the_files_have_what_belongs_to_them(tmp_path: Path) -> None:
    _write(tmp_path)

    assert (tmp_path / "public/train.csv").read_text() == "id,x,y\n5,b,1\n6,a,0\n"
    assert (tmp_path / "public/test.csv").read_text() == "id,x\n1,f\n2,e\n3,d\n4,c\n"
    assert (tmp_path / "public/sample_submission.csv").read_text() == "id,y\n1,0.5\n2,0.5\n3,0.5\n4,0.5\n"
    assert (tmp_path / "private/answers.csv").read_text() == "id,y,split\n3,1,Selection\n4,0,Reward\n"
    assert (tmp_path / "sealed/answers.csv").read_text() == "id,y,split\n1,1,Final\n2,0,Final\n"


def test_repeated_ids_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one distinct id"):
        write_tables(tmp_path, _tables(), ids=np.array([1, 1, 2, 3, 4, 5]), splits=np.array(["Train"] * 6))


def test_floats_read_back_the_same(tmp_path: Path) -> None:
    values = [0.1 + 0.2, 1e-17, 123456789.123456789, 1 / 3, 2.0, 5e300]
    table = TaskTables(
        pd.DataFrame({"x": values}), pd.DataFrame({"y": values}), pd.DataFrame({"y": values}), {"y": 0}
    )
    write_tables(tmp_path, table, ids=np.arange(6), splits=np.array(["Train"] * 5 + ["Reward"]))
    read = pd.read_csv(tmp_path / "public/train.csv", dtype=str)

    assert [float(text) for text in read["x"]] == values[:5]
