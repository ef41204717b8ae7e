"""TrainingRun.spec.model: which model learns, and in what form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from mlwright_api.base import ApiModel, Text
from mlwright_api.mltask import ClaimSource
from mlwright_api.patterns import HUB_NAME
from mlwright_api.violations import Violation, enforce, exactly_one


class ScratchModel(ApiModel):
    """A model with random weights, made by the learner; its tokenizer is trained on the fine-tuning examples."""

    config: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=128)], Any], Field(min_length=1, max_length=64)
    ]
    """A Hugging Face configuration: model_type and its sizes (vocab_size and token ids are filled in)."""
    vocabulary_size: Annotated[int, Field(ge=300, le=200_000)] = 1024
    """Tokens of the trained tokenizer."""

    @model_validator(mode="after")
    def _names_its_type(self) -> Self:
        return enforce(self, [_model_type_given])


def _model_type_given(scratch: ScratchModel) -> Iterator[Violation]:
    if not isinstance(scratch.config.get("model_type"), str):
        yield Violation("config.model_type", "is required: a transformers architecture such as qwen2")


class ModelSource(ApiModel):
    """Exactly one of these."""

    hub: Annotated[str, Field(pattern=HUB_NAME, max_length=256)] | None = None
    """A name on the Hugging Face hub, `owner/name` or `owner/name@revision`; needs the network."""
    claim: ClaimSource | None = None
    """A Hugging Face folder on a PersistentVolumeClaim."""
    image: Text | None = None
    """An OCI image that holds a Hugging Face folder."""
    path: Text | None = None
    """A local Hugging Face folder (or GGUF file); `mlwright run` only."""
    scratch: ScratchModel | None = None
    """Random weights; needs fineTuning."""

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        names = ("hub", "claim", "image", "path", "scratch")
        return enforce(self, [lambda source: exactly_one(source, *names)])


class Lora(ApiModel):
    """Low-rank adapters on a frozen model (PEFT's names)."""

    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    """Of the two factors."""
    alpha: Annotated[float, Field(gt=0, le=65_536)] = 32
    """Adapters are scaled by alpha / rank."""
    target_modules: Annotated[list[Text], Field(min_length=1, max_length=64)] | Literal["all-linear"] = (
        "all-linear"
    )
    """Names of modules, or all-linear: every linear layer but the output."""


class ModelSpec(ApiModel):
    """Which model learns, and in what form."""

    source: ModelSource
    tokenizer: Text | None = None
    """A tokenizer other than the source's own: a folder or a hub name."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of the weights, in training and in sampling."""
    max_model_length: Annotated[int, Field(ge=16, le=1_048_576)] | None = None
    """Prompt and response together, in tokens, of a VLLM server; default: as long as prompts and sampling need."""
    lora: Lora | None = None
    """Train adapters only; default: all weights."""

    @model_validator(mode="after")
    def _scratch_is_whole(self) -> Self:
        return enforce(self, [_nothing_beside_scratch])


def _nothing_beside_scratch(model: ModelSpec) -> Iterator[Violation]:
    if model.source.scratch is None:
        return
    if model.tokenizer is not None:
        yield Violation("tokenizer", "is refused with source.scratch, which trains a tokenizer of its own")
    if model.lora is not None:
        yield Violation("lora", "is refused with source.scratch: adapters on random weights learn nothing")
