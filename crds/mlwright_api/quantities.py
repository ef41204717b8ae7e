"""Kubernetes quantities: "500m", "2Gi", "1e3", 4."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from mlwright_api.violations import Cel

PATTERN = r"^([0-9]{1,15})(\.[0-9]{1,9})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][-+]?[0-9]{1,2})?$"

_FORM = re.compile(PATTERN)
_FACTORS = {"": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
_FACTORS |= {suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)}
_FACTORS |= {f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", start=1)}


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

    @property
    def milli(self) -> int:
        """The amount in thousandths, rounded up: millicores."""
        return int((self._exact() * 1000).to_integral_value(rounding="ROUND_CEILING"))

    @property
    def exact(self) -> Decimal:
        """The amount in base units, without rounding: `value` for comparisons."""
        return self._exact()

    def _exact(self) -> Decimal:
        match = _FORM.match(self)
        if match is None:
            raise ValueError(f"must be a quantity such as 500m, 2Gi or 1.5, not {self[:40]!r}")
        whole, fraction, suffix = match.group(1), match.group(2) or "", match.group(3) or ""
        number = Decimal(whole + fraction)
        return number * (_FACTORS[suffix] if suffix in _FACTORS else Decimal(f"1{suffix}"))

    @classmethod
    def __get_pydantic_core_schema__(
        cls, _source: Any, _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, _schema: core_schema.CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": ["integer", "string"], "pattern": PATTERN, "maxLength": 32, "format": "quantity"}

    @classmethod
    def _validate(cls, raw: object) -> Quantity:
        if isinstance(raw, bool) or not isinstance(raw, str | int | float):
            raise ValueError("must be a quantity such as 500m, 2Gi or 1.5")
        if isinstance(raw, float) and not raw.is_integer():
            # A CRD can say "an integer or text", but not "a number or text".
            raise ValueError(f'must be a quantity, in quotes where it is no whole number: "{raw}"')
        quantity = cls(raw if isinstance(raw, str) else int(raw))
        quantity._exact()
        return quantity


def _positive(quantity: Quantity) -> Quantity:
    if quantity.value <= 0:
        raise ValueError(f"must be greater than 0, not {str(quantity)!r}")
    return quantity


POSITIVE = Cel(
    "type(self) == string ? self.matches('^[0-9.]*[1-9]') : self > 0",
    message="must be greater than 0",
)
PositiveQuantity = Annotated[
    Quantity,
    AfterValidator(_positive),
    Field(
        json_schema_extra={
            "x-kubernetes-validations": [{"rule": POSITIVE.expression, "message": POSITIVE.message}]
        }
    ),
]
