"""A small SVG writer: elements, scales with round ticks, and a plot area with axes.

Charts are 360 units wide, so that text of 11 units is legible on a phone as well as on a desk; colours are CSS
classes, so that dark mode and print are the style sheet's business. Text stays text; everything is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup, escape

from mlwright_trainer.report.visible import visible

Format = Callable[[float], str]
WIDTH = 360.0
HEIGHT = 212.0


def element(tag: str, *children: Markup | str, **attributes: object) -> Markup:
    """An element; `class_` is `class`, `a_b` is `a-b`; None leaves an attribute out; text is escaped."""
    written = Markup("").join(
        Markup(' {}="{}"').format(Markup(name.rstrip("_").replace("_", "-")), _plain(value))
        for name, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(
        child if isinstance(child, Markup) else escape(visible(child)) for child in children
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(tag), written, inner)


def _plain(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def group(*children: Markup | str, **attributes: object) -> Markup:
    return element("g", *children, **attributes)


def text(content: str, x: float, y: float, **attributes: object) -> Markup:
    return element("text", content, x=x, y=y, **attributes)


def line(start: tuple[float, float], end: tuple[float, float], **attributes: object) -> Markup:
    return element("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], **attributes)


def rectangle(
    x: float, y: float, width: float, height: float, *children: Markup, **attributes: object
) -> Markup:
    size = {"width": max(0.0, width), "height": max(0.0, height)}
    return element("rect", *children, x=x, y=y, **size, **attributes)


def path(points: Sequence[tuple[float, float]], *, closed: bool = False, **attributes: object) -> Markup:
    """Straight lines through points."""
    steps = " ".join(f"{'M' if not index else 'L'}{x:.2f} {y:.2f}" for index, (x, y) in enumerate(points))
    return element("path", d=steps + (" Z" if closed else ""), **attributes)


@dataclass(frozen=True)
class Scale:
    """A straight line from values to units of the drawing."""

    domain: tuple[float, float]
    range: tuple[float, float]

    def __call__(self, value: float) -> float:
        (low, high), (start, end) = self.domain, self.range
        return start + (value - low) / (high - low) * (end - start)

    def ticks(self, count: int = 4) -> list[float]:
        return ticks(*self.domain, count=count)


def ticks(low: float, high: float, *, count: int = 4) -> list[float]:
    """Round values within a domain, about `count` of them."""
    step = _step((high - low) / max(1, count))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def _step(rough: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `rough`."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))


def widened(
    values: Sequence[float], *, floor: float | None = None, ceiling: float | None = None
) -> tuple[float, float]:
    """A domain around values with a little room, within floor and ceiling; never empty."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = 0.06 * (high - low) or 0.1 * abs(high) or 0.5
    low, high = low - room, high + room
    low = low if floor is None else max(low, floor)
    high = high if ceiling is None else min(high, ceiling)
    return (low, high) if high > low else (low - room, high + room)


def tick_format(values: Sequence[float]) -> Format:
    """As many decimals as the distance between ticks needs."""
    step = min((abs(b - a) for a, b in pairwise(values)), default=1.0)
    if step < 1e-4 or max(map(abs, values), default=0.0) >= 1e6:
        return lambda value: f"{value:.1e}".replace("e-0", "e-").replace("-", "\N{MINUS SIGN}")
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += round(step * 10**decimals, 6) % 1 > 1e-6
    return lambda value: f"{value:,.{decimals}f}".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Plot:
    """The plot area of one chart with its two scales."""

    x: Scale
    y: Scale
    width: float = WIDTH
    height: float = HEIGHT

    @classmethod
    def of(
        cls,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        height: float = HEIGHT,
        left: float = 46.0,
        bottom: float = 34.0,
    ) -> Plot:
        right, top = WIDTH - 10.0, 24.0
        return cls(Scale(x, (left, right)), Scale(y, (height - bottom, top)), height=height)

    @property
    def left(self) -> float:
        return self.x.range[0]

    @property
    def right(self) -> float:
        return self.x.range[1]

    @property
    def bottom(self) -> float:
        return self.y.range[0]

    @property
    def top(self) -> float:
        return self.y.range[1]

    def y_axis(self, label: str, format: Format | None = None) -> Markup:
        """Grid lines with their values, and what they count above them."""
        values = self.y.ticks(5)
        format = format or tick_format(values)
        rows = [
            line((self.left, self.y(value)), (self.right, self.y(value)), class_="grid")
            + text(format(value), self.left - 6, self.y(value) + 4, class_="tick end")
            for value in values
        ]
        return group(*rows, text(label, 2.0, 12.0, class_="axis-label"))

    def x_axis(
        self, label: str, values: Sequence[float] | None = None, format: Format | None = None
    ) -> Markup:
        """The base line, values below it, and what they count below those."""
        values = self.x.ticks(6) if values is None else values
        format = format or tick_format(values)
        marks = [
            line((self.x(value), self.bottom), (self.x(value), self.bottom + 4), class_="axis")
            + text(format(value), self.x(value), self.bottom + 16, class_="tick middle")
            for value in values
        ]
        base = line((self.left, self.bottom), (self.right, self.bottom), class_="axis")
        return group(base, *marks, text(label, self.right, self.height - 3, class_="axis-label end"))


def share_format(value: float) -> str:
    """A share as an axis shows it."""
    return f"{100 * value:.0f} %"


def drawing(key: str, title: str, description: str, *marks: Markup, height: float = HEIGHT) -> Markup:
    """The whole SVG; title and description are read to those who do not see it. `key` is unique in the page."""
    return element(
        "svg",
        element("title", title, id=f"{key}-title"),
        element("desc", description, id=f"{key}-desc"),
        *marks,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        class_="chart",
    )
