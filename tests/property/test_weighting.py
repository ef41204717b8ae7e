"""Weights of every batch, and whether they repair what a clock-closed window does."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import DurationWeighting, WeightingMode
from mlwright_trainer.exchange import Batch, Launch, TrainingRow, Window
from mlwright_trainer.rewards.survival import survival_after
from mlwright_trainer.rewards.weighting import Inclusion, capped_to_mean_one, duration_weights

SECONDS = st.floats(0.001, 1000)
MODES = st.sampled_from(list(WeightingMode))
WINDOWS = st.builds(
    Window,
    seconds=st.floats(1, 100),
    launches=st.lists(
        st.builds(Launch, offset=st.floats(0, 100), seconds=st.floats(0, 100), finished=st.booleans()),
        min_size=1,
        max_size=40,
    ).map(tuple),
)


def a_row(seconds: float | None, task: str = "a") -> TrainingRow:
    return TrainingRow("r", task, "draft", (1,), (2,), (0.0,), 0, Outcome.SCORED, 0.0, seconds)


ROWS = st.lists(
    st.builds(a_row, st.none() | SECONDS, st.sampled_from(["a", "b"])), min_size=1, max_size=40
).map(tuple)


@given(ROWS, WINDOWS, MODES, st.floats(1, 50))
def test_weights_have_mean_one_and_stay_under_the_cap(
    rows: tuple[TrainingRow, ...], window: Window, mode: WeightingMode, cap: float
) -> None:
    spec = DurationWeighting(mode=mode, max_weight=cap)
    weights = duration_weights(Batch(0, rows, window), spec)
    assert math.fsum(weights.values) == pytest.approx(len(rows))
    assert max(weights.values) <= cap * (1 + 1e-9)
    assert min(weights.values) > 0
    assert weights.effective_sample_size * (1 + 1e-9) >= 1
    assert weights.effective_sample_size <= len(rows) * (1 + 1e-9)


@given(ROWS, WINDOWS, MODES, st.floats(1, 50), st.randoms(use_true_random=False))
def test_a_rows_weight_does_not_depend_on_where_it_stands(
    rows: tuple[TrainingRow, ...], window: Window, mode: WeightingMode, cap: float, shuffler: random.Random
) -> None:
    spec = DurationWeighting(mode=mode, max_weight=cap)
    order = list(range(len(rows)))
    shuffler.shuffle(order)
    straight = duration_weights(Batch(0, rows, window), spec).values
    shuffled = duration_weights(Batch(0, tuple(rows[at] for at in order), window), spec).values
    assert shuffled == tuple(straight[at] for at in order)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.floats(1, 100))
def test_capping_never_turns_an_order_around(raw: list[float], cap: float) -> None:
    assume(sum(raw) > 1e-6)
    values, _ = capped_to_mean_one(raw, cap)
    ranked = [value for _, value in sorted(zip(raw, values, strict=True))]
    assert ranked == sorted(ranked)


@given(WINDOWS, SECONDS, SECONDS)
def test_a_longer_script_never_fits_more_often(window: Window, one: float, other: float) -> None:
    inclusion = Inclusion(window)
    short, long = sorted((one, other))
    assert 0 < inclusion.probability(long) <= inclusion.probability(short) <= 1


@given(WINDOWS, st.floats(0, 200), st.floats(0, 200))
def test_survival_is_a_share_and_falls_with_time(window: Window, one: float, other: float) -> None:
    early, late = sorted((one, other))
    assert 0 <= survival_after(window.launches, late) <= survival_after(window.launches, early) <= 1


def collected(generator: random.Random, *, slots: int, window: float) -> Batch:
    """One clock-closed window of the two-class world of docs/explanation/time.md; a slow row is task "slow"."""
    launches: list[Launch] = []
    rows: list[TrainingRow] = []
    for _ in range(slots):
        now = 0.0
        while now < window:
            slow = generator.random() < 0.11
            seconds = generator.uniform(1.5, 2.5) if slow else generator.uniform(0.05, 0.35)
            finished = now + seconds <= window
            launches.append(Launch(now, seconds if finished else window - now, finished))
            if finished:
                rows.append(a_row(seconds, "slow" if slow else "fast"))
            now += seconds
    return Batch(0, tuple(rows), Window(window, tuple(launches)))


def shares(mode: WeightingMode, *, window: float, repetitions: int = 400) -> tuple[float, float]:
    """Weighted slow rows over all rows of many windows together, and that ratio's standard error."""
    generator = random.Random(7)
    spec = DurationWeighting(mode=mode, max_weight=1000)
    found = []
    for _ in range(repetitions):
        batch = collected(generator, slots=8, window=window)
        # One task for the mean of DurationAware: the class is remembered beside the row.
        one_task = Batch(0, tuple(a_row(row.execution_seconds) for row in batch.rows), batch.window)
        weights = duration_weights(one_task, spec).values
        slow = math.fsum(w for w, row in zip(weights, batch.rows, strict=True) if row.task == "slow")
        found.append((slow, math.fsum(weights)))
    share = math.fsum(slow for slow, _ in found) / math.fsum(rows for _, rows in found)
    rows_each = math.fsum(rows for _, rows in found) / repetitions
    variance = math.fsum((slow - share * rows) ** 2 for slow, rows in found) / (repetitions - 1)
    return share, math.sqrt(variance / repetitions) / rows_each


def test_inverse_inclusion_finds_the_true_share_of_slow_scripts_that_the_window_hides() -> None:
    unweighted, noise = shares(WeightingMode.NONE, window=4)
    assert unweighted < 0.11 - 10 * noise
    weighted, noise = shares(WeightingMode.INVERSE_INCLUSION, window=4)
    # 0.0011 is what is left because p(d) is estimated from the same window (benchmarks/duration_bias.py).
    assert abs(weighted - 0.11) < 3 * noise + 0.0011


def test_duration_aware_weights_overshoot_the_true_share() -> None:
    weighted, noise = shares(WeightingMode.DURATION_AWARE, window=4)
    assert weighted > 0.11 + 10 * noise
