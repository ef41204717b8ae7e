"""What every API object is made of: strict camelCase models, metadata and conditions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from mlwright_api.patterns import DNS_LABEL, DNS_NAME

GROUP = "mlwright.dev"
API_VERSION = f"{GROUP}/v1alpha1"

DnsLabel = Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
DnsName = Annotated[str, Field(pattern=DNS_NAME, max_length=253)]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
LabelKey = Annotated[str, Field(min_length=1, max_length=317)]
LabelValue = Annotated[str, Field(max_length=63)]
"""Of labels and of node selectors."""


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
    """Kubernetes metadata: what a person writes, and what an API server adds."""

    name: DnsName
    """Unique among objects of its kind in a namespace."""
    namespace: DnsLabel | None = None
    """The tenant boundary: who may create objects here may run pods here."""
    labels: Annotated[dict[LabelKey, LabelValue], Field(max_length=256)] = {}
    annotations: Annotated[
        dict[LabelKey, Annotated[str, Field(max_length=262_144)]], Field(max_length=256)
    ] = {}
    uid: Annotated[str, Field(max_length=64)] | None = None
    generation: int | None = None
    resource_version: Annotated[str, Field(max_length=64)] | None = None
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: Annotated[list[Text], Field(max_length=64)] | None = None
    owner_references: Annotated[list[dict[str, Any]], Field(max_length=64)] | None = None
    managed_fields: Annotated[list[dict[str, Any]], Field(max_length=256)] | None = None


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
