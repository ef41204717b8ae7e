"""Reading a Hugging Face folder: model, weights alone, end-of-text tokens, context length."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from transformers.utils.logging import disable_progress_bar

from mlwright_trainer.errors import InternalError, UserError

# How far a run is, is told through our own port; bars of transformers would break the live view and --json logs.
disable_progress_bar()

_PLAIN_TOKENIZERS = ("PreTrainedTokenizerFast", "TokenizersBackend")


def load_model(folder: Path) -> Any:
    """The causal language model in `folder`, in its saved dtype, in evaluation mode. Never asks the network."""
    if not (folder / "config.json").is_file():
        raise UserError(f"{folder} is not a Hugging Face folder: it has no config.json")
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype="auto", local_files_only=True)
    except (OSError, ValueError, SafetensorError) as error:
        raise UserError(f"{folder} does not hold a causal language model: {first_line(error)}") from error
    return model.eval().requires_grad_(False)


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in `folder`. Never asks the network."""
    try:
        return _tokenizer_class(folder).from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise UserError(f"{folder} does not hold a tokenizer: {first_line(error)}") from error


def _tokenizer_class(folder: Path) -> Any:
    """AutoTokenizer, or the plain class where the folder says that its tokenizer.json is the whole truth.

    For some kinds of model (qwen2 among them) AutoTokenizer overrules that and puts another pre-tokenizer in
    place of the saved one, so that the same text becomes other tokens than it was trained with.
    """
    try:
        settings = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return AutoTokenizer
    plain = settings.get("tokenizer_class") in _PLAIN_TOKENIZERS and "auto_map" not in settings
    return PreTrainedTokenizerFast if plain else AutoTokenizer


def end_tokens(folder: Path, model: Any) -> frozenset[int]:
    """Ids that end a text: those of the generation config and the tokenizer's own (where there is one)."""
    ends = _ids(getattr(model.generation_config, "eos_token_id", None)) or _ids(model.config.eos_token_id)
    if any((folder / name).exists() for name in ("tokenizer.json", "tokenizer_config.json")):
        ends |= _ids(load_tokenizer(folder).eos_token_id)
    if not ends:
        raise UserError(
            f"{folder}: neither generation_config.json nor the tokenizer names an end-of-text token"
        )
    return frozenset(ends)


def context_length(model: Any) -> int | None:
    """How many tokens prompt and answer may have together, where the model says so."""
    length = getattr(model.config, "max_position_embeddings", None)
    return length if isinstance(length, int) and length > 0 else None


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the folder's safetensors files by name."""
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise InternalError(f"{folder} holds no safetensors file")
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            tensors.update(load_file(file))
        except (SafetensorError, OSError) as error:
            raise InternalError(f"{file} cannot be read: {first_line(error)}") from error
    return tensors


def swap_weights(model: Any, folder: Path) -> None:
    """Copy the folder's weights into `model`, which keeps its device and dtype.

    Raises InternalError, with the model untouched, when names or shapes are not the model's.
    """
    own: dict[str, Tensor] = model.state_dict()
    new = read_weights(folder)
    if not new.keys() <= own.keys():
        # Some architectures store tensors under other names than they use them by; transformers knows which.
        new = load_model(folder).state_dict()
    problems = _unwritten(own, new) or [name for name in new if own[name].shape != new[name].shape]
    if problems:
        raise InternalError(f"{folder} is of another model: {', '.join(problems[:3])} differ")
    with torch.no_grad():
        for name, tensor in new.items():
            own[name].copy_(tensor)


def _unwritten(own: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> list[str]:
    """Names whose storage no tensor of `new` fills (of tied tensors one name is enough), and foreign names."""
    foreign = [name for name in new if name not in own]
    written = {own[name].data_ptr() for name in new if name in own}
    return foreign + [name for name, tensor in own.items() if tensor.data_ptr() not in written]


def _ids(value: int | Iterable[int] | None) -> set[int]:
    if value is None:
        return set()
    return {value} if isinstance(value, int) else set(value)


def first_line(error: BaseException) -> str:
    """What an error says first, or its name."""
    return next(iter(str(error).splitlines()), type(error).__name__)
