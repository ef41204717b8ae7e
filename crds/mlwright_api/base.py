"""What every API object is made of: strict camelCase models, metadata and conditions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from mlwright_api.patterns import DNS_LABEL, DNS_NAME
from mlwright_api.violations import Rule, enforce

GROUP = "mlwright.dev"
API_VERSION = f"{GROUP}/v1alpha1"

DnsLabel = Annotated[str, Field(pattern=DNS_LABEL, max_length=63)]
DnsName = Annotated[str, Field(pattern=DNS_NAME, max_length=253)]
Text = Annotated[str, Field(min_length=1, max_length=1024)]
LabelKey = Annotated[str, Field(min_length=1, max_length=317)]
LabelValue = Annotated[str, Field(max_length=63)]
"""Of labels and of node selectors."""

DISTINCT: dict[str, Any] = {"x-kubernetes-list-type": "set"}
"""`json_schema_extra` of a list whose entries differ: an API server refuses duplicates."""


def keyed_by(key: str) -> dict[str, Any]:
    """`json_schema_extra` of a list whose entries differ in `key`, and are merged by it (server-side apply)."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}


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

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        """What must hold between fields, beyond each one's type and bounds."""
        return ()

    @model_validator(mode="after")
    def _rules_hold(self) -> Self:
        enforce(self, self.rules())
        return self


class ObjectMeta(ApiModel):
    """Kubernetes metadata: what a person writes, and what an API server adds."""

    name: DnsName
    """Unique among objects of its kind in a namespace."""
    generate_name: Annotated[str, Field(max_length=253)] | None = None
    """Kubernetes' own; the API server made `name` from it."""
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
    """What is or is not so, in CamelCase."""
    status: ConditionStatus
    """Whether it is so."""
    reason: Annotated[str, Field(max_length=1024)]
    """Why, in one CamelCase word of a documented set."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """For a person: what, where, what to do."""
    observed_generation: int | None = None
    """The metadata.generation that this was said of."""
    last_transition_time: datetime | None = None
    """When `status` last changed."""


Conditions = Annotated[list[Condition], Field(max_length=32, json_schema_extra=keyed_by("type"))]
"""What is true of an object now, by type."""


ApiVersion = Literal["mlwright.dev/v1alpha1"]
