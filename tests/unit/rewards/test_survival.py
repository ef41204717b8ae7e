"""Kaplan-Meier against numbers worked out by hand."""

from __future__ import annotations

import pytest
from mlwright_trainer.exchange import Launch
from mlwright_trainer.rewards.survival import survival_after


def watched(*times: float | str) -> list[Launch]:
    """Times as textbooks write them: "9+" was cancelled at 9."""
    return [
        Launch(0.0, float(time.rstrip("+")) if isinstance(time, str) else time, not isinstance(time, str))
        for time in times
    ]


# Freireich et al. (1963), weeks of remission under 6-mercaptopurine: the example of every textbook.
REMISSION = watched(
    6, 6, 6, "6+", 7, "9+", 10, "10+", "11+", 13, 16, "17+", "19+", "20+", 22, 23, *("25+", "32+"), "32+", "34+", "35+"
)  # fmt: skip


@pytest.mark.parametrize(
    ("weeks", "share"),
    [(5.9, 1.0), (6, 0.857), (7, 0.807), (10, 0.753), (13, 0.690), (16, 0.627), (22, 0.538), (40, 0.448)],
)
def test_the_textbook_example_comes_out(weeks: float, share: float) -> None:
    assert survival_after(REMISSION, weeks) == pytest.approx(share, abs=5e-4)


def test_with_nothing_cancelled_it_is_the_share_that_took_longer() -> None:
    assert survival_after(watched(1, 2, 3, 4), 2) == pytest.approx(0.5)
    assert survival_after(watched(1, 2, 3, 4), 4) == 0


def test_an_end_counts_before_a_cancellation_at_the_same_time() -> None:
    assert survival_after(watched(3, "3+"), 3) == pytest.approx(0.5)


def test_what_still_ran_at_the_longest_time_watched_counts_as_taking_longer() -> None:
    assert survival_after(watched(1, 1, 1, "2+"), 100) == pytest.approx(0.25)


def test_only_cancelled_launches_say_nothing_against_taking_longer() -> None:
    assert survival_after(watched("1+", "2+"), 5) == 1.0


def test_the_order_of_launches_does_not_matter() -> None:
    assert survival_after(REMISSION[::-1], 23) == survival_after(REMISSION, 23)


def test_no_launches_take_no_time() -> None:
    assert survival_after([], 1) == 0.0
