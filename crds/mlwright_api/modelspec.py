"""TrainingRun.spec.model: which model learns, and in what form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from mlwright_api.base import DISTINCT, ApiModel, Text
from mlwright_api.mltask import ClaimSource
from mlwright_api.patterns import HUB_NAME
from mlwright_api.violations import Cel, Rule, Violation, exactly_one, first_duplicate, rule

ALL_LINEAR = "all-linear"
"""Stands in `targetModules` for every linear layer but the output, as PEFT has it."""
_NAMES_ITS_TYPE: dict[str, Any] = {
    "properties": {
        "model_type": {
            "type": "string",
            "maxLength": 128,
            "description": "A transformers architecture such as qwen2.",
        }
    },
    "required": ["model_type"],
}


class ScratchModel(ApiModel):
    """A model with random weights, made by the learner; its tokenizer is trained on the fine-tuning examples."""

    config: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=128)], Any],
        Field(min_length=1, max_length=64, json_schema_extra=_NAMES_ITS_TYPE),
    ]
    """A Hugging Face configuration: model_type and its sizes (vocab_size and token ids are filled in)."""
    vocabulary_size: Annotated[int, Field(ge=300, le=200_000)] = 1024
    """Tokens of the trained tokenizer."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_model_type_given,)


# In a CRD the schema says it: json_schema_extra of `config`.
@rule()
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

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (exactly_one("hub", "claim", "image", "path", "scratch"),)


class Lora(ApiModel):
    """Low-rank adapters on a frozen model (PEFT's names)."""

    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    """Of the two factors."""
    alpha: Annotated[float, Field(gt=0, le=65_536)] = 32
    """Adapters are scaled by alpha / rank."""
    target_modules: Annotated[list[Text], Field(min_length=1, max_length=64, json_schema_extra=DISTINCT)] = [
        ALL_LINEAR
    ]
    """Names of modules, or all-linear alone: every linear layer but the output."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_all_or_some,)


@rule(
    Cel(
        f"!('{ALL_LINEAR}' in self.targetModules) || self.targetModules.size() == 1",
        field="targetModules",
        message=f"must be {ALL_LINEAR} alone, or names of modules",
    )
)
def _all_or_some(lora: Lora) -> Iterator[Violation]:
    if twice := first_duplicate(lora.target_modules):
        yield Violation("targetModules", f"must be distinct, but {twice!r} comes twice")
    elif ALL_LINEAR in lora.target_modules and len(lora.target_modules) > 1:
        yield Violation("targetModules", f"must be {ALL_LINEAR} alone, or names of modules")


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

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (_nothing_beside_scratch,)


@rule(
    Cel(
        "!has(self.source.scratch) || !has(self.tokenizer)",
        field="tokenizer",
        message="is refused with source.scratch, which trains a tokenizer of its own",
    ),
    Cel(
        "!has(self.source.scratch) || !has(self.lora)",
        field="lora",
        message="is refused with source.scratch: adapters on random weights learn nothing",
    ),
)
def _nothing_beside_scratch(model: ModelSpec) -> Iterator[Violation]:
    if model.source.scratch is None:
        return
    if model.tokenizer is not None:
        yield Violation("tokenizer", "is refused with source.scratch, which trains a tokenizer of its own")
    if model.lora is not None:
        yield Violation("lora", "is refused with source.scratch: adapters on random weights learn nothing")
