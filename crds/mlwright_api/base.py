"""What every API object is made of: strict camelCase models, metadata and conditions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "mlwright.dev"
API_VERSION = f"{GROUP}/v1alpha1"

_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
_NAME = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"

DnsLabel = Annotated[str, Field(pattern=_LABEL, max_length=63)]
DnsName = Annotated[str, Field(pattern=_NAME, max_length=253)]
Text = Annotated[str, Field(max_length=1024)]

PATTERN_WORDS = {
    _LABEL: "lower-case letters, digits and '-', starting and ending with a letter or digit",
    _NAME: "lower-case letters, digits, '-' and '.', each part starting and ending with a letter or digit",
}
"""What a pattern allows, in words."""


class ApiModel(BaseModel):
    """A frozen record with camelCase names on the wire; unknown fields are errors."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


class ObjectMeta(ApiModel):
    """The part of Kubernetes metadata that a person writes, and what an API server adds."""

    model_config = ConfigDict(extra="ignore")

    name: DnsName
    namespace: DnsLabel | None = None
    uid: str | None = None
    generation: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class ConditionStatus(StrEnum):
    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class Condition(ApiModel):
    """A Kubernetes condition."""

    type: Annotated[str, Field(max_length=316)]
    status: ConditionStatus
    reason: Annotated[str, Field(max_length=1024)]
    message: Annotated[str, Field(max_length=32768)] = ""
    observed_generation: int | None = None
    last_transition_time: datetime | None = None


ApiVersion = Literal["mlwright.dev/v1alpha1"]
