"""Loading a run's first model and tokenizer: scratch, a local folder, a GGUF file, or the hub."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from mlwright_api.trainingrun import ModelSpec, ScratchModel
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from mlwright_trainer.errors import UserError, is_out_of_memory
from mlwright_trainer.inference.model_folder import first_line, load_tokenizer
from mlwright_trainer.learning.tokenizer import train_tokenizer

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}

# Building a model from settings that do not fit together fails wherever they are first used.
_CONFIGURATION_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    KeyError,
    RuntimeError,
    StrictDataclassError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class LoadedModel:
    """A transformers model on the CPU and its tokenizer."""

    model: Any
    tokenizer: Any


def load_source(spec: ModelSpec, *, base: Path, texts: Sequence[str], seed: int) -> LoadedModel:
    """The model that `spec.source` names; relative paths start at `base`, `texts` train a scratch tokenizer.

    Raises UserError for a source that cannot be had here: what was tried and what to do.
    """
    source = spec.source
    if source.claim is not None or source.image is not None:
        kind = "claim" if source.claim is not None else "image"
        raise UserError(f"model.source.{kind}: only in a cluster; on this machine use path, hub or scratch")
    if source.scratch is not None:
        loaded = scratch_model(source.scratch, texts, seed)
    elif source.path is not None:
        loaded = _local(base / source.path)
    else:
        loaded = _hub(str(source.hub))
    tokenizer = loaded.tokenizer
    if spec.tokenizer is not None:
        tokenizer = _other_tokenizer(spec.tokenizer, base)
    return _fitted(loaded.model.to(DTYPES[spec.dtype]), tokenizer)


def scratch_model(spec: ScratchModel, texts: Sequence[str], seed: int) -> LoadedModel:
    if not texts:
        raise UserError("model.source.scratch: needs fineTuning.examples, which its tokenizer is trained on")
    tokenizer = train_tokenizer(texts, spec.vocabulary_size)
    settings = dict(spec.config)
    model_type = str(settings.pop("model_type"))
    settings |= {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    try:
        config = AutoConfig.for_model(model_type, **settings)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            model = AutoModelForCausalLM.from_config(config)
    except _CONFIGURATION_ERRORS as error:
        if is_out_of_memory(error):
            raise
        raise UserError(f"model.source.scratch.config: {' '.join(str(error).split())}") from error
    return LoadedModel(model, tokenizer)


def _local(path: Path) -> LoadedModel:
    if not path.exists():
        raise UserError(f"model.source.path: {path} does not exist")
    if path.is_dir():
        where = f"model.source.path: {path}"
        return LoadedModel(_model(str(path), where, local_files_only=True), load_tokenizer(path))
    if path.suffix != ".gguf":
        raise UserError(f"model.source.path: {path} is neither a Hugging Face folder nor a .gguf file")
    return _gguf(path)


def _gguf(path: Path) -> LoadedModel:
    where, options = f"model.source.path: {path}", {"local_files_only": True, "gguf_file": path.name}
    try:
        # transformers draws a bar of its own here, which no setting of it turns off.
        with redirect_stderr(StringIO()):
            model = _model(str(path.parent), where, **options)
        return LoadedModel(_dequantized(model), _tokenizer(str(path.parent), where, **options))
    except ImportError as error:
        raise UserError(
            f"{where}: a .gguf file needs the package gguf: pip install 'mlwright[train]'"
        ) from error


def _hub(name: str) -> LoadedModel:
    where = (
        f"model.source.hub: {name!r} is neither in the Hugging Face cache nor could it be fetched (to work "
        "offline, download it elsewhere and give its folder as model.source.path)"
    )
    return LoadedModel(_model(name, where), _tokenizer(name, where))


def _model(name: str, where: str, **options: Any) -> Any:
    with _failing_as_user_error(where):
        return AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32, **options)


def _tokenizer(name: str, where: str, **options: Any) -> Any:
    with _failing_as_user_error(where):
        return AutoTokenizer.from_pretrained(name, **options)


@contextmanager
def _failing_as_user_error(where: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, struct.error, SafetensorError) as error:
        raise UserError(f"{where}: {first_line(error)}") from error


def _dequantized(model: Any) -> Any:
    """The same weights in a model that forgets it was quantized, so that it saves as an ordinary folder."""
    config = type(model.config)(
        **{key: value for key, value in model.config.to_dict().items() if key != "quantization_config"}
    )
    fresh = type(model)(config)
    fresh.load_state_dict(model.state_dict())
    fresh.generation_config = model.generation_config
    return fresh


def _other_tokenizer(name: str, base: Path) -> Any:
    if (base / name).is_dir():
        return load_tokenizer(base / name)
    return _tokenizer(name, f"model.tokenizer: {name!r} is no folder here and could not be fetched")


def _fitted(model: Any, tokenizer: Any) -> LoadedModel:
    """Model and tokenizer agreed on vocabulary, end of text and padding."""
    rows = model.get_input_embeddings().weight.shape[0]
    if len(tokenizer) > rows:
        raise UserError(f"model.tokenizer: has {len(tokenizer)} tokens, but the model knows {rows}")
    if tokenizer.eos_token_id is None:
        raise UserError("model.tokenizer: names no end-of-text token (eos_token)")
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    model.config.pad_token_id = model.generation_config.pad_token_id = tokenizer.pad_token_id
    model.generation_config.eos_token_id = _ends(model.generation_config.eos_token_id, tokenizer.eos_token_id)
    return LoadedModel(model, tokenizer)


def _ends(known: int | list[int] | None, own: int) -> int | list[int]:
    if known is None:
        return own
    ends = sorted({own, *([known] if isinstance(known, int) else known)})
    return ends if len(ends) > 1 else own
