"""Kubernetes quantities: "500m", "2Gi", 1.5."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import core_schema

_FORM = re.compile(r"^(?P<number>[0-9]+(?:\.[0-9]+)?)(?P<suffix>m|k|M|G|T|P|Ki|Mi|Gi|Ti|Pi)?$")
_FACTORS = {"": Decimal(1), "m": Decimal("0.001")}
_FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTP", start=1)}
_FACTORS |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTP", start=1)}


class Quantity(str):
    """An amount as Kubernetes writes it; compares as text, `value` and `bytes` are numbers."""

    @property
    def value(self) -> float:
        """The amount in base units (cores, bytes)."""
        return float(self._exact())

    @property
    def bytes(self) -> int:
        """The amount rounded up to whole units."""
        return int(self._exact().to_integral_value(rounding="ROUND_CEILING"))

    def _exact(self) -> Decimal:
        match = _FORM.match(self)
        if match is None:
            raise ValueError(f"{str(self)!r} is not a quantity such as 500m, 2Gi or 1.5")
        return Decimal(match["number"]) * _FACTORS[match["suffix"] or ""]

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: Any, _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def _validate(cls, raw: object) -> Quantity:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError("must be a quantity such as 500m, 2Gi or 1.5")
        quantity = cls(raw)
        quantity._exact()
        return quantity
