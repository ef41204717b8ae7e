"""Numbers and comparisons as a person would write them."""

from __future__ import annotations

import math

from mlwright_api.mltask import Direction

from mlwright_trainer.report.model import Range
from mlwright_trainer.report.visible import visible

Value = tuple[float | None, Range | None]
MINUS = "\N{MINUS SIGN}"
NBSP = "\N{NO-BREAK SPACE}"
"""Between a number and its unit."""


def number(value: float | None, digits: int = 3) -> str:
    """`digits` significant digits, no exponent between 0.0001 and a million; an en dash for nothing."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("-", MINUS)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace("-", MINUS)


def score(value: float | None) -> str:
    """A score: three decimals near 1, four significant digits where scores are large."""
    if value is None:
        return "–"
    if 1e-3 <= abs(value) < 10:
        return f"{value:.3f}".replace("-", MINUS)
    return number(value, 4)


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.{0 if value in (0, 1) else 1}f}{NBSP}%"


def span(interval: Range | None) -> str:
    """`[.856, .900]`-like text; empty where there is no interval."""
    return "" if interval is None else f"[{score(interval[0])}, {score(interval[1])}]"


def signed(value: float | None) -> str:
    text = score(value)
    return f"+{text}" if value is not None and value > 0 else text


def duration(seconds: float | None) -> str:
    """Seconds as a person says them: 0.35 s, 42 s, 4 min 10 s, 2 h 5 min."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{number(seconds, 2)}{NBSP}s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole}{NBSP}s"
    if whole < 3600:
        return f"{whole // 60}{NBSP}min {whole % 60}{NBSP}s"
    return f"{whole // 3600}{NBSP}h {whole % 3600 // 60}{NBSP}min"


def plural(count: int, noun: str, many: str = "") -> str:
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def one_line(text: str, most: int = 160) -> str:
    """Text of others within a sentence: on one line, nothing of it unseen, cut to `most` characters."""
    line = visible(" ".join(text.split())).rstrip(".")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def with_span(value: Value) -> str:
    return f"{score(value[0])} {span(value[1])}".strip()


def compared(
    subject: str, before: Value, after: Value, difference: Range | None, *, direction: Direction | None
) -> str:
    """What became of a quantity; a change whose interval holds 0 is not called one. Empty without values."""
    if before[0] is None or after[0] is None:
        return ""
    if difference is None or difference[0] <= 0 <= difference[1]:
        return f"{subject} shows no clear change: {with_span(before)} before, {with_span(after)} after"
    rose = after[0] > before[0]
    verb = "rose" if rose else "fell"
    judged = _judged(rose, direction)
    return f"{subject} {verb} from {with_span(before)} to {with_span(after)}{judged}"


def _judged(rose: bool, direction: Direction | None) -> str:
    if direction is None:
        return ""
    better = rose == (direction is Direction.MAXIMIZE)
    if direction is Direction.MINIMIZE:
        return ", which is better" if better else ", which is worse"
    return "" if better else ", which is worse"
