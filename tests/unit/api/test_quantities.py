"""Kubernetes quantities: text, numbers, and what is neither."""

from __future__ import annotations

import pytest
from mlwright_api.quantities import PositiveQuantity, Quantity
from pydantic import BaseModel, ValidationError


class Box(BaseModel):
    size: Quantity = Quantity("1")
    least: PositiveQuantity = Quantity("1")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0.0),
        ("1", 1.0),
        ("1.5", 1.5),
        ("500m", 0.5),
        ("100u", 1e-4),
        ("5n", 5e-9),
        ("2k", 2e3),
        ("2M", 2e6),
        ("2Ki", 2048.0),
        ("1.5Gi", 1.5 * 2**30),
        ("1Ei", 2.0**60),
        ("1e3", 1e3),
        ("1E3", 1e3),
        ("12e-1", 1.2),
        ("1E", 1e18),
    ],
)
def test_an_amount_is_what_kubernetes_says(text: str, value: float) -> None:
    assert Quantity(text).value == pytest.approx(value, rel=1e-12)


def test_bytes_are_rounded_up() -> None:
    assert Quantity("1500m").bytes == 2
    assert Quantity("0.1").bytes == 1
    assert Quantity("2Gi").bytes == 2**31


@pytest.mark.parametrize(
    "raw", ["", " 1", "1 Gi", "1GB", "-1", "+1", "1..2", ".5", "one", "1KiB", "1e", "1e999", "9" * 40]
)
def test_what_is_no_quantity_is_refused(raw: str) -> None:
    with pytest.raises(ValidationError, match="must be a quantity such as 500m, 2Gi"):
        Box(size=raw)


@pytest.mark.parametrize("raw", [True, None, [], {}])
def test_what_is_no_text_and_no_number_is_refused(raw: object) -> None:
    with pytest.raises(ValidationError, match="must be a quantity"):
        Box(size=raw)


@pytest.mark.parametrize(("raw", "text"), [(2, "2"), (2.0, "2"), (10**15 - 1, "9" * 15)])
def test_a_whole_number_is_a_quantity(raw: float, text: str) -> None:
    assert Box(size=raw).size == text
    assert Quantity(text).value == raw


@pytest.mark.parametrize("raw", [0.5, 1e-7])
def test_a_number_that_is_not_whole_must_be_quoted_as_for_an_api_server(raw: float) -> None:
    with pytest.raises(ValidationError, match=f'in quotes where it is no whole number: "{raw}"'):
        Box(size=raw)


@pytest.mark.parametrize("raw", [float("inf"), float("nan")])
def test_a_quantity_is_finite(raw: float) -> None:
    with pytest.raises(ValidationError, match="must be a quantity"):
        Box(size=raw)


def test_nothing_is_not_positive() -> None:
    with pytest.raises(ValidationError, match="must be greater than 0"):
        Box(least="0Gi")


def test_a_quantity_is_written_as_it_was_read() -> None:
    assert Box(size="1500m").model_dump(mode="json") == {"size": "1500m", "least": "1"}
