"""Bounded numbers that several kinds use."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

NotNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]
Updates = Annotated[int, Field(ge=0, le=1_000_000)]
"""A number of updates, 0 included."""
Tokens = Annotated[int, Field(ge=1, le=1_048_576)]
Seconds = Annotated[float, Field(ge=0, le=31_536_000)]
"""At most a year."""
Rate = Annotated[float, Field(gt=0, le=1)]
"""A learning rate."""
Coefficient = Annotated[float, Field(ge=0, le=1000)]
