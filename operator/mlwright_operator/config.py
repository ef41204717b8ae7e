"""The operator's configuration: what the platform decides, and nobody who may only write a Rollout."""

from __future__ import annotations

from typing import Annotated, Literal

from mlwright_api.base import ApiModel, DnsLabel
from mlwright_api.quantities import PositiveQuantity, Quantity
from pydantic import Field

UserNamespaces = Literal["Required", "WhenSupported", "Off"]


class Toleration(ApiModel):
    """As in a pod's spec."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Equal"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: int | None = None


class ProfileLimits(ApiModel):
    """The most that a task may ask for."""

    timeout_seconds: Annotated[float, Field(gt=0)] = 86_400
    cpu: PositiveQuantity = Quantity("64")
    memory: PositiveQuantity = Quantity("256Gi")
    work_size: PositiveQuantity = Quantity("64Gi")
    gpus: Annotated[int, Field(ge=0)] = 16


class SandboxProfile(ApiModel):
    """One way of running sandboxes, named by `spec.sandbox` of a Rollout."""

    image: str
    """With runner, grader and the libraries of scripts; pinned by digest in production."""
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = "IfNotPresent"
    image_pull_secrets: list[str] = []
    runtime_class: str | None = None
    user_namespaces: UserNamespaces = "WhenSupported"
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    priority_class: str | None = None
    overhead_memory: PositiveQuantity = Quantity("320Mi")
    """For the runner and its libraries, on top of the task's memory and work size."""
    grader_cpu: PositiveQuantity = Quantity("500m")
    """Reserved while the script runs, too: Guaranteed pods have no other way."""
    grader_memory: PositiveQuantity = Quantity("1Gi")
    starting_seconds: Annotated[int, Field(ge=10)] = 300
    """For image pulls and start, within the pod's deadline."""
    grading_seconds: Annotated[int, Field(ge=5)] = 120
    limits: ProfileLimits = ProfileLimits()


class AdmissionLimits(ApiModel):
    """How many sandboxes there may be at a time."""

    sandboxes: Annotated[int, Field(ge=1)] = 1000
    """In all namespaces together."""
    sandboxes_per_run: Annotated[int, Field(ge=1)] = 200


class OperatorConfig(ApiModel):
    """Everything that a platform engineer sets; the chart renders it into a ConfigMap."""

    namespaces: list[DnsLabel] = []
    """Watched; empty: all."""
    profiles: dict[DnsLabel, SandboxProfile]
    """By name; a Rollout that names none uses `default`."""
    admission: AdmissionLimits = AdmissionLimits()
    ttl_seconds: Annotated[int, Field(ge=0)] = 3600
    """A finished Rollout is deleted after so long, as a backstop, unless the object of its runRef exists."""
    resync_seconds: Annotated[float, Field(gt=0)] = 60
