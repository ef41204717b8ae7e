"""MLTask: data, a metric and hidden answers that a script is judged by."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from mlwright_api.base import ApiModel, ApiVersion, DnsName, ObjectMeta, Text
from mlwright_api.quantities import Quantity


class Direction(StrEnum):
    MAXIMIZE = "Maximize"
    MINIMIZE = "Minimize"


class SubmissionKind(StrEnum):
    LABELS = "Labels"
    PROBABILITIES = "Probabilities"
    VALUES = "Values"


class Split(StrEnum):
    """Which answers a score comes from: Reward feeds learning, Selection chooses, Final judges once."""

    REWARD = "Reward"
    SELECTION = "Selection"
    FINAL = "Final"


class MetricSpec(ApiModel):
    """How a submission is scored."""

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9_]*$")]
    """Name in the registry (`mlwright task metrics`), or any name where the task brings its own grade.py."""
    direction: Direction | None = None
    """Only for a task with its own grade.py; registered metrics know theirs."""
    averaging: Literal["Binary", "Macro", "Micro", "Weighted"] | None = None
    """For F1, precision and recall."""
    k: Annotated[int, Field(ge=1, le=1000)] | None = None
    """For ranking metrics such as MAP@k."""


class SubmissionSpec(ApiModel):
    """The CSV file that a script has to write."""

    file_name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*\.csv$", max_length=128)] = (
        "submission.csv"
    )
    id_column: Annotated[str, Field(min_length=1, max_length=128)] = "id"
    target_columns: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128)]], Field(min_length=1, max_length=1024)
    ]
    kind: SubmissionKind

    @model_validator(mode="after")
    def _columns_are_distinct(self) -> Self:
        if len({self.id_column, *self.target_columns}) != 1 + len(self.target_columns):
            raise ValueError("idColumn and targetColumns must all be different")
        return self


class ClaimSource(ApiModel):
    """A folder of a PersistentVolumeClaim that carries the opt-in label."""

    name: DnsName
    path: Annotated[str, Field(max_length=512)] = ""
    """Relative to the claim's root, without `..`."""

    @field_validator("path")
    @classmethod
    def _relative(cls, path: str) -> str:
        parsed = PurePosixPath(path)
        if parsed.is_absolute() or ".." in parsed.parts:
            raise ValueError("must be relative to the claim and must not contain '..'")
        return path


class DataVolume(ApiModel):
    """Where one of a task's three data folders comes from: exactly one source."""

    image: Text | None = None
    claim: ClaimSource | None = None
    config_map: DnsName | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.image, self.claim, self.config_map)) != 1:
            raise ValueError("exactly one of image, claim, configMap is required")
        return self


class TaskData(ApiModel):
    """The three volumes; absent in a task folder, where they are the folders public, private and sealed."""

    public: DataVolume
    private: DataVolume
    sealed: DataVolume | None = None


class TaskLimits(ApiModel):
    """What one script may use."""

    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300
    cpu: Quantity = Quantity("1")
    memory: Quantity = Quantity("2Gi")
    work_size: Quantity = Quantity("512Mi")
    """Size of the memory-backed work folder."""
    gpus: Annotated[int, Field(ge=0, le=16)] = 0


class TaskReference(ApiModel):
    """Known scores on the Reward split (medals and median: of the source's leaderboard)."""

    baseline: float
    """Score of the constant predictor."""
    best: float | None = None
    """A strong known score; required by the Normalized reward unless the metric has a bound."""
    median: float | None = None
    bronze: float | None = None
    silver: float | None = None
    gold: float | None = None


class MLTaskSpec(ApiModel):
    """Immutable: a changed task is a new task."""

    title: Annotated[str, Field(min_length=1, max_length=256)]
    description: Annotated[str, Field(min_length=1, max_length=65_536)]
    """Markdown shown to the model."""
    metric: MetricSpec
    submission: SubmissionSpec
    data: TaskData | None = None
    limits: TaskLimits = TaskLimits()
    reference: TaskReference


class MLTask(ApiModel):
    """A machine-learning task."""

    api_version: ApiVersion
    kind: Literal["MLTask"]
    metadata: ObjectMeta
    spec: MLTaskSpec
