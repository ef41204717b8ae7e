"""TrainingRun: one resource that describes a whole run."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from mlwright_api.base import ApiModel, ApiVersion, Condition, DnsLabel, DnsName, ObjectMeta, Text
from mlwright_api.mltask import ClaimSource
from mlwright_api.quantities import Quantity

Positive = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1)]


class RunTask(ApiModel):
    name: DnsName
    weight: Annotated[float, Field(gt=0, le=1000)] = 1


class ScratchModel(ApiModel):
    """A model with random weights, made by the learner, with a tokenizer trained on the fine-tuning examples."""

    config: Annotated[dict[str, Any], Field(min_length=1, max_length=64)]
    """A Hugging Face configuration: model_type and its sizes (vocab_size and token ids are filled in)."""
    vocabulary_size: Annotated[int, Field(ge=300, le=200_000)] = 1024


class ModelSource(ApiModel):
    """Exactly one of these."""

    hub: Text | None = None
    claim: ClaimSource | None = None
    image: Text | None = None
    path: Text | None = None
    """A local Hugging Face folder (or GGUF file); `mlwright run` only."""
    scratch: ScratchModel | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (
            sum(value is not None for value in (self.hub, self.claim, self.image, self.path, self.scratch))
            != 1
        ):
            raise ValueError("exactly one of hub, claim, image, path, scratch is required")
        return self


class Lora(ApiModel):
    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    alpha: Positive = 32
    target_modules: Annotated[list[Text], Field(max_length=64)] | Literal["all-linear"] = "all-linear"


class ModelSpec(ApiModel):
    source: ModelSource
    tokenizer: Text | None = None
    """A tokenizer other than the source's own."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    max_model_length: Annotated[int, Field(ge=16, le=1_048_576)] | None = None
    lora: Lora | None = None


class KlPenalty(ApiModel):
    placement: Literal["Loss", "Reward"] = "Loss"
    estimator: Literal["K1", "K2", "K3"] = "K3"
    coefficient: NotNegative = 0.001
    target: Positive | None = None
    """Adapts the coefficient towards this KL per token."""


class WeightingMode(StrEnum):
    NONE = "None"
    DURATION_AWARE = "DurationAware"
    INVERSE_INCLUSION = "InverseInclusion"


class DurationWeighting(ApiModel):
    mode: WeightingMode = WeightingMode.NONE
    max_weight: Annotated[float, Field(ge=1)] = 10
    force: bool = False
    """Allow weights outside Window, where they are a bias."""


class Scheduler(ApiModel):
    kind: Literal["Constant", "Linear", "Cosine"] = "Constant"
    warmup_updates: Annotated[int, Field(ge=0)] = 0


class Algorithm(ApiModel):
    """How weights learn from a batch; defaults are those of the preset where there is one."""

    kind: Literal["PPO"] = "PPO"
    updates: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    batch_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Rows an update; default 128. Refused with Window, where the clock closes the batch."""
    minibatch_size: Count | None = None
    """Rows an optimizer step; default: the batch."""
    microbatch_tokens: Annotated[int, Field(ge=64)] = 16_384
    """Tokens, padding included, in one forward and backward pass; changes memory, not the update."""
    epochs: Annotated[int, Field(ge=1, le=64)] = 1
    learning_rate: Positive = 1e-6
    critic_learning_rate: Positive = 1e-5
    critic_warmup_updates: Annotated[int, Field(ge=0)] = 0
    detach_critic: bool = False
    """The critic is a value head on the policy's detached hidden states, instead of a network of its own."""
    scheduler: Scheduler = Scheduler()
    weight_decay: NotNegative = 0
    clip_range: Positive = 0.2
    clip_range_high: Positive | None = None
    """Upper clip, if wider than the lower."""
    dual_clip: Annotated[float, Field(gt=1)] | None = None
    value_clip_range: Positive | None = None
    gamma: Fraction = 1
    lambda_: Annotated[float, Field(ge=0, le=1, alias="lambda")] = 1
    kl: KlPenalty = KlPenalty()
    entropy_coefficient: NotNegative = 0
    loss_aggregation: Literal["TokenMean", "SequenceMean", "ConstantLength"] = "TokenMean"
    advantage_normalization: Literal["Running", "Batch", "None"] = "Running"
    max_gradient_norm: Positive = 1
    importance_cap: Annotated[float, Field(ge=1)] = 2
    duration_weighting: DurationWeighting = DurationWeighting()


class PromptTemplates(ApiModel):
    """Replace the shipped templates; `{placeholders}` are listed in docs/reference/prompts.md."""

    system: Annotated[str, Field(max_length=65_536)] | None = None
    draft: Annotated[str, Field(max_length=65_536)] | None = None
    improve: Annotated[str, Field(max_length=65_536)] | None = None


class Prompts(ApiModel):
    improve_fraction: Fraction = 0.5
    """Share of prompts that ask to improve an earlier valid script (arXiv 2509.01684)."""
    parent_updates: Count = 4
    """Parents are drawn from the distinct valid scripts of this many last updates."""
    max_prompt_tokens: Annotated[int, Field(ge=1)] = 1024
    templates: PromptTemplates = PromptTemplates()


class Sampling(ApiModel):
    """Temperature only: top-p, top-k and min-p would bias the probability ratio."""

    temperature: Annotated[float, Field(gt=0, le=10)] = 1.0
    max_tokens: Annotated[int, Field(ge=1, le=131_072)] = 1024

    @model_validator(mode="before")
    @classmethod
    def _no_truncated_support(cls, raw: Any) -> Any:
        if isinstance(raw, dict):
            for name in ("topP", "topK", "minP", "top_p", "top_k", "min_p"):
                if name in raw:
                    raise ValueError(
                        f"{name} is refused: it changes the support and biases the probability ratio"
                    )
        return raw


class CollectionMode(StrEnum):
    CONTINUOUS = "Continuous"
    SYNCHRONOUS = "Synchronous"
    WINDOW = "Window"


class Collection(ApiModel):
    mode: CollectionMode = CollectionMode.CONTINUOUS
    window_seconds: Positive | None = None
    max_in_flight: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Rollouts launched and not finished; default: the execution slots (one machine) or 64."""
    target_staleness: Annotated[int, Field(ge=0)] = 1
    """Updates; a target and a metric, never a reason to drop a row."""
    infrastructure_retries: Annotated[int, Field(ge=0, le=10)] = 3


class EnvironmentSpec(ApiModel):
    kind: Literal["Script"] = "Script"
    instrumentation: Literal["Static", "None"] = "Static"


class RewardSpec(ApiModel):
    """How an outcome becomes a number (design section 6)."""

    score: Literal["Normalized", "Raw"] = "Normalized"
    allow_unbounded: bool = False
    invalid: float = -0.5
    milestone: NotNegative = 0.05
    grade_partial: bool = False
    """Grade a valid submission that an Error or a Timeout left behind."""


class ExamplesSource(ApiModel):
    """Exactly one of these: JSON lines with `prompt` (optional) and `completion`, or a shipped generator."""

    claim: ClaimSource | None = None
    image: Text | None = None
    path: Text | None = None
    generator: Annotated[str, Field(max_length=63)] | None = None

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(value is not None for value in (self.claim, self.image, self.path, self.generator)) != 1:
            raise ValueError("exactly one of claim, image, path, generator is required")
        return self


class FineTuning(ApiModel):
    """A supervised stage before reinforcement learning: loss on completions only."""

    examples: ExamplesSource
    count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Examples used (generated, or the first of a file); default: all, 20,000 of a generator."""
    epochs: Annotated[int, Field(ge=1, le=100)] = 1
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 16
    learning_rate: Positive = 2e-5
    scheduler: Literal["Constant", "Linear", "Cosine"] = "Cosine"
    weight_decay: NotNegative = 0
    max_gradient_norm: Positive = 1
    max_tokens: Annotated[int, Field(ge=16)] = 4096
    """Longer examples are left out, and counted."""


class Workload(ApiModel):
    """Pods of one part of a run."""

    image: Text | None = None
    resources: Annotated[dict[Literal["requests", "limits"], dict[str, Quantity]], Field(max_length=2)] = {}
    replicas: Annotated[int, Field(ge=1, le=1024)] = 1
    node_selector: Annotated[dict[str, str], Field(max_length=64)] = {}
    tolerations: Annotated[list[dict[str, Any]], Field(max_length=64)] = []
    affinity: dict[str, Any] | None = None
    priority_class_name: DnsName | None = None


class Inference(Workload):
    kind: Literal["VLLM", "Transformers"] = "Transformers"


class ClaimTemplate(ApiModel):
    """A claim that exists (`claim`), or one to be made."""

    claim: ClaimSource | None = None
    storage_class_name: DnsName | None = None
    size: Quantity | None = None


class Storage(ApiModel):
    model: ClaimTemplate | None = None
    weights: ClaimTemplate | None = None
    checkpoints: ClaimTemplate | None = None
    ledger: ClaimTemplate | None = None
    when_deleted: Literal["Retain", "Delete"] = "Retain"


class Checkpoint(ApiModel):
    every_updates: Count = 1
    keep: Count = 2


class Evaluation(ApiModel):
    every_updates: Annotated[int, Field(ge=0)] = 0
    """0: only before the first and after the last update."""
    samples: Annotated[int, Field(ge=0, le=65_536)] = 0
    """Fresh, awaited draft samples, kept for the sealed grading; 0: none."""


class TrainingRunSpec(ApiModel):
    suspend: bool = False
    drain_seconds: NotNegative = 60
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)] | None = None
    active_deadline_seconds: Count | None = None
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    preset: Literal["RLforMLE"] | None = None
    weight: Annotated[float, Field(gt=0, le=1000)] = 1
    tasks: Annotated[list[RunTask], Field(min_length=1, max_length=256)]
    model: ModelSpec
    algorithm: Algorithm = Algorithm()
    prompts: Prompts = Prompts()
    sampling: Sampling = Sampling()
    collection: Collection = Collection()
    environment: EnvironmentSpec = EnvironmentSpec()
    reward: RewardSpec = RewardSpec()
    fine_tuning: FineTuning | None = None
    collector: Workload = Workload()
    learner: Workload = Workload()
    inference: Inference = Inference()
    sandbox: DnsLabel = "default"
    storage: Storage = Storage()
    checkpoint: Checkpoint = Checkpoint()
    evaluation: Evaluation = Evaluation()

    @field_validator("tasks")
    @classmethod
    def _task_names_are_distinct(cls, tasks: list[RunTask]) -> list[RunTask]:
        names = [task.name for task in tasks]
        if len(set(names)) != len(names):
            raise ValueError("names must be distinct (a list map keyed by name)")
        return tasks

    @model_validator(mode="after")
    def _modes_have_their_fields(self) -> Self:
        mode, algorithm = self.collection.mode, self.algorithm
        if mode is CollectionMode.WINDOW:
            if self.collection.window_seconds is None:
                raise ValueError("collection.windowSeconds is required with mode Window")
            if algorithm.batch_size is not None:
                raise ValueError(
                    "algorithm.batchSize is refused with mode Window: the clock closes the batch"
                )
        elif self.collection.window_seconds is not None:
            raise ValueError(f"collection.windowSeconds is only for mode Window, not {mode}")
        weighting = algorithm.duration_weighting
        if (
            weighting.mode is not WeightingMode.NONE
            and mode is not CollectionMode.WINDOW
            and not weighting.force
        ):
            raise ValueError(
                f"algorithm.durationWeighting.mode {weighting.mode} needs collection.mode Window: elsewhere nothing "
                "is cut off, so weights would be a bias (set force: true to insist)"
            )
        return self


class Progress(ApiModel):
    update: Annotated[int, Field(ge=0)]
    updates: Annotated[int, Field(ge=0)]
    policy_version: Annotated[int, Field(ge=0)]
    eta_seconds: float | None = None
    last_update_time: datetime | None = None


class RewardStatus(ApiModel):
    mean: float
    valid_fraction: Fraction


class Best(ApiModel):
    score: float
    """On Selection."""
    path: str
    digest: str


class RolloutCounts(ApiModel):
    pending: int = 0
    running: int = 0
    finished: int = 0
    infrastructure_failed: int = 0


class InferenceServer(ApiModel):
    pod: str
    address: str
    ready: bool


class TrainingRunStatus(ApiModel):
    conditions: list[Condition] = []
    rollouts: RolloutCounts | None = None
    inference: list[InferenceServer] = []
    progress: Progress | None = None
    reward: RewardStatus | None = None
    best: Best | None = None
    policy_versions: list[int] = []


class TrainingRun(ApiModel):
    """A run: tasks, a model, and how the one learns from the other."""

    api_version: ApiVersion
    kind: Literal["TrainingRun"]
    metadata: ObjectMeta
    spec: TrainingRunSpec
    status: TrainingRunStatus | None = None
