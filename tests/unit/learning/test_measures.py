"""Duration buckets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.exchange import TrainingRow
from mlwright_trainer.learning.measures import duration_buckets, mean

pytestmark = pytest.mark.torch
ROW = TrainingRow("r", "t", "draft", (1,), (2,), (-1.0,), 0, Outcome.SCORED, 0.0, None)


def rows(*seconds: float | None) -> list[TrainingRow]:
    return [replace(ROW, execution_seconds=s) for s in seconds]


def test_executed_rows_fall_into_terciles_and_the_others_into_none():
    buckets = duration_buckets(rows(9.0, None, 1.0, 5.0, 2.0, None, 6.0, 8.0))
    assert buckets == {"short": [2, 4], "middle": [3, 6], "long": [7, 0]}


def test_fewer_than_three_executed_rows_have_no_buckets():
    assert duration_buckets(rows(1.0, 2.0, None)) == {}


def test_no_bucket_is_ever_empty():
    for count in range(3, 12):
        buckets = duration_buckets(rows(*map(float, range(count))))
        assert all(buckets.values())
        assert sum(map(len, buckets.values())) == count


def test_the_mean_of_nothing_is_not_zero():
    assert mean([]) is None
    assert mean([1.0, 3.0]) == 2.0
