"""Duration weights on batches small enough to check by hand."""

from __future__ import annotations

import pytest
from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import DurationWeighting, WeightingMode
from mlwright_trainer.errors import UserError
from mlwright_trainer.exchange import Batch, Launch, TrainingRow, Window
from mlwright_trainer.rewards.weighting import (
    Inclusion,
    capped_to_mean_one,
    duration_weights,
    effective_sample_size,
    missing_mass,
    require_small_missing_mass,
)

AWARE = DurationWeighting(mode=WeightingMode.DURATION_AWARE, max_weight=100)
INVERSE = DurationWeighting(mode=WeightingMode.INVERSE_INCLUSION, max_weight=100)
NONE = DurationWeighting()


def a_row(seconds: float | None, task: str = "a") -> TrainingRow:
    return TrainingRow(
        id=f"{task}-{seconds}",
        task=task,
        prompt_kind="draft",
        prompt_tokens=(1,),
        response_tokens=(2,),
        logprobs=(-0.1,),
        policy_version=0,
        outcome=Outcome.UNPARSED if seconds is None else Outcome.SCORED,
        reward=0.0,
        execution_seconds=seconds,
    )


def a_batch(*rows: TrainingRow, window: Window | None = None) -> Batch:
    return Batch(0, rows, window)


def launches(*triples: tuple[float, float, bool]) -> tuple[Launch, ...]:
    return tuple(Launch(offset, seconds, finished) for offset, seconds, finished in triples)


def test_without_a_mode_every_row_weighs_one() -> None:
    weights = duration_weights(a_batch(a_row(1), a_row(100), a_row(None)), NONE)
    assert weights.values == (1.0, 1.0, 1.0)
    assert weights.effective_sample_size == pytest.approx(3)
    assert weights.clipped == 0
    assert weights.missing_mass is None


def test_duration_aware_is_seconds_over_their_mean() -> None:
    weights = duration_weights(a_batch(a_row(1), a_row(3)), AWARE)
    assert weights.values == pytest.approx((0.5, 1.5))
    assert weights.effective_sample_size == pytest.approx(4 / 2.5)


def test_duration_aware_takes_each_tasks_own_mean() -> None:
    rows = (a_row(1, "fast"), a_row(3, "fast"), a_row(100, "slow"), a_row(300, "slow"))
    assert duration_weights(a_batch(*rows), AWARE).values == pytest.approx((0.5, 1.5, 0.5, 1.5))


def test_rows_without_a_sandbox_weigh_one_and_stay_out_of_the_mean() -> None:
    assert duration_weights(a_batch(a_row(1), a_row(None), a_row(3)), AWARE).values == pytest.approx(
        (0.5, 1.0, 1.5)
    )


def test_scripts_that_all_took_no_time_weigh_the_same() -> None:
    assert duration_weights(a_batch(a_row(0.0), a_row(0.0)), AWARE).values == (1.0, 1.0)


def test_inverse_inclusion_counts_the_launches_after_which_the_script_still_fitted() -> None:
    # Room after the launches in a window of 10 s: 10, 8, 5 and 1 s; the last one was cancelled and counts too.
    window = Window(10, launches((0, 2, True), (2, 6, True), (5, 1, True), (9, 1, False)))
    inclusion = Inclusion(window)
    assert [inclusion.probability(seconds) for seconds in (0.5, 1, 2, 6, 9, 11)] == [
        1,
        1,
        3 / 4,
        2 / 4,
        1 / 4,
        1 / 4,
    ]
    weights = duration_weights(a_batch(a_row(2), a_row(6), a_row(1), window=window), INVERSE).values
    assert weights == pytest.approx(tuple(3 * w / (4 / 3 + 2 + 1) for w in (4 / 3, 2, 1)))


def test_inverse_inclusion_without_a_window_is_refused_and_names_the_batch() -> None:
    with pytest.raises(UserError, match=r"InverseInclusion needs collection\.mode Window.*batch 0"):
        duration_weights(a_batch(a_row(1)), INVERSE)


def test_the_cap_holds_after_normalizing_and_the_mean_stays_one() -> None:
    spec = DurationWeighting(mode=WeightingMode.DURATION_AWARE, max_weight=2)
    weights = duration_weights(a_batch(*(a_row(1) for _ in range(9)), a_row(91)), spec)
    assert weights.values == pytest.approx((8 / 9,) * 9 + (2,))
    assert weights.clipped == 1


def test_capping_one_weight_may_lift_the_next_to_the_cap() -> None:
    values, held = capped_to_mean_one((100, 10, 1, 1), 1.5)
    assert values == pytest.approx((1.5, 1.5, 0.5, 0.5))
    assert held == 2


def test_a_cap_of_one_means_no_weighting() -> None:
    assert capped_to_mean_one((5, 1, 3), 1)[0] == (1.0, 1.0, 1.0)


def test_the_mean_wins_over_the_cap_where_too_few_rows_have_any_weight() -> None:
    assert capped_to_mean_one((7, 0, 0, 0), 2) == ((4.0, 0.0, 0.0, 0.0), 1)


def test_an_empty_batch_has_no_weights_and_no_sample() -> None:
    weights = duration_weights(a_batch(), AWARE)
    assert weights.values == ()
    assert weights.effective_sample_size == 0


def test_the_effective_sample_size_of_one_heavy_row_is_one() -> None:
    assert effective_sample_size((5.0, 0.0, 0.0)) == 1
    assert effective_sample_size((2.0, 2.0, 2.0)) == pytest.approx(3)


def test_the_missing_mass_is_reported_in_every_mode_that_has_a_window() -> None:
    window = Window(4, launches((0, 1, True), (0, 4, False)))
    for spec in (NONE, AWARE, INVERSE):
        assert duration_weights(a_batch(a_row(1), window=window), spec).missing_mass == 0.5


def test_a_window_that_misses_a_tenth_is_refused_with_what_to_do() -> None:
    window = Window(4, launches(*((0, 1, True),) * 9, (0, 4, False)))
    assert missing_mass(window) == pytest.approx(0.1)
    with pytest.raises(UserError, match=r"about 10% .*collection\.windowSeconds \(4\).*window longer"):
        require_small_missing_mass(window)
    assert require_small_missing_mass(window, largest=0.2) == pytest.approx(0.1)


def test_earlier_windows_of_the_same_policy_sharpen_the_estimate() -> None:
    unlucky = Window(4, launches((0, 1, True), (3.5, 0.5, False)))
    calm = Window(4, launches(*((0, 1, True),) * 28, (0, 3, True)))
    assert missing_mass(unlucky) == 0.0
    cut = Window(4, launches(*((0, 1, True),) * 10, (2, 2, False)))
    assert missing_mass(cut) == pytest.approx(1 / 11)
    assert missing_mass(cut, calm) < 0.05
    assert require_small_missing_mass(cut, calm) < 0.05


def test_no_launches_miss_nothing() -> None:
    assert missing_mass(Window(4, ())) == 0.0
