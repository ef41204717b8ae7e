"""TrainingRun.spec's blocks on where rows come from: prompts, sampling, collection, environment, reward, examples."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mlwright_api.base import ApiModel, Text
from mlwright_api.bounds import Coefficient, Count, Fraction, Rate, Tokens
from mlwright_api.mltask import ClaimSource
from mlwright_api.violations import Cel, Rule, RuleViolations, Violation, exactly_one, rule

Template = Annotated[str, Field(min_length=1, max_length=65_536)]


class PromptTemplates(ApiModel):
    """Replace the shipped templates; `{placeholders}` are listed in docs/reference/prompts.md."""

    system: Annotated[str, Field(max_length=65_536)] | None = None
    """The system message; empty: none."""
    draft: Template | None = None
    """Asks for a script from scratch."""
    improve: Template | None = None
    """Asks for an improvement of an earlier script."""


class Prompts(ApiModel):
    """What the model is asked."""

    improve_fraction: Fraction = 0.5
    """Share of prompts that ask to improve an earlier valid script (arXiv 2509.01684)."""
    parent_updates: Annotated[int, Field(ge=1, le=1_000_000)] = 4
    """Parents are drawn from the distinct valid scripts of this many last updates."""
    max_prompt_tokens: Tokens = 1024
    """Longer prompts are shortened: first the output tail, then the description."""
    templates: PromptTemplates = PromptTemplates()


class Sampling(ApiModel):
    """Temperature only: top-p, top-k and min-p would bias the probability ratio."""

    temperature: Annotated[float, Field(gt=0, le=10)] = 1.0
    """Applied in training too: log-probabilities are those after temperature."""
    max_tokens: Annotated[int, Field(ge=1, le=131_072)] = 1024
    """Of a response; one that gets there is Truncated."""

    @model_validator(mode="before")
    @classmethod
    def _no_truncated_support(cls, raw: Any) -> Any:
        refused = ("topP", "topK", "minP", "top_p", "top_k", "min_p")
        found = [name for name in refused if name in raw] if isinstance(raw, dict) else []
        if found:
            why = "is refused: it changes the support and so biases the probability ratio"
            raise RuleViolations(Violation(name, why) for name in found)
        return raw


class CollectionMode(StrEnum):
    """What closes a batch."""

    CONTINUOUS = "Continuous"
    SYNCHRONOUS = "Synchronous"
    WINDOW = "Window"


class Collection(ApiModel):
    """How rollouts become batches."""

    mode: CollectionMode = CollectionMode.CONTINUOUS
    """Continuous: the next batchSize finished. Synchronous: launched and awaited whole. Window: by the clock."""
    window_seconds: Annotated[float, Field(gt=0, le=604_800)] | None = None
    """Required by Window, and only there."""
    max_in_flight: Annotated[int, Field(ge=1, le=4096)] | None = None
    """Rollouts launched and not finished; default: the execution slots (one machine) or 64."""
    target_staleness: Annotated[int, Field(ge=0, le=1000)] = 1
    """Updates; a target and a metric, never a reason to drop a row."""
    infrastructure_retries: Annotated[int, Field(ge=0, le=10)] = 3
    """Further attempts of the same script after failures that are not its own."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_window_has_seconds,)


@rule(
    Cel(
        "self.mode != 'Window' || has(self.windowSeconds)",
        field="windowSeconds",
        message="is required with mode Window",
    ),
    Cel(
        "self.mode == 'Window' || !has(self.windowSeconds)",
        field="windowSeconds",
        message="is only for mode Window, not {self.mode}",
    ),
)
def _window_has_seconds(collection: Collection) -> Iterator[Violation]:
    window = collection.mode is CollectionMode.WINDOW
    if window and collection.window_seconds is None:
        yield Violation("windowSeconds", "is required with mode Window")
    if not window and collection.window_seconds is not None:
        yield Violation("windowSeconds", f"is only for mode Window, not {collection.mode}")


class EnvironmentSpec(ApiModel):
    """What an action of the model is."""

    kind: Literal["Script"] = "Script"
    """One whole script, run once."""
    instrumentation: Literal["Static", "None"] = "Static"
    """Static: milestones are marked in an instrumented syntax tree."""


class RewardSpec(ApiModel):
    """How an outcome becomes a number."""

    score: Literal["Normalized", "Raw"] = "Normalized"
    """Normalized: 0 at reference.baseline, 1 at reference.best. Raw: the metric, negated where less is better."""
    allow_unbounded: bool = False
    """Let Raw be used on a metric without bounds, where a failure may outrank a valid script."""
    invalid: Annotated[float, Field(ge=-1_000_000, le=1_000_000)] = -0.5
    """Of a failure without milestones."""
    milestone: Coefficient = 0.05
    """Of each milestone that a failure reached."""
    grade_partial: bool = False
    """Grade a valid submission that an Error or a Timeout left behind."""


class ExamplesSource(ApiModel):
    """Exactly one of these: JSON lines with `prompt` (optional) and `completion`, or a shipped generator."""

    claim: ClaimSource | None = None
    """A folder with a file of JSON lines."""
    image: Text | None = None
    """An OCI image that holds a file of JSON lines."""
    path: Text | None = None
    """A local file of JSON lines; `mlwright run` only."""
    generator: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """A shipped name."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (exactly_one("claim", "image", "path", "generator"),)


class FineTuning(ApiModel):
    """A supervised stage before reinforcement learning: loss on completions only."""

    examples: ExamplesSource
    count: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """Examples used (generated, or the first of a file); default: all, 20,000 of a generator."""
    epochs: Annotated[int, Field(ge=1, le=100)] = 1
    """Passes over the examples."""
    batch_size: Annotated[int, Field(ge=1, le=4096)] = 16
    """Examples an optimizer step."""
    learning_rate: Rate = 2e-5
    """Of AdamW, at its peak."""
    scheduler: Literal["Constant", "Linear", "Cosine"] = "Cosine"
    """Linear and Cosine fall towards 0 over the examples."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0
    """AdamW's."""
    max_gradient_norm: Annotated[float, Field(gt=0, le=1_000_000)] = 1
    """Gradients are clipped to this norm."""
    max_tokens: Annotated[int, Field(ge=16, le=1_048_576)] = 4096
    """Longer examples are left out, and counted."""


class Checkpoint(ApiModel):
    """When a run's state is saved, so that it can be resumed."""

    every_updates: Count = 1
    """1: after every update."""
    keep: Annotated[int, Field(ge=1, le=10_000)] = 2
    """Of the last checkpoints."""


class Evaluation(ApiModel):
    """Fresh samples that are not learned from."""

    every_updates: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """0: only before the first and after the last update."""
    samples: Annotated[int, Field(ge=0, le=65_536)] = 0
    """Fresh, awaited draft samples, kept for the sealed grading; 0: none."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_samples_to_evaluate,)


@rule(
    Cel(
        "self.everyUpdates == 0 || self.samples > 0",
        field="samples",
        message="must be at least 1 where everyUpdates is given",
    )
)
def _samples_to_evaluate(evaluation: Evaluation) -> Iterator[Violation]:
    if evaluation.every_updates > 0 and evaluation.samples == 0:
        yield Violation("samples", "must be at least 1 where everyUpdates is given")
