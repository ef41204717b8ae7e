"""The four forms that the report's charts have: lines, stacked columns, intervals in rows, paired dots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from mlwright_trainer.report.model import Range
from mlwright_trainer.report.svg import (
    WIDTH,
    Format,
    Plot,
    Scale,
    drawing,
    element,
    group,
    line,
    path,
    rectangle,
    share_format,
    text,
    tick_format,
    widened,
)

_DOTS = 60
"""Points above which a line is drawn without a dot for each."""


@dataclass(frozen=True)
class Series:
    """One line over updates; a missing value is a gap."""

    label: str
    points: Sequence[tuple[float, float | None]]
    band: Sequence[tuple[float, Range | None]] = ()
    style: str = "s1"
    dots: bool = True


@dataclass(frozen=True)
class Rule:
    """A level to compare with, named at its right end."""

    value: float
    label: str


@dataclass(frozen=True)
class Lines:
    """A line chart over updates."""

    key: str
    title: str
    description: str
    y_label: str
    series: Sequence[Series]
    rules: Sequence[Rule] = ()
    floor: float | None = None
    ceiling: float | None = None
    x_label: str = "update"
    format: Format | None = None

    def draw(self) -> Markup:
        xs = [x for each in self.series for x, _ in each.points]
        plot = Plot.of(_x_domain(xs), self._y_domain())
        ticks = sorted({float(round(tick)) for tick in plot.x.ticks(6) if min(xs) <= round(tick) <= max(xs)})
        return drawing(
            self.key,
            self.title,
            self.description,
            plot.y_axis(self.y_label, self.format),
            plot.x_axis(self.x_label, ticks, lambda value: f"{value:.0f}"),
            *(_band(each, plot) for each in self.series),
            *(_rule(each, plot) for each in self.rules if plot.y.domain[0] <= each.value <= plot.y.domain[1]),
            *(_curve(each, plot, self.format) for each in self.series),
        )

    def _y_domain(self) -> tuple[float, float]:
        values = [y for each in self.series for _, y in each.points if y is not None]
        ends = [end for each in self.series for _, band in each.band if band is not None for end in band]
        # Interval ends may lie far out where a batch is small; they are cut rather than flatten the curve.
        spread = (max(values) - min(values)) or abs(max(values)) or 1.0
        near = [end for end in ends if min(values) - spread <= end <= max(values) + spread]
        rules = [rule.value for rule in self.rules if self._is_near(rule.value, values, 0.8 * spread)]
        return widened([*values, *near, *rules], floor=self.floor, ceiling=self.ceiling)

    @staticmethod
    def _is_near(value: float, values: Sequence[float], room: float) -> bool:
        """Whether a level is worth stretching the axis for; a far one would flatten the curve."""
        return min(values) - room <= value <= max(values) + room


def _x_domain(xs: Sequence[float]) -> tuple[float, float]:
    low, high = min(xs), max(xs)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _runs(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Points in stretches without gaps."""
    stretches: list[list[tuple[float, float]]] = [[]]
    for x, y in points:
        if y is None or not math.isfinite(y):
            stretches.append([])
        else:
            stretches[-1].append((x, y))
    return [stretch for stretch in stretches if stretch]


def _band(series: Series, plot: Plot) -> Markup:
    low, high = plot.y.domain
    known = [(x, band) for x, band in series.band if band is not None]
    if len(known) < 2:
        return Markup("")
    upper = [(plot.x(x), plot.y(min(high, max(low, band[1])))) for x, band in known]
    lower = [(plot.x(x), plot.y(min(high, max(low, band[0])))) for x, band in reversed(known)]
    return path([*upper, *lower], closed=True, class_=f"band {series.style}")


def _rule(rule: Rule, plot: Plot) -> Markup:
    y = plot.y(rule.value)
    return group(
        line((plot.left, y), (plot.right, y), class_="rule"),
        text(rule.label, plot.right, y - 4, class_="rule-label end"),
    )


def _curve(series: Series, plot: Plot, format: Format | None) -> Markup:
    stretches = [[(plot.x(x), plot.y(y)) for x, y in stretch] for stretch in _runs(series.points)]
    lines = [path(stretch, class_=f"line {series.style}") for stretch in stretches if len(stretch) > 1]
    dotted = (series.dots and len(series.points) <= _DOTS) or all(len(stretch) == 1 for stretch in stretches)
    show = format or (lambda value: f"{value:.4g}")
    dots = [
        element(
            "circle",
            element("title", f"{series.label}, update {x:.0f}: {show(y)}"),
            cx=plot.x(x),
            cy=plot.y(y),
            r=2.6,
            class_=f"dot {series.style}",
        )
        for x, y in series.points
        if dotted and y is not None and math.isfinite(y)
    ]
    return group(*lines, *dots)


@dataclass(frozen=True)
class Layer:
    """One kind of thing in a stack, bottom first, with one value a column."""

    label: str
    style: str
    values: Sequence[float]


@dataclass(frozen=True)
class Columns:
    """Stacked columns; `edges` are the labels at the columns' borders, or `centres` below them."""

    key: str
    title: str
    description: str
    y_label: str
    x_label: str
    layers: Sequence[Layer]
    edges: Sequence[str] = ()
    centres: Sequence[str] = ()
    format: Format | None = None
    ceiling: float | None = None
    tops: Sequence[str] = ()
    """Text above each column."""

    @property
    def count(self) -> int:
        return max(len(layer.values) for layer in self.layers)

    def draw(self) -> Markup:
        totals = [sum(layer.values[index] for layer in self.layers) for index in range(self.count)]
        top = self.ceiling or 1.12 * max(totals, default=1.0) or 1.0
        plot = Plot.of((0.0, float(self.count)), (0.0, top))
        columns = [self._column(index, plot) for index in range(self.count)]
        labels = [
            text(label, plot.x(index + 0.5), plot.y(totals[index]) - 4, class_="tick middle")
            for index, label in enumerate(self.tops)
        ]
        return drawing(
            self.key,
            self.title,
            self.description,
            plot.y_axis(self.y_label, self.format),
            self._x_axis(plot),
            *columns,
            *labels,
        )

    def _x_axis(self, plot: Plot) -> Markup:
        names, shift = (self.edges, 0.0) if self.edges else (self.centres, 0.5)
        every = max(1, math.ceil(len(names) / 9))
        places = {index + shift: name for index, name in enumerate(names) if index % every == 0}
        return plot.x_axis(self.x_label, list(places), lambda value: places[value])

    def _column(self, index: int, plot: Plot) -> Markup:
        gap = 0.08 if self.count <= 40 else 0.0
        x, width = plot.x(index + gap), plot.x(index + 1 - gap) - plot.x(index + gap)
        parts, below = [], 0.0
        name = self.centres[index] if self.centres else f"{self.edges[index]} to {self.edges[index + 1]}"
        for layer in self.layers:
            value = layer.values[index]
            if value > 0:
                y = plot.y(below + value)
                title = element(
                    "title", f"{name}: {layer.label} {(self.format or (lambda v: f'{v:g}'))(value)}"
                )
                parts.append(rectangle(x, y, width, plot.y(below) - y, title, class_=f"bar {layer.style}"))
            below += value
        return group(*parts)


@dataclass(frozen=True)
class Mirror:
    """Two histograms over the same bins: one grows upwards, the other downwards."""

    key: str
    title: str
    description: str
    x_label: str
    edges: Sequence[float]
    up: Layer
    down: Layer

    def draw(self) -> Markup:
        most = max(1.0, *self.up.values, *self.down.values)
        plot = Plot.of((self.edges[0], self.edges[-1]), (-1.08 * most, 1.08 * most))
        return drawing(
            self.key,
            self.title,
            self.description,
            plot.y_axis("samples", lambda value: f"{abs(value):g}"),
            plot.x_axis(self.x_label),
            *self._bars(self.up, plot, 1),
            *self._bars(self.down, plot, -1),
            line((plot.left, plot.y(0.0)), (plot.right, plot.y(0.0)), class_="axis"),
            text(self.up.label, plot.left + 6, plot.top + 12, class_="row-label"),
            text(self.down.label, plot.left + 6, plot.bottom - 8, class_="row-label"),
        )

    def _bars(self, layer: Layer, plot: Plot, sign: int) -> list[Markup]:
        bars = []
        for index, value in enumerate(layer.values):
            if value:
                ends = sorted((plot.y(0.0), plot.y(sign * value)))
                left, right = plot.x(self.edges[index]), plot.x(self.edges[index + 1])
                name = f"{layer.label}: {value:g} from {self.edges[index]:.4g} to {self.edges[index + 1]:.4g}"
                title = element("title", name)
                bars.append(
                    rectangle(
                        left, ends[0], right - left, ends[1] - ends[0], title, class_=f"bar {layer.style}"
                    )
                )
        return bars


@dataclass(frozen=True)
class IntervalRow:
    """A value with its interval, on a line of its own."""

    label: str
    value: float
    interval: Range | None
    shown: str
    style: str = "s1"


@dataclass(frozen=True)
class Intervals:
    """Values with intervals one below the other, on one axis, beside levels to compare with."""

    key: str
    title: str
    description: str
    x_label: str
    rows: Sequence[IntervalRow]
    rules: Sequence[Rule] = ()
    domain: tuple[float, float] | None = None
    format: Format | None = None

    def draw(self) -> Markup:
        height = 40.0 * len(self.rows) + 34.0 + (28.0 if self.rules else 8.0)
        ends = [end for row in self.rows for end in (row.interval or (row.value, row.value))]
        domain = self.domain or widened([*ends, *(rule.value for rule in self.rules)])
        top = 24.0 if self.rules else 4.0
        plot = Plot(
            Scale(domain, (12.0, WIDTH - 18.0)), Scale((0.0, 1.0), (height - 34.0, top)), height=height
        )
        return drawing(
            self.key,
            self.title,
            self.description,
            self._grid(plot),
            *self._levels(plot),
            *(self._row(row, index, plot, top) for index, row in enumerate(self.rows)),
            height=height,
        )

    def _grid(self, plot: Plot) -> Markup:
        values = plot.x.ticks(5)
        lines = [line((plot.x(v), plot.top), (plot.x(v), plot.bottom), class_="grid") for v in values]
        return group(*lines, plot.x_axis(self.x_label, values, self.format or tick_format(values)))

    def _levels(self, plot: Plot) -> list[Markup]:
        """Each level a dashed upright; its name on the side where there is room."""
        middle = (plot.left + plot.right) / 2
        return [
            group(
                line((plot.x(rule.value), 16.0), (plot.x(rule.value), plot.bottom), class_="rule"),
                text(
                    rule.label,
                    plot.x(rule.value) + (4 if plot.x(rule.value) < middle else -4),
                    12.0,
                    class_=f"rule-label {'start' if plot.x(rule.value) < middle else 'end'}",
                ),
            )
            for rule in self.rules
        ]

    @staticmethod
    def _row(row: IntervalRow, index: int, plot: Plot, top: float) -> Markup:
        y = top + 40.0 * index + 26.0
        low, high = row.interval or (row.value, row.value)
        low, high = (min(plot.x.domain[1], max(plot.x.domain[0], end)) for end in (low, high))
        return group(
            text(row.label, plot.left, y - 10, class_="row-label"),
            text(row.shown, plot.right, y - 10, class_="row-value end"),
            line((plot.x(low), y), (plot.x(high), y), class_=f"whisker {row.style}"),
            element("circle", cx=plot.x(row.value), cy=y, r=5.0, class_=f"dot {row.style}"),
        )


@dataclass(frozen=True)
class Pair:
    """A label with one value in each of one or two groups; None where a group has none."""

    label: str
    values: Sequence[float | None]


@dataclass(frozen=True)
class PairedDots:
    """Shares of up to two groups, a row a label, joined by a line."""

    key: str
    title: str
    description: str
    x_label: str
    pairs: Sequence[Pair]
    styles: Sequence[str] = field(default=("s0", "s1"))

    def draw(self) -> Markup:
        row, left = 24.0, 128.0
        height = row * len(self.pairs) + 44.0
        plot = Plot(
            Scale((0.0, 1.0), (left, WIDTH - 20.0)), Scale((0.0, 1.0), (height - 34.0, 6.0)), height=height
        )
        values = [0.0, 0.25, 0.5, 0.75, 1.0]
        grid = [line((plot.x(v), plot.top), (plot.x(v), plot.bottom), class_="grid") for v in values]
        return drawing(
            self.key,
            self.title,
            self.description,
            *grid,
            plot.x_axis(self.x_label, values, share_format),
            *(self._pair(pair, 6.0 + row * (index + 0.5), plot) for index, pair in enumerate(self.pairs)),
            height=height,
        )

    def _pair(self, pair: Pair, y: float, plot: Plot) -> Markup:
        known = [
            (value, style)
            for value, style in zip(pair.values, self.styles, strict=False)
            if value is not None
        ]
        places = [plot.x(value) for value, _ in known]
        joined = [line((min(places), y), (max(places), y), class_="join")] if len(places) > 1 else []
        dots = [
            element(
                "circle",
                element("title", f"{pair.label}: {100 * value:.1f} %"),
                cx=plot.x(value),
                cy=y,
                r=4.5,
                class_=f"dot {style}",
            )
            for value, style in known
        ]
        return group(text(pair.label, plot.left - 10, y + 4, class_="row-label end"), *joined, *dots)


def shares(counts: Sequence[Mapping[str, int]], names: Sequence[str]) -> dict[str, list[float]]:
    """For each name its share of each column's total; an empty column has none."""
    totals = [sum(column.values()) for column in counts]
    return {
        name: [
            column.get(name, 0) / total if total else 0.0
            for column, total in zip(counts, totals, strict=True)
        ]
        for name in names
    }
