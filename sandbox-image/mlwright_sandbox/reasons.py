"""One-line reasons made of text that nobody trusts: printable, short, no line breaks."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

REASON_CHARACTERS = 512
_QUOTED_CHARACTERS = 40
_NAMED = 3
_COMPARED = 1000


def one_line(text: str) -> str:
    """`text` on one line of printable characters, at most REASON_CHARACTERS of them."""
    flat = " ".join(text[: 8 * REASON_CHARACTERS].split())
    shown = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in flat)
    return shorten(shown, REASON_CHARACTERS)


def about(subject: str, reason: str) -> str:
    """`reason` with what it is about before it: as one sentence where it starts with a verb."""
    return f"{subject} {reason}" if reason.startswith(("has ", "is ")) else f"{subject}: {reason}"


def counted(count: int, one: str, many: str) -> str:
    """A number with its noun: 1 row, 2,000 rows."""
    return f"{count:,} {one if count == 1 else many}"


def shorten(text: str, characters: int) -> str:
    """`text`, or its beginning and an ellipsis where it is longer than `characters`."""
    return text if len(text) <= characters else text[: characters - 1] + "…"


def quoted(value: str) -> str:
    """A value of the submission's own, quoted, escaped and cut."""
    return repr(shorten(value, _QUOTED_CHARACTERS))


def named(values: Sequence[str]) -> str:
    """The first few of `values`, quoted, and how many more there are."""
    listed = ", ".join(quoted(value) for value in values[:_NAMED])
    return f"{listed} and {len(values) - _NAMED:,} more" if len(values) > _NAMED else listed


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The one of `known` (of the first thousand) that resembles `name` most, whatever its case, if any does."""
    folded = {
        candidate[:_QUOTED_CHARACTERS].casefold(): candidate for candidate in reversed(known[:_COMPARED])
    }
    close = difflib.get_close_matches(name[:_QUOTED_CHARACTERS].casefold(), folded, n=1)
    return folded[close[0]] if close else None


def amount(size: int) -> str:
    """A size in bytes as people say it: 512 bytes, 16.0 MiB."""
    if size < 1024:
        return f"{size} bytes"
    power = min((size.bit_length() - 1) // 10, 4)
    return f"{size / 1024**power:.1f} {'KMGT'[power - 1]}iB"
