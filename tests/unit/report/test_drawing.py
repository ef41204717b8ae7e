"""SVG: scales, ticks, marks: well-formed, escaped, inside the drawing, and never empty of what it shows."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from mlwright_trainer.report.marks import (
    Columns,
    IntervalRow,
    Intervals,
    Layer,
    Lines,
    Mirror,
    Pair,
    PairedDots,
    Rule,
    Series,
    shares,
)
from mlwright_trainer.report.svg import Scale, element, tick_format, ticks, widened

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</text><script>alert(1)</script>\"'&<"
FINITE = st.floats(-1e9, 1e9, allow_nan=False)


def parsed(drawing: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(str(drawing))


def all_of(root: ElementTree.Element, tag: str, style: str = "") -> list[ElementTree.Element]:
    return [each for each in root.iter(f"{SVG}{tag}") if style in each.get("class", "").split() or not style]


def numbers(root: ElementTree.Element) -> Iterator[float]:
    for each in root.iter():
        for name in ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2"):
            if name in each.attrib:
                yield float(each.attrib[name])


@given(FINITE, st.floats(1e-6, 1e9))
def test_ticks_are_round_few_and_inside(low: float, width: float) -> None:
    high = low + width
    if high - low < 1e-9 * max(1.0, abs(low)):
        return
    found = ticks(low, high, count=5)
    slack = 1e-6 * (high - low) + 1e-9 * abs(low)
    assert all(low - slack <= tick <= high + slack for tick in found)
    assert 1 <= len(found) <= 6


def test_ticks_have_the_decimals_that_tell_them_apart() -> None:
    assert [tick_format([0.0, 0.25, 0.5])(value) for value in (0.0, 0.25)] == ["0.00", "0.25"]
    assert tick_format([0.0, 1000.0])(1000.0) == "1,000"
    assert tick_format([0.7, 0.75, 0.8])(0.75) == "0.75"
    assert tick_format([-1.0, 0.0])(-1.0) == "−1"
    assert tick_format([2e-7, 4e-7])(2e-7) == "2.0e−7"


@given(st.lists(FINITE, max_size=5))
def test_a_domain_is_never_empty(values: list[float]) -> None:
    low, high = widened(values)
    assert low < high
    assert all(low <= value <= high for value in values)


def test_a_scale_maps_ends_to_ends() -> None:
    scale = Scale((0.0, 10.0), (100.0, 0.0))
    assert (scale(0.0), scale(5.0), scale(10.0)) == (100.0, 50.0, 0.0)


def test_elements_escape_text_and_attributes() -> None:
    drawn = element("text", HOSTILE, class_=HOSTILE)
    root = ElementTree.fromstring(str(drawn))
    assert root.text == HOSTILE
    assert root.get("class") == HOSTILE
    assert "<script" not in str(drawn)


def lines(values: list[float | None], **changes: object) -> ElementTree.Element:
    points = [(float(x), y) for x, y in enumerate(values)]
    settings: dict[str, object] = {
        "key": "k",
        "title": "T",
        "description": "D",
        "y_label": "y",
        "series": [Series("s", points)],
    }
    return parsed(Lines(**{**settings, **changes}).draw())  # type: ignore[arg-type]  # fields by name


def test_a_line_has_a_point_for_every_value_and_none_for_a_gap() -> None:
    root = lines([1.0, None, 2.0, 3.0, math.nan])
    assert len(all_of(root, "circle")) == 3
    assert len(all_of(root, "path", "line")) == 1


def test_a_single_value_is_a_dot() -> None:
    root = lines([0.5])
    assert len(all_of(root, "circle")) == 1
    assert len(all_of(root, "path")) == 0


def test_many_updates_are_a_line_without_dots() -> None:
    root = lines([float(value % 7) for value in range(500)])
    assert all_of(root, "circle") == []
    assert len(all_of(root, "path", "line")) == 1


def test_a_level_far_away_does_not_flatten_the_curve() -> None:
    values: list[float | None] = [0.80, 0.85, 0.90]
    near, far = (lines(values, rules=[Rule(level, "level")]) for level in (0.92, 0.1))
    assert len(all_of(near, "line", "rule")) == 1
    assert len(all_of(far, "line", "rule")) == 0
    heights = [float(dot.attrib["cy"]) for dot in all_of(far, "circle")]
    assert max(heights) - min(heights) > 100


def test_a_band_needs_two_intervals_and_stays_inside_the_plot() -> None:
    points = [(0.0, 1.0), (1.0, 1.1), (2.0, 1.2)]
    wide = Series("s", points, band=[(0.0, (-1e6, 1e6)), (1.0, None), (2.0, (1.0, 1.4))])
    root = parsed(Lines("k", "T", "D", "y", [wide]).draw())
    (band,) = all_of(root, "path", "band")
    coordinates = [
        float(part) for part in band.attrib["d"].replace("M", "").replace("L", "").replace("Z", "").split()
    ]
    assert all(20 <= y <= 190 for y in coordinates[1::2])


def test_every_drawing_names_itself_for_those_who_do_not_see_it() -> None:
    root = lines([1.0, 2.0])
    assert root.get("role") == "img"
    ids = root.attrib["aria-labelledby"].split()
    assert [root.find(f"{SVG}title").get("id"), root.find(f"{SVG}desc").get("id")] == ids  # type: ignore[union-attr]  # both are there
    assert root.find(f"{SVG}desc").text == "D"  # type: ignore[union-attr]  # it is there


def test_stacked_columns_add_up_and_leave_out_zeros() -> None:
    layers = [Layer("a", "s1", [0.25, 0.0]), Layer("b", "s2", [0.75, 1.0])]
    root = parsed(Columns("k", "T", "D", "y", "x", layers, centres=["0", "1"], ceiling=1.0).draw())
    bars = all_of(root, "rect", "bar")
    assert len(bars) == 3
    assert sum(float(bar.attrib["height"]) for bar in bars) == pytest.approx(2 * (212 - 34 - 24), abs=0.1)


def test_columns_with_many_labels_show_some_of_them() -> None:
    names = [str(index) for index in range(48)]
    root = parsed(Columns("k", "T", "D", "y", "x", [Layer("a", "s1", [1.0] * 48)], centres=names).draw())
    shown = [each.text for each in all_of(root, "text", "middle") if each.text in names]
    assert 4 <= len(shown) <= 9


def test_a_mirror_grows_up_and_down_from_one_line() -> None:
    root = parsed(
        Mirror(
            "k",
            "T",
            "D",
            "x",
            [0.0, 0.5, 1.0],
            Layer("after", "s1", [3.0, 0.0]),
            Layer("before", "s0", [1.0, 1.0]),
        ).draw()
    )
    up, down = all_of(root, "rect", "s1"), all_of(root, "rect", "s0")
    assert (len(up), len(down)) == (1, 2)
    zero = float(up[0].attrib["y"]) + float(up[0].attrib["height"])
    assert all(float(bar.attrib["y"]) == pytest.approx(zero, abs=0.02) for bar in down)


def test_intervals_keep_their_whiskers_inside() -> None:
    rows = [IntervalRow("a", 0.5, (-5.0, 9.0), "0.5"), IntervalRow("b", 0.6, None, "0.6")]
    root = parsed(Intervals("k", "T", "D", "x", rows, domain=(0.0, 1.0)).draw())
    assert all(0 <= value <= 360 for value in numbers(root))
    assert [each.text for each in all_of(root, "text", "row-value")] == ["0.5", "0.6"]


def test_a_missing_group_leaves_one_dot() -> None:
    root = parsed(PairedDots("k", "T", "D", "x", [Pair("a", [0.2, None]), Pair("b", [0.1, 0.9])]).draw())
    assert len(all_of(root, "circle")) == 3
    assert len(all_of(root, "line", "join")) == 1


def test_hostile_labels_stay_text_in_every_mark() -> None:
    drawn = [
        Lines(
            "k", HOSTILE, HOSTILE, HOSTILE, [Series(HOSTILE, [(0.0, 1.0)])], rules=[Rule(1.0, HOSTILE)]
        ).draw(),
        Columns(
            "k", HOSTILE, HOSTILE, HOSTILE, HOSTILE, [Layer(HOSTILE, "s1", [1.0])], centres=[HOSTILE]
        ).draw(),
        Intervals(
            "k", HOSTILE, HOSTILE, HOSTILE, [IntervalRow(HOSTILE, 1.0, None, HOSTILE)], [Rule(1.0, HOSTILE)]
        ).draw(),
        PairedDots("k", HOSTILE, HOSTILE, HOSTILE, [Pair(HOSTILE, [0.5, 0.6])]).draw(),
    ]
    for each in drawn:
        assert "<script" not in each
        assert any(text.text == HOSTILE for text in parsed(each).iter(f"{SVG}text"))


def test_shares_of_an_empty_column_are_zero() -> None:
    assert shares([{"a": 1, "b": 3}, {}], ["a", "b"]) == {"a": [0.25, 0.0], "b": [0.75, 0.0]}
