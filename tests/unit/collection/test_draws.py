"""Draws that depend on their key alone."""

from __future__ import annotations

import pytest
from mlwright_trainer.collection.draws import draw_fraction, draw_index, draw_seed


def test_a_draw_is_a_known_number_on_every_machine() -> None:
    assert draw_seed("sampling", 0, 1, 2) == 2184668383595197371


def test_purpose_key_order_and_type_all_matter() -> None:
    draws = {
        draw_seed("sampling", 1, 2),
        draw_seed("parent", 1, 2),
        draw_seed("sampling", 2, 1),
        draw_seed("sampling", 12),
        draw_seed("sampling", "1", 2),
        draw_seed("sampling", 1, 2, 0),
    }
    assert len(draws) == 6


def test_seeds_fit_a_signed_64_bit_integer() -> None:
    assert all(0 <= draw_seed("x", number) < 2**63 for number in range(1000))


def test_fractions_fill_the_unit_interval_evenly() -> None:
    drawn = [draw_fraction("x", number) for number in range(10_000)]
    assert 0 <= min(drawn) < 0.001
    assert 0.999 < max(drawn) < 1
    assert abs(sum(drawn) / len(drawn) - 0.5) < 0.01


def test_nothing_cannot_be_drawn_from() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        draw_index(0, "x")
