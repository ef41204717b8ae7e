"""TrainingRun.spec's blocks on pods and volumes; `mlwright run` reads none of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from mlwright_api.base import ApiModel, DnsName, LabelKey, LabelValue, Text
from mlwright_api.mltask import ClaimSource
from mlwright_api.quantities import PositiveQuantity, Quantity
from mlwright_api.violations import Cel, Rule, Violation, rule


class Toleration(ApiModel):
    """Kubernetes' own."""

    key: LabelKey | None = None
    """Of the taint; absent with operator Exists: every taint."""
    operator: Literal["Equal", "Exists"] = "Equal"
    """Exists: whatever the taint's value."""
    value: LabelValue | None = None
    """Of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Of the taint; absent: every effect."""
    toleration_seconds: Annotated[int, Field(ge=0)] | None = None
    """How long a NoExecute taint is tolerated; default: for ever."""


class Workload(ApiModel):
    """Pods of one part of a run; `mlwright run` reads none of it."""

    image: Text | None = None
    """One of the operator's allow-list; default: the operator's."""
    resources: Annotated[
        dict[Literal["requests", "limits"], Annotated[dict[LabelKey, Quantity], Field(max_length=32)]],
        Field(max_length=2),
    ] = {}
    """Requests and limits of each pod, as in Kubernetes."""
    replicas: Annotated[int, Field(ge=1, le=1024)] = 1
    """Pods."""
    node_selector: Annotated[dict[LabelKey, LabelValue], Field(max_length=64)] = {}
    """Kubernetes' own."""
    tolerations: Annotated[list[Toleration], Field(max_length=64)] = []
    """Kubernetes' own."""
    affinity: Annotated[dict[str, Any], Field(max_length=3)] | None = None
    """Kubernetes' own."""
    priority_class_name: DnsName | None = None
    """Kubernetes' own."""


class Inference(Workload):
    """The servers that sample; `mlwright run` samples in its own process, whatever is said here."""

    kind: Literal["VLLM", "Transformers"] = "Transformers"
    """VLLM: the stock server. Transformers: in-process on one machine, and for tests."""


class ClaimTemplate(ApiModel):
    """A claim that exists (`claim`), or one to be made (`size`, `storageClassName`)."""

    claim: ClaimSource | None = None
    storage_class_name: DnsName | None = None
    """Default: the cluster's."""
    size: PositiveQuantity | None = None
    """Of the claim that is to be made."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_made_or_found,)


@rule(
    Cel("has(self.claim) != has(self.size)", message="exactly one of claim, size is required"),
    Cel(
        "!has(self.claim) || !has(self.storageClassName)",
        field="storageClassName",
        message="is only for a claim that is to be made (size)",
    ),
)
def _made_or_found(template: ClaimTemplate) -> Iterator[Violation]:
    if (template.claim is None) == (template.size is None):
        yield Violation("", "exactly one of claim, size is required")
    if template.claim is not None and template.storage_class_name is not None:
        yield Violation("storageClassName", "is only for a claim that is to be made (size)")


class Storage(ApiModel):
    """Where a run's files live; what is left out gets a claim of the default class. One machine: `--dir`."""

    model: ClaimTemplate | None = None
    """The first model, downloaded once."""
    weights: ClaimTemplate | None = None
    """Published versions; read by inference."""
    checkpoints: ClaimTemplate | None = None
    """The learner's state."""
    ledger: ClaimTemplate | None = None
    """A block volume: never a network file system."""
    when_deleted: Literal["Retain", "Delete"] = "Retain"
    """What becomes of claims that were made, when the run is deleted."""
