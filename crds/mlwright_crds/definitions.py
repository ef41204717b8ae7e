"""The three CustomResourceDefinitions: names, columns, selectable fields and schemas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlwright_api.base import API_VERSION, GROUP, ApiModel
from mlwright_api.consistency import task_rules
from mlwright_api.mltask import MLTask, MLTaskSpec, MLTaskStatus
from mlwright_api.rollout import Rollout, RolloutSpec, RolloutStatus
from mlwright_api.trainingrun import SCHEDULE_CHANGES, TrainingRun, TrainingRunSpec, TrainingRunStatus
from mlwright_api.violations import Cel

from mlwright_crds.schemas import Schema, structural
from mlwright_crds.validations import changes, immutable, validation


@dataclass(frozen=True)
class Column:
    """What `kubectl get` prints."""

    name: str
    path: str
    """JSONPath in the object."""
    type: str = "string"
    wide: bool = False
    """Only with `-o wide`."""

    def as_json(self) -> Schema:
        made: Schema = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**made, "priority": 1} if self.wide else made


@dataclass(frozen=True)
class Resource:
    """One kind as an API server serves it."""

    kind: type[ApiModel]
    spec: type[ApiModel]
    status: type[ApiModel]
    short: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    """JSONPaths for `--field-selector`."""
    rules: tuple[Cel, ...] = ()
    """On the spec, beyond those of its model: on changes, and on the catalogue of metrics."""

    @property
    def plural(self) -> str:
        return f"{self.kind.__name__.lower()}s"


def _condition(kind: str, field: str = "status") -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

RESOURCES = (
    Resource(
        TrainingRun,
        TrainingRunSpec,
        TrainingRunStatus,
        "tr",
        (
            Column("Mode", ".spec.collection.mode"),
            Column("Update", ".status.progress.update", "integer"),
            Column("Of", ".spec.algorithm.updates", "integer"),
            Column("Reward", ".status.reward.mean", "number"),
            Column("Best", ".status.best.score", "number"),
            Column("Ready", _condition("Ready")),
            Column("Suspended", _condition("Suspended"), wide=True),
            Column("Valid", ".status.reward.validFraction", "number", wide=True),
            Column("Pending", ".status.rollouts.pending", "integer", wide=True),
            Column("Running", ".status.rollouts.running", "integer", wide=True),
            Column("Seconds-Left", ".status.progress.etaSeconds", "number", wide=True),
            Column("Message", _condition("Ready", "message"), wide=True),
            _AGE,
        ),
        rules=(*changes(TrainingRunSpec), SCHEDULE_CHANGES),
    ),
    Resource(
        MLTask,
        MLTaskSpec,
        MLTaskStatus,
        "mlt",
        (
            Column("Metric", ".spec.metric.name"),
            Column("Ready", _condition("Ready")),
            Column("Reason", _condition("Ready", "reason")),
            Column("Title", ".spec.title", wide=True),
            Column("Baseline", ".spec.reference.baseline", "number", wide=True),
            Column("Best", ".spec.reference.best", "number", wide=True),
            Column("Timeout", ".spec.limits.timeoutSeconds", "number", wide=True),
            Column("Message", _condition("Ready", "message"), wide=True),
            _AGE,
        ),
        rules=(
            immutable("a changed task is a new task; create one under another name"),
            *(cel for rule in task_rules() for cel in rule.cel),
        ),
    ),
    Resource(
        Rollout,
        RolloutSpec,
        RolloutStatus,
        "ro",
        (
            Column("Task", ".spec.taskRef.name"),
            Column("Run", ".spec.runRef.name"),
            Column("Attempt", ".status.attempt", "integer"),
            Column("Outcome", ".status.outcome"),
            Column("Score", ".status.scores.Reward", "number"),
            Column("Seconds", ".status.seconds.execution", "number"),
            Column("Selection", ".status.scores.Selection", "number", wide=True),
            Column("Queued", ".status.seconds.queued", "number", wide=True),
            Column("Started", _condition("Started", "reason"), wide=True),
            Column("Accepted", _condition("Accepted", "reason"), wide=True),
            Column("Reason", ".status.reason", wide=True),
            _AGE,
        ),
        selectable=(".spec.runRef.name", ".spec.runRef.uid", ".spec.taskRef.name", ".status.outcome"),
        rules=(immutable("a rollout is one script, run once; create another one"),),
    ),
)


def definition(resource: Resource) -> Schema:
    """The CustomResourceDefinition of one kind."""
    kind = resource.kind.__name__
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": resource.plural,
        "singular": kind.lower(),
        "shortNames": [resource.short],
        "categories": ["mlwright"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [_version(resource)]},
    }


def _version(resource: Resource) -> dict[str, Any]:
    selectable = [{"jsonPath": path} for path in resource.selectable]
    return {
        "name": API_VERSION.removeprefix(f"{GROUP}/"),
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.as_json() for column in resource.columns],
        **({"selectableFields": selectable} if selectable else {}),
        "schema": {"openAPIV3Schema": object_schema(resource)},
    }


def object_schema(resource: Resource) -> Schema:
    """The schema of a whole object."""
    spec = structural(resource.spec, path="spec")
    spec["x-kubernetes-validations"] = [
        *spec.get("x-kubernetes-validations", ()),
        *map(validation, resource.rules),
    ]
    return {
        "type": "object",
        "description": " ".join((resource.kind.__doc__ or "").split()),
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"{API_VERSION}."},
            "kind": {"type": "string", "description": f"{resource.kind.__name__}."},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": structural(resource.status, path="status"),
        },
    }
