"""MLTask: data, a metric and hidden answers that a script is judged by."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from itertools import combinations
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field

from mlwright_api.base import DISTINCT, ApiModel, ApiVersion, Conditions, DnsName, ObjectMeta, Text
from mlwright_api.patterns import CSV_NAME, DIGEST, METRIC_NAME
from mlwright_api.quantities import PositiveQuantity, Quantity
from mlwright_api.violations import Cel, Rule, Violation, exactly_one, first_duplicate, rule

ColumnName = Annotated[str, Field(min_length=1, max_length=128)]


class Direction(StrEnum):
    """Which way a metric is better."""

    MAXIMIZE = "Maximize"
    MINIMIZE = "Minimize"


class SubmissionKind(StrEnum):
    """What a submission's columns hold."""

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

    name: Annotated[str, Field(min_length=1, max_length=63, pattern=METRIC_NAME)]
    """Name in the registry (`mlwright task metrics`), or any name where the task brings its own grade.py."""
    direction: Direction | None = None
    """Only for a task with its own grade.py; registered metrics know theirs."""
    averaging: Literal["Binary", "Macro", "Micro", "Weighted"] | None = None
    """For F1, precision and recall."""
    k: Annotated[int, Field(ge=1, le=1000)] | None = None
    """For ranking metrics such as MAP@k."""


class SubmissionSpec(ApiModel):
    """The CSV file that a script has to write."""

    file_name: Annotated[str, Field(pattern=CSV_NAME, max_length=128)] = "submission.csv"
    """Written by the script into its working directory."""
    id_column: ColumnName = "id"
    """As in the sample submission."""
    target_columns: Annotated[
        list[ColumnName], Field(min_length=1, max_length=1024, json_schema_extra=DISTINCT)
    ]
    """One, or one a class (probabilities), or one a target."""
    kind: SubmissionKind
    """Labels, probabilities in [0, 1], or numbers."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_distinct_columns,)


# That no column comes twice is said by the list's type.
@rule(
    Cel(
        "!(self.idColumn in self.targetColumns)",
        field="targetColumns",
        message="must not contain the idColumn '{self.idColumn}'",
    )
)
def _distinct_columns(submission: SubmissionSpec) -> Iterator[Violation]:
    columns = submission.target_columns
    if submission.id_column in columns:
        yield Violation("targetColumns", f"must not contain the idColumn {submission.id_column!r}")
    if twice := first_duplicate(columns):
        yield Violation("targetColumns", f"must be distinct, but {twice!r} comes twice")


class ClaimSource(ApiModel):
    """A folder of a PersistentVolumeClaim that carries the opt-in label."""

    name: DnsName
    """Of the claim, in the same namespace."""
    path: Annotated[str, Field(max_length=512)] = ""
    """Relative to the claim's root, without `..`; empty: the root."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_relative_path,)


_PLAIN_PATH = (
    "must be relative to the claim, without '..', '.' and empty parts such as a slash at the end makes"
)


@rule(
    Cel(
        "self.path == '' || self.path.split('/').all(part, !(part in ['', '.', '..']))",
        field="path",
        message=_PLAIN_PATH,
    )
)
def _relative_path(claim: ClaimSource) -> Iterator[Violation]:
    if claim.path and not {"", ".", ".."}.isdisjoint(claim.path.split("/")):
        yield Violation("path", _PLAIN_PATH)


class DataVolume(ApiModel):
    """Where one of a task's three data folders comes from: exactly one source."""

    image: Text | None = None
    """An OCI image, mounted as a volume."""
    claim: ClaimSource | None = None
    config_map: DnsName | None = None
    """For tiny tasks: at most 1 MiB."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (exactly_one("image", "claim", "configMap"),)


class TaskData(ApiModel):
    """The three volumes; absent in a task folder, where they are the folders public, private and sealed."""

    public: DataVolume
    """What scripts see: training data, test data, sample submission."""
    private: DataVolume
    """Answers for Reward and Selection: mounted in graders only."""
    sealed: DataVolume | None = None
    """Answers for Final: mounted nowhere until a run has ended."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_separate_volumes,)


def _apart(one: str, other: str) -> Cel:
    a, b = f"self.{one}", f"self.{other}"
    whole = (
        f"has({a}.{name}) && has({b}.{name}) && {a}.{name} == {b}.{name}" for name in ("image", "configMap")
    )
    path, into = f"{a}.claim.path", f"{b}.claim.path"
    nested = f"{path} == {into} || " + " || ".join(
        f"{outer} == '' || {inner}.startsWith({outer} + '/')" for outer, inner in ((path, into), (into, path))
    )
    claims = f"has({a}.claim) && has({b}.claim) && {a}.claim.name == {b}.claim.name && ({nested})"
    given = "" if other != "sealed" else "!has(self.sealed) || "
    return Cel(
        f"{given}!({' || '.join(f'({same})' for same in (*whole, claims))})",
        field=other,
        message=f"must be apart from {one}: one must not contain the other",
    )


@rule(_apart("public", "private"), _apart("public", "sealed"), _apart("private", "sealed"))
def _separate_volumes(data: TaskData) -> Iterator[Violation]:
    """Whoever mounts one folder must not see another inside of it."""
    named = [("public", data.public), ("private", data.private), ("sealed", data.sealed)]
    for (one, first), (other, second) in combinations(named, 2):
        if first is not None and second is not None and _overlap(first, second):
            yield Violation(other, f"must be apart from {one}: one must not contain the other")


def _overlap(first: DataVolume, second: DataVolume) -> bool:
    if first.claim is None or second.claim is None or first.claim.name != second.claim.name:
        return first == second
    one, other = PurePosixPath(first.claim.path), PurePosixPath(second.claim.path)
    return one.is_relative_to(other) or other.is_relative_to(one)


class TaskLimits(ApiModel):
    """What one script may use."""

    timeout_seconds: Annotated[float, Field(gt=0, le=86_400)] = 300
    """Execution, from the script's start; then it is a Timeout."""
    cpu: PositiveQuantity = Quantity("1")
    """Cores; on one machine a script always has one."""
    memory: PositiveQuantity = Quantity("2Gi")
    """Of the script and its children together."""
    work_size: PositiveQuantity = Quantity("512Mi")
    """Size of the memory-backed work folder."""
    gpus: Annotated[int, Field(ge=0, le=16)] = 0
    """Whole devices; on one machine a script has none."""


class TaskReference(ApiModel):
    """Known scores on the Reward split (medals and median: of the source's leaderboard)."""

    baseline: float
    """Score of the constant predictor."""
    best: float | None = None
    """A strong known score; required by the Normalized reward unless the metric has a bound."""
    median: float | None = None
    """Of the leaderboard."""
    bronze: float | None = None
    """Threshold of the medal, inclusive."""
    silver: float | None = None
    """Threshold of the medal, inclusive."""
    gold: float | None = None
    """Threshold of the medal, inclusive."""


class SplitSpec(ApiModel):
    """How rows were divided among training, Reward, Selection and Final; `mlwright task check` proves it."""

    strategy: Literal["Stratified", "Random", "Group", "Time"] = "Stratified"
    """Stratified: by target (numbers by quantile). Group, Time: rows of a group, or of a time, stay together."""
    column: ColumnName | None = None
    """Of the public data: the group or the time; required by Group and Time, and only there."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_column_where_needed,)


@rule(
    Cel(
        "has(self.column) || !(self.strategy in ['Group', 'Time'])",
        field="column",
        message="is required with strategy {self.strategy}",
    ),
    Cel(
        "!has(self.column) || self.strategy in ['Group', 'Time']",
        field="column",
        message="is only for the strategies Group and Time, not {self.strategy}",
    ),
)
def _column_where_needed(splits: SplitSpec) -> Iterator[Violation]:
    needed = splits.strategy in ("Group", "Time")
    if needed and splits.column is None:
        yield Violation("column", f"is required with strategy {splits.strategy}")
    if splits.column is not None and not needed:
        yield Violation("column", f"is only for the strategies Group and Time, not {splits.strategy}")


class MLTaskSpec(ApiModel):
    """Immutable: a changed task is a new task."""

    title: Annotated[str, Field(min_length=1, max_length=256)]
    """One line for people."""
    description: Annotated[str, Field(min_length=1, max_length=65_536)]
    """Markdown shown to the model."""
    metric: MetricSpec
    submission: SubmissionSpec
    splits: SplitSpec = SplitSpec()
    data: TaskData | None = None
    """Volumes, in a cluster; left out in a task folder."""
    limits: TaskLimits = TaskLimits()
    reference: TaskReference


class MLTaskStatus(ApiModel):
    """Written by the operator."""

    digest: Annotated[str, Field(pattern=DIGEST, max_length=71)] | None = None
    """Of the spec: what a Rollout's taskRef.digest must be."""
    sample_scores: dict[Split, float] = {}
    """Of the sample submission, as a real grader saw it: the data and the answers belong together."""
    conditions: Conditions = []
    """Ready: whether scripts can be run and graded, and if not why."""


class MLTask(ApiModel):
    """A machine-learning task."""

    api_version: ApiVersion
    kind: Literal["MLTask"]
    metadata: ObjectMeta
    spec: MLTaskSpec
    status: MLTaskStatus | None = None
