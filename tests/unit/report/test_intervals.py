"""Intervals against published numbers, against simulation, and at their edges."""

from __future__ import annotations

import numpy as np
import pytest
from mlwright_trainer.report.intervals import (
    bootstrap_difference,
    bootstrap_mean,
    newcombe,
    t_interval,
    wilson,
)
from scipy import stats


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_the_published_intervals(successes: int, n: int, low: float, high: float) -> None:
    assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize("n", [1, 7, 256])
def test_wilson_stays_within_zero_and_one(n: int) -> None:
    for successes in range(n + 1):
        interval = wilson(successes, n)
        assert interval is not None
        assert 0 <= interval[0] <= successes / n <= interval[1] <= 1
    assert wilson(0, n)[0] == 0  # type: ignore[index]  # n is not 0
    assert wilson(n, n)[1] == 1  # type: ignore[index]  # n is not 0


@pytest.mark.parametrize(
    ("before", "after", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:873, table II, method 10; signs turned: ours is after - before.
        ((48, 80), (56, 70), 0.0524, 0.3339),
        ((3, 10), (9, 10), 0.1705, 0.8090),
        ((0, 20), (10, 10), 0.6791, 1.0000),
    ],
)
def test_newcombe_gives_the_published_intervals(
    before: tuple[int, int], after: tuple[int, int], low: float, high: float
) -> None:
    assert newcombe(before, after) == pytest.approx((low, high), abs=5e-5)


def test_intervals_of_nothing_are_none() -> None:
    assert wilson(0, 0) is None
    assert newcombe((0, 0), (1, 2)) is None
    assert newcombe((1, 2), (0, 0)) is None
    assert bootstrap_mean([]) is bootstrap_mean([1.0]) is t_interval([1.0]) is None
    assert bootstrap_difference([1.0], [1.0, 2.0]) is None
    assert bootstrap_difference([1.0, 2.0], []) is None


def test_students_interval_is_scipys() -> None:
    values = [0.71, 0.74, 0.69, 0.80, 0.77]
    expected = stats.t.interval(0.95, 4, loc=np.mean(values), scale=stats.sem(values))
    assert t_interval(values) == pytest.approx(expected, rel=1e-12)


def test_the_bootstrap_is_the_same_at_every_call() -> None:
    values = list(np.random.default_rng(1).normal(size=40))
    assert bootstrap_mean(values) == bootstrap_mean(values)
    assert bootstrap_difference(values, values) == bootstrap_difference(values, values)


def test_the_bootstrap_agrees_with_the_normal_interval_where_that_holds() -> None:
    values = list(np.random.default_rng(2).normal(3.0, 2.0, size=400))
    half = 1.96 * np.std(values, ddof=1) / np.sqrt(400)
    expected = (np.mean(values) - half, np.mean(values) + half)
    assert bootstrap_mean(values) == pytest.approx(expected, abs=0.02)


def test_the_bootstrap_covers_the_true_mean_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(3)
    hits = 0
    for _ in range(200):
        interval = bootstrap_mean(list(generator.exponential(1.0, size=60)))
        assert interval is not None
        hits += interval[0] <= 1.0 <= interval[1]
    assert 176 <= hits <= 198


def test_the_bootstrap_of_a_difference_resamples_the_two_groups_apart() -> None:
    generator = np.random.default_rng(4)
    before, after = list(generator.normal(0, 1, 300)), list(generator.normal(1, 1, 300))
    interval = bootstrap_difference(before, after)
    assert interval is not None
    half = 1.96 * np.sqrt(np.var(before) / 300 + np.var(after) / 300)
    centre = np.mean(after) - np.mean(before)
    assert interval == pytest.approx((centre - half, centre + half), abs=0.02)
    # Equal groups share no draws: their difference is not exactly zero.
    same = bootstrap_difference(before, before)
    assert same is not None
    assert same[0] < -0.1 < 0.1 < same[1]


def test_large_samples_are_resampled_in_blocks_of_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlwright_trainer.report.intervals._BLOCK", 1_000)
    values = list(np.random.default_rng(5).normal(size=300))
    interval = bootstrap_mean(values)
    assert interval is not None
    assert interval[0] < np.mean(values) < interval[1]
