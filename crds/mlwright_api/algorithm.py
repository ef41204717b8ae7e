"""TrainingRun.spec.algorithm: how weights learn from a batch."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from mlwright_api.base import ApiModel
from mlwright_api.bounds import Coefficient, Fraction, Rate, Updates
from mlwright_api.violations import Cel, Rule, Violation, rule


class KlPenalty(ApiModel):
    """A penalty for leaving the frozen reference policy (the initial weights)."""

    placement: Literal["Loss", "Reward"] = "Loss"
    """A term of the loss, or a per-token penalty in the reward."""
    estimator: Literal["K1", "K2", "K3"] = "K3"
    """Schulman's estimators; as a loss K3 has the gradient of the forward KL, K2 that of the reverse."""
    coefficient: Coefficient = 0.001
    """0: no reference policy is kept."""
    target: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Adapts the coefficient towards this KL per token."""


class WeightingMode(StrEnum):
    """How advantages are weighted by execution time."""

    NONE = "None"
    DURATION_AWARE = "DurationAware"
    INVERSE_INCLUSION = "InverseInclusion"


class DurationWeighting(ApiModel):
    """Weights against the bias of a window that closes by the clock."""

    mode: WeightingMode = WeightingMode.NONE
    """DurationAware: seconds / mean seconds of the task (arXiv 2509.01684). InverseInclusion: 1 / p(seconds)."""
    max_weight: Annotated[float, Field(ge=1, le=1000)] = 10
    """Weights are clipped here, after normalization."""
    force: bool = False
    """Allow weights outside Window, where they are a bias."""


class Scheduler(ApiModel):
    """Of both learning rates, over updates."""

    kind: Literal["Constant", "Linear", "Cosine"] = "Constant"
    """Linear and Cosine fall towards 0 over the updates."""
    warmup_updates: Updates = 0
    """Updates of linear increase from 0."""


class Algorithm(ApiModel):
    """How weights learn from a batch; defaults are those of the preset where there is one."""

    kind: Literal["PPO"] = "PPO"
    """With a critic and generalized advantage estimation."""
    updates: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Batches to learn from; the run ends after the last."""
    batch_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Rows an update; default 128. Refused with Window, where the clock closes the batch."""
    minibatch_size: Annotated[int, Field(ge=1, le=65_536)] | None = None
    """Rows an optimizer step; default: the batch."""
    microbatch_tokens: Annotated[int, Field(ge=64, le=16_777_216)] = 16_384
    """Tokens, padding included, in one forward and backward pass; changes memory, not the update."""
    epochs: Annotated[int, Field(ge=1, le=64)] = 1
    """Passes over each batch."""
    learning_rate: Rate = 1e-6
    """Of the policy (AdamW)."""
    critic_learning_rate: Rate = 1e-5
    """Of the critic (AdamW)."""
    critic_warmup_updates: Updates = 0
    """First updates in which only the critic learns."""
    detach_critic: bool = False
    """The critic is a value head on the policy's detached hidden states, instead of a network of its own."""
    scheduler: Scheduler = Scheduler()
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0
    """AdamW's, of policy and critic."""
    clip_range: Annotated[float, Field(gt=0, le=1)] = 0.2
    """Of the probability ratio to the policy at the start of the batch."""
    clip_range_high: Annotated[float, Field(gt=0, le=100)] | None = None
    """Upper clip, at least clipRange; default: clipRange."""
    dual_clip: Annotated[float, Field(gt=1, le=100)] | None = None
    """Bounds the ratio of negative advantages; default: none."""
    value_clip_range: Annotated[float, Field(gt=0, le=1000)] | None = None
    """Of the critic's change on a batch; default: none."""
    gamma: Fraction = 1
    """Discount per token."""
    lambda_: Annotated[float, Field(ge=0, le=1, alias="lambda")] = 1
    """Of generalized advantage estimation."""
    kl: KlPenalty = KlPenalty()
    entropy_coefficient: Coefficient = 0
    """Of the bonus for the policy's entropy."""
    loss_aggregation: Literal["TokenMean", "SequenceMean", "ConstantLength"] = "TokenMean"
    """Mean over all tokens; mean of each row's mean; sum over a constant length (sampling.maxTokens)."""
    advantage_normalization: Literal["Running", "Batch", "None"] = "Running"
    """Running: moments by task and prompt kind, decay 0.9 over batches, this one included."""
    max_gradient_norm: Annotated[float, Field(gt=0, le=1_000_000)] = 1
    """Gradients are clipped to this norm."""
    importance_cap: Annotated[float, Field(ge=1, le=1000)] = 2
    """Cap of the correction for rows that older policies sampled."""
    duration_weighting: DurationWeighting = DurationWeighting()

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return _minibatch_fits, _clips_in_order, _warmup_ends, _adaptive_kl_starts


@rule(
    Cel(
        "!has(self.batchSize) || !has(self.minibatchSize) || self.minibatchSize <= self.batchSize",
        field="minibatchSize",
        message="must be at most batchSize ({self.batchSize}), not {self.minibatchSize}",
    )
)
def _minibatch_fits(algorithm: Algorithm) -> Iterator[Violation]:
    batch, minibatch = algorithm.batch_size, algorithm.minibatch_size
    if batch is not None and minibatch is not None and minibatch > batch:
        yield Violation("minibatchSize", f"must be at most batchSize ({batch}), not {minibatch}")


@rule(
    Cel(
        "!has(self.clipRangeHigh) || self.clipRangeHigh >= self.?clipRange.orValue(0.2)",
        field="clipRangeHigh",
        message="must be at least clipRange ({self.?clipRange.orValue(0.2)}), not {self.clipRangeHigh}",
    )
)
def _clips_in_order(algorithm: Algorithm) -> Iterator[Violation]:
    low, high = algorithm.clip_range, algorithm.clip_range_high
    if high is not None and high < low:
        yield Violation("clipRangeHigh", f"must be at least clipRange ({low:g}), not {high:g}")


@rule(
    Cel(
        "self.scheduler.warmupUpdates < self.updates",
        field="scheduler.warmupUpdates",
        message="must be less than updates ({self.updates}), not {self.scheduler.warmupUpdates}",
    ),
    Cel(
        "self.criticWarmupUpdates < self.updates",
        field="criticWarmupUpdates",
        message="must be less than updates ({self.updates}), not {self.criticWarmupUpdates}",
    ),
)
def _warmup_ends(algorithm: Algorithm) -> Iterator[Violation]:
    for field, warmup in (
        ("scheduler.warmupUpdates", algorithm.scheduler.warmup_updates),
        ("criticWarmupUpdates", algorithm.critic_warmup_updates),
    ):
        if warmup >= algorithm.updates:
            yield Violation(field, f"must be less than updates ({algorithm.updates}), not {warmup}")


@rule(
    Cel(
        "!has(self.kl.target) || self.kl.?coefficient.orValue(0.001) > 0.0",
        field="kl.coefficient",
        message="must be greater than 0 where kl.target adapts it",
    )
)
def _adaptive_kl_starts(algorithm: Algorithm) -> Iterator[Violation]:
    if algorithm.kl.target is not None and algorithm.kl.coefficient == 0:
        yield Violation("kl.coefficient", "must be greater than 0 where kl.target adapts it")
