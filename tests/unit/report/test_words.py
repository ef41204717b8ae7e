"""Numbers and comparisons as a person would write them."""

from __future__ import annotations

import math

import pytest
from mlwright_api.mltask import Direction
from mlwright_trainer.report import words
from mlwright_trainer.report.visible import visible
from mlwright_trainer.report.words import NBSP


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"), (math.nan, "–"), (0, "0"), (0.5, "0.500"), (-0.25, "−0.250"), (12.345, "12.3"),
        (1234.5, "1,234"), (0.00012345, "0.000123"), (2.5e-7, "2.50e−7"), (3.2e9, "3.20e9"),
    ],
)  # fmt: skip
def test_a_number_has_three_significant_digits(value: float | None, text: str) -> None:
    assert words.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.91234, "0.912"), (-0.5, "−0.500"), (1.0, "1.000"), (20209.4, "20,209"), (0.0559, "0.056")],
)
def test_a_score_has_three_decimals_near_one_and_four_digits_where_it_is_large(
    value: float, text: str
) -> None:
    assert words.score(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0 %"), (1.0, "100 %"), (0.9062, "90.6 %"), (0.9999, "100.0 %"), (None, "–")]
)
def test_a_share_is_written_in_percent(value: float | None, text: str) -> None:
    assert words.percent(value).replace(NBSP, " ") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0701, "0.070 s"),
        (9.94, "9.9 s"),
        (59.6, "1 min 0 s"),
        (250, "4 min 10 s"),
        (7500, "2 h 5 min"),
    ],
)
def test_a_duration_is_said_in_the_two_units_that_matter(seconds: float | None, text: str) -> None:
    assert words.duration(seconds).replace(NBSP, " ") == text


def test_a_difference_shows_its_sign() -> None:
    assert words.signed(0.083) == "+0.083"
    assert words.signed(-0.083) == "−0.083"
    assert words.signed(0.0) == "0"
    assert words.signed(None) == "–"


def test_one_is_singular() -> None:
    assert words.plural(1, "run") == "1 run"
    assert words.plural(2, "process", "processes") == "2 processes"
    assert words.plural(2048, "rollout") == "2,048 rollouts"


@pytest.mark.parametrize(
    ("before", "after", "difference", "direction", "said"),
    [
        (0.6, 0.9, (0.1, 0.4), Direction.MAXIMIZE, "x rose from 0.600 to 0.900"),
        (0.9, 0.6, (-0.4, -0.1), Direction.MAXIMIZE, "x fell from 0.900 to 0.600, which is worse"),
        (0.9, 0.6, (-0.4, -0.1), Direction.MINIMIZE, "x fell from 0.900 to 0.600, which is better"),
        (0.6, 0.9, (0.1, 0.4), Direction.MINIMIZE, "x rose from 0.600 to 0.900, which is worse"),
        (0.6, 0.9, (0.1, 0.4), None, "x rose from 0.600 to 0.900"),
        (0.6, 0.9, (-0.1, 0.4), Direction.MAXIMIZE, "x shows no clear change: 0.600 before, 0.900 after"),
        (0.6, 0.9, (0.0, 0.4), Direction.MAXIMIZE, "x shows no clear change: 0.600 before, 0.900 after"),
        (0.6, 0.9, None, Direction.MAXIMIZE, "x shows no clear change: 0.600 before, 0.900 after"),
        (None, 0.9, None, Direction.MAXIMIZE, ""),
    ],
)
def test_a_change_is_called_one_only_where_its_interval_leaves_no_doubt(
    before: float | None,
    after: float | None,
    difference: tuple[float, float] | None,
    direction: Direction | None,
    said: str,
) -> None:
    assert words.compared("x", (before, None), (after, None), difference, direction=direction) == said


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x07\x08\r\x00", "\\x07\\x08\\x0d\\x00"),
        ("a\u202eb", "a\\u202eb"),
        ("\ud800", "\\ud800"),
        ("\U000e0001", "\\U000e0001"),
        ("Größe, 数据", "Größe, 数据"),
        ("a\u2028b", "a\\u2028b"),
    ],
)
def test_what_would_not_be_seen_is_written_out(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible(visible(text)) == shown
