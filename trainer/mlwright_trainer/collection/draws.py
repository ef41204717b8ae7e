"""Draws that depend on their key alone: the same in every process, on every machine, in any order."""

from __future__ import annotations

import hashlib

_BITS = 63


def draw_seed(purpose: str, *key: int | str) -> int:
    """A seed in [0, 2^63) for `purpose` (such as "sampling") and a key such as (run seed, update, index).

    Other purposes with the same key give unrelated seeds. Not Python's `hash`, which differs between
    processes.
    """
    text = "\x1f".join((purpose, *(f"{type(part).__name__}:{part}" for part in key)))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> (64 - _BITS)


def draw_fraction(purpose: str, *key: int | str) -> float:
    """As `draw_seed`, uniform in [0, 1)."""
    return (draw_seed(purpose, *key) >> (_BITS - 53)) / 2**53


def draw_index(length: int, purpose: str, *key: int | str) -> int:
    """As `draw_seed`, uniform in range(length); ValueError for an empty range."""
    if length < 1:
        raise ValueError("there is nothing to draw from")
    return int(draw_fraction(purpose, *key) * length)
