"""TrainingRun.status: the operator's part and the collector's."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from mlwright_api.base import ApiModel, Conditions, DnsName, keyed_by
from mlwright_api.bounds import Fraction, NotNegative

COLLECTOR_STATUS = ("progress", "reward", "best", "policyVersions")
"""The collector's part of the status; the rest is the operator's."""


class Progress(ApiModel):
    """How far the run is."""

    update: Annotated[int, Field(ge=0)]
    """Updates done."""
    updates: Annotated[int, Field(ge=0)]
    """Updates asked for."""
    policy_version: Annotated[int, Field(ge=0)]
    """Of the newest weights."""
    eta_seconds: NotNegative | None = None
    """Estimated time to the end."""
    last_update_time: datetime | None = None
    """When the newest weights were published."""


class RewardStatus(ApiModel):
    """Of the last batch."""

    mean: float
    """Mean reward of its rows."""
    valid_fraction: Fraction
    """Share of its rows with a valid submission."""


class Best(ApiModel):
    """The best script so far."""

    score: float
    """On Selection."""
    path: Annotated[str, Field(max_length=1024)]
    """Below the run's folder."""
    digest: Annotated[str, Field(max_length=128)]
    """sha256 of the script."""


class RolloutCounts(ApiModel):
    """Of this run's rollouts."""

    pending: Annotated[int, Field(ge=0)] = 0
    """Not yet admitted."""
    running: Annotated[int, Field(ge=0)] = 0
    """In a sandbox."""
    finished: Annotated[int, Field(ge=0)] = 0
    """With an outcome."""
    infrastructure_failed: Annotated[int, Field(ge=0)] = 0
    """Given up after their retries."""


class InferenceServer(ApiModel):
    """A server that samples."""

    pod: DnsName
    """Its pod."""
    address: Annotated[str, Field(max_length=253)]
    """Host and port."""
    ready: bool
    """Healthy, and at an accepted policy version."""


class TrainingRunStatus(ApiModel):
    """The operator's part and the collector's; bounded, no history."""

    conditions: Conditions = []
    """Accepted, Ready, Suspended, Succeeded, Failed, SandboxesIsolated, StorageShared."""
    rollouts: RolloutCounts | None = None
    inference: Annotated[
        list[InferenceServer], Field(max_length=1024, json_schema_extra=keyed_by("pod"))
    ] = []
    """By pod."""
    progress: Progress | None = None
    reward: RewardStatus | None = None
    best: Best | None = None
    policy_versions: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=64)] = []
    """Those that are kept."""
