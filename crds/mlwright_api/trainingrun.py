"""TrainingRun: one resource that describes a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from mlwright_api.algorithm import Algorithm, DurationWeighting, KlPenalty, Scheduler, WeightingMode
from mlwright_api.base import ApiModel, ApiVersion, DnsLabel, DnsName, ObjectMeta, keyed_by
from mlwright_api.bounds import Seconds
from mlwright_api.modelspec import Lora, ModelSource, ModelSpec, ScratchModel
from mlwright_api.results import MILESTONES
from mlwright_api.reward_order import WORST_NORMALIZED, broken_order
from mlwright_api.runstatus import (
    Best,
    InferenceServer,
    Progress,
    RewardStatus,
    RolloutCounts,
    TrainingRunStatus,
)
from mlwright_api.sampling import (
    Checkpoint,
    Collection,
    CollectionMode,
    EnvironmentSpec,
    Evaluation,
    ExamplesSource,
    FineTuning,
    Prompts,
    PromptTemplates,
    RewardSpec,
    Sampling,
)
from mlwright_api.violations import Cel, Rule, Violation, first_duplicate, rule
from mlwright_api.workloads import ClaimTemplate, Inference, Storage, Toleration, Workload

# Everything that a run is described by can be imported from here.
__all__ = [
    "Algorithm",
    "Best",
    "Checkpoint",
    "ClaimTemplate",
    "Collection",
    "CollectionMode",
    "DurationWeighting",
    "EnvironmentSpec",
    "Evaluation",
    "ExamplesSource",
    "FineTuning",
    "Inference",
    "InferenceServer",
    "KlPenalty",
    "Lora",
    "ModelSource",
    "ModelSpec",
    "Progress",
    "PromptTemplates",
    "Prompts",
    "RewardSpec",
    "RewardStatus",
    "RolloutCounts",
    "RunTask",
    "Sampling",
    "Scheduler",
    "ScratchModel",
    "Storage",
    "Toleration",
    "TrainingRun",
    "TrainingRunSpec",
    "TrainingRunStatus",
    "WeightingMode",
    "Workload",
]


class RunTask(ApiModel):
    """One of the tasks that a run learns from."""

    name: DnsName
    """Of an MLTask; on one machine found by --task NAME=DIR, in the same file, or beside it."""
    weight: Annotated[float, Field(gt=0, le=1000)] = 1
    """Prompts are drawn in proportion."""


class TrainingRunSpec(ApiModel):
    """A run: tasks, a model, and how the one learns from the other."""

    suspend: bool = False
    """In a cluster: stop admission and drain; the same scripts run again after resume."""
    drain_seconds: Seconds = 60
    """In a cluster: how long running scripts may finish on suspend."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=31_536_000)] | None = None
    """In a cluster: delete the run this long after its end; default: never."""
    active_deadline_seconds: Annotated[int, Field(ge=1, le=315_360_000)] | None = None
    """In a cluster: stop the run after this long; default: never."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Of everything random: sampling, prompts, scripts, initial weights."""
    preset: Literal["RLforMLE"] | None = None
    """A paper's settings for what is left out below (arXiv 2509.01684)."""
    weight: Annotated[float, Field(gt=0, le=1000)] = 1
    """Share of sandboxes among the runs of a cluster."""
    tasks: Annotated[list[RunTask], Field(min_length=1, max_length=256, json_schema_extra=keyed_by("name"))]
    """Distinct by name."""
    model: ModelSpec
    algorithm: Algorithm = Algorithm()
    prompts: Prompts = Prompts()
    sampling: Sampling = Sampling()
    collection: Collection = Collection()
    environment: EnvironmentSpec = EnvironmentSpec()
    reward: RewardSpec = RewardSpec()
    fine_tuning: FineTuning | None = None
    """Required by model.source.scratch."""
    collector: Workload = Workload()
    learner: Workload = Workload()
    inference: Inference = Inference()
    sandbox: DnsLabel = "default"
    """In a cluster: a sandbox profile, owned by the platform. On one machine: `mlwright run --backend`."""
    storage: Storage = Storage()
    checkpoint: Checkpoint = Checkpoint()
    evaluation: Evaluation = Evaluation()

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (
            _distinct_tasks,
            _window_closes_batch,
            _minibatch_fits_default,
            _weights_need_window,
            _in_flight_fits,
            _scratch_needs_examples,
            _lengths_fit,
            _one_collector,
            _failures_rank_last,
        )


DEFAULT_BATCH_SIZE = 128
"""Rows an update where neither a window nor the user says otherwise."""
_BATCH = f"self.algorithm.?batchSize.orValue({DEFAULT_BATCH_SIZE})"
_MODE = "self.collection.mode"


# In a CRD the list's type says it.
@rule()
def _distinct_tasks(spec: TrainingRunSpec) -> Iterator[Violation]:
    if twice := first_duplicate(task.name for task in spec.tasks):
        yield Violation("tasks", f"names must be distinct, but {twice} comes twice")


@rule(
    Cel(
        f"{_MODE} != 'Window' || !has(self.algorithm.batchSize)",
        field="algorithm.batchSize",
        message="is refused with collection.mode Window: the clock closes the batch",
    )
)
def _window_closes_batch(spec: TrainingRunSpec) -> Iterator[Violation]:
    if spec.collection.mode is CollectionMode.WINDOW and spec.algorithm.batch_size is not None:
        yield Violation(
            "algorithm.batchSize", "is refused with collection.mode Window: the clock closes the batch"
        )


@rule(
    Cel(
        f"{_MODE} == 'Window' || has(self.algorithm.batchSize) || !has(self.algorithm.minibatchSize) "
        f"|| self.algorithm.minibatchSize <= {DEFAULT_BATCH_SIZE}",
        field="algorithm.minibatchSize",
        message=f"must be at most batchSize ({DEFAULT_BATCH_SIZE}), not {{self.algorithm.minibatchSize}}",
    )
)
def _minibatch_fits_default(_: TrainingRunSpec) -> tuple[Violation, ...]:
    """In Python the default is filled in first: `resolve` validates again."""
    return ()


@rule(
    Cel(
        f"self.algorithm.durationWeighting.?mode.orValue('None') == 'None' || {_MODE} == 'Window' "
        "|| self.algorithm.durationWeighting.force",
        field="algorithm.durationWeighting.mode",
        message="{self.algorithm.durationWeighting.?mode.orValue('None')} needs collection.mode Window, not "
        "{self.collection.mode}: where nothing is cut off, weights are a bias (set force: true to insist)",
    )
)
def _weights_need_window(spec: TrainingRunSpec) -> Iterator[Violation]:
    weighting, mode = spec.algorithm.duration_weighting, spec.collection.mode
    if weighting.mode is WeightingMode.NONE or mode is CollectionMode.WINDOW or weighting.force:
        return
    yield Violation(
        "algorithm.durationWeighting.mode",
        f"{weighting.mode} needs collection.mode Window, not {mode}: where nothing is cut off, weights are a bias "
        "(set force: true to insist)",
    )


_MOST_IN_FLIGHT = f"{_BATCH} * (self.collection.targetStaleness + 1)"


@rule(
    Cel(
        f"{_MODE} != 'Synchronous' || !has(self.collection.maxInFlight) || self.collection.maxInFlight <= {_BATCH}",
        field="collection.maxInFlight",
        message=f"must be at most algorithm.batchSize ({{{_BATCH}}}) with mode Synchronous, not "
        "{self.collection.maxInFlight}",
    ),
    Cel(
        f"{_MODE} != 'Continuous' || !has(self.collection.maxInFlight) "
        f"|| self.collection.maxInFlight <= {_MOST_IN_FLIGHT}",
        field="collection.maxInFlight",
        message=f"must be at most algorithm.batchSize x (targetStaleness + 1) = {{{_MOST_IN_FLIGHT}}}, not "
        "{self.collection.maxInFlight}: more in flight is staler than the target",
    ),
)
def _in_flight_fits(spec: TrainingRunSpec) -> Iterator[Violation]:
    flying, batch, collection = spec.collection.max_in_flight, spec.algorithm.batch_size, spec.collection
    if flying is None or batch is None:
        return
    if collection.mode is CollectionMode.SYNCHRONOUS and flying > batch:
        message = f"must be at most algorithm.batchSize ({batch}) with mode Synchronous, not {flying}"
        yield Violation("collection.maxInFlight", message)
    most = batch * (collection.target_staleness + 1)
    if collection.mode is CollectionMode.CONTINUOUS and flying > most:
        yield Violation(
            "collection.maxInFlight",
            f"must be at most algorithm.batchSize x (targetStaleness + 1) = {most}, not {flying}: more in flight "
            "is staler than the target",
        )


@rule(
    Cel(
        "!has(self.model.source.scratch) || has(self.fineTuning)",
        field="fineTuning",
        message="is required with model.source.scratch: its examples train the tokenizer",
    )
)
def _scratch_needs_examples(spec: TrainingRunSpec) -> Iterator[Violation]:
    if spec.model.source.scratch is not None and spec.fine_tuning is None:
        yield Violation(
            "fineTuning", "is required with model.source.scratch: its examples train the tokenizer"
        )


_TOKENS = "(self.prompts.?maxPromptTokens.orValue(1024) + self.sampling.?maxTokens.orValue(1024))"


@rule(
    Cel(
        f"!has(self.model.maxModelLength) || self.model.maxModelLength >= {_TOKENS}",
        field="model.maxModelLength",
        message=f"must be at least prompts.maxPromptTokens + sampling.maxTokens = {{{_TOKENS}}}, not "
        "{self.model.maxModelLength}",
    )
)
def _lengths_fit(spec: TrainingRunSpec) -> Iterator[Violation]:
    longest, needed = spec.model.max_model_length, spec.prompts.max_prompt_tokens + spec.sampling.max_tokens
    if longest is not None and longest < needed:
        yield Violation(
            "model.maxModelLength",
            f"must be at least prompts.maxPromptTokens + sampling.maxTokens = {needed}, not {longest}",
        )


@rule(
    Cel(
        "self.collector.replicas == 1",
        field="collector.replicas",
        message="must be 1: the ledger has one writer, not {self.collector.replicas}",
    )
)
def _one_collector(spec: TrainingRunSpec) -> Iterator[Violation]:
    if spec.collector.replicas != 1:
        yield Violation(
            "collector.replicas", f"must be 1: the ledger has one writer, not {spec.collector.replicas}"
        )


# What a preset fills in is written out here: mlwright_api.presets imports this module.
_SCORE = "self.reward.?score.orValue(has(self.preset) ? 'Raw' : 'Normalized')"
_CEILING = (
    "(self.reward.?invalid.orValue(has(self.preset) ? -10.0 : -0.5)"
    f" + {len(MILESTONES)}.0 * self.reward.?milestone.orValue(has(self.preset) ? 0.1 : 0.05))"
)


@rule(
    Cel(
        f"{_SCORE} != 'Normalized' || {_CEILING} < {WORST_NORMALIZED}",
        field="reward",
        message=f"invalid + {len(MILESTONES)} x milestone must be below {WORST_NORMALIZED}, so that any valid script "
        "outranks any failure",
    )
)
def _failures_rank_last(spec: TrainingRunSpec) -> Iterator[Violation]:
    # What a preset is yet to fill in cannot be judged; `resolve` validates again.
    complete = {"score", "invalid", "milestone"} <= spec.reward.model_fields_set
    if spec.reward.score != "Normalized" or not (complete or spec.preset is None):
        return
    if broken := broken_order(spec.reward, WORST_NORMALIZED):
        yield Violation("reward", broken)


MUTABLE = frozenset(
    {
        "suspend",
        "drainSeconds",
        "ttlSecondsAfterFinished",
        "activeDeadlineSeconds",
        "weight",
        "algorithm.updates",
        "collection.maxInFlight",
        "collection.infrastructureRetries",
        "checkpoint",
        "storage.whenDeleted",
        "collector",
        *(
            f"{part}.{field}"
            for part in ("learner", "inference")
            for field in (
                "image",
                "resources",
                "nodeSelector",
                "tolerations",
                "affinity",
                "priorityClassName",
            )
        ),
        "inference.replicas",
    }
)
"""Paths below spec of what may change in a run that exists: how it is run, and how long.

Nothing that its numbers depend on: what was sampled and learned must follow from one spec (`mlwright replay`).
"""
SCHEDULE_CHANGES = Cel(
    "self.algorithm.updates == oldSelf.algorithm.updates || self.algorithm.scheduler.kind == 'Constant'",
    field="algorithm.updates",
    message="cannot change in a run that exists with scheduler.kind {self.algorithm.scheduler.kind}: learning rates "
    "that fall towards the last update would have been others from the start",
)


class TrainingRun(ApiModel):
    """A run: tasks, a model, and how the one learns from the other."""

    api_version: ApiVersion
    kind: Literal["TrainingRun"]
    metadata: ObjectMeta
    spec: TrainingRunSpec
    status: TrainingRunStatus | None = None
