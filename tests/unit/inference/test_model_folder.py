"""Reading a Hugging Face folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.model_folder import (
    context_length,
    end_tokens,
    load_model,
    load_tokenizer,
    read_weights,
    swap_weights,
)
from mlwright_trainer.learning.tokenizer import train_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

pytestmark = pytest.mark.torch


def test_a_tokenizer_loads_with_the_pre_tokenizer_that_it_was_saved_with(tiny: Path, tmp_path: Path) -> None:
    """AutoTokenizer gives a folder of a qwen2 model Qwen's pre-tokenizer, and with it other tokens."""
    line = "import pandas as pd\n"
    trained = train_tokenizer([line] * 50, 300)
    load_model(tiny).save_pretrained(tmp_path)
    trained.save_pretrained(tmp_path)
    assert load_tokenizer(tmp_path)(line).input_ids == trained(line).input_ids
    assert len(trained(line).input_ids) == 1


def test_end_tokens_are_those_of_the_generation_config_and_the_tokenizer(ending: Path) -> None:
    assert end_tokens(ending, load_model(ending)) == frozenset({2, *range(3, 60)})


def test_a_model_without_any_end_token_is_refused(tmp_path: Path) -> None:
    config = AutoConfig.for_model(
        "qwen2", vocab_size=16, hidden_size=8, intermediate_size=8, num_hidden_layers=1,
        num_attention_heads=1, num_key_value_heads=1, eos_token_id=None,
    )  # fmt: skip
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(UserError, match="end-of-text"):
        end_tokens(tmp_path, load_model(tmp_path))


def test_the_saved_dtype_is_kept(tiny: Path, tmp_path: Path) -> None:
    load_model(tiny).to(torch.bfloat16).save_pretrained(tmp_path)
    assert load_model(tmp_path).dtype == torch.bfloat16


def test_the_context_length_is_the_configs(tiny: Path) -> None:
    assert context_length(load_model(tiny)) == 128


def test_a_loaded_model_has_no_gradients(tiny: Path) -> None:
    model = load_model(tiny)
    assert not model.training
    assert not any(parameter.requires_grad for parameter in model.parameters())


def test_weights_in_several_files_are_read_together(tiny: Path, tmp_path: Path) -> None:
    load_model(tiny).save_pretrained(tmp_path, max_shard_size="20KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    whole, parts = read_weights(tiny), read_weights(tmp_path)
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_swapping_casts_to_the_dtype_of_the_model(tiny: Path, tmp_path: Path) -> None:
    load_model(tiny).to(torch.bfloat16).save_pretrained(tmp_path)
    model = load_model(tiny)
    before = model.model.embed_tokens.weight.clone()
    swap_weights(model, tmp_path)
    after = model.model.embed_tokens.weight
    assert after.dtype == torch.float32
    assert torch.equal(after, before.to(torch.bfloat16).float())


def test_tied_embeddings_stay_tied_after_a_swap(tiny: Path) -> None:
    model = load_model(tiny)
    swap_weights(model, tiny)
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()


def test_a_broken_config_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "no-such-kind"}))
    with pytest.raises(UserError, match="does not hold a causal language model"):
        load_model(tmp_path)
