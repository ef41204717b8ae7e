"""A tiny model with random weights, small enough for milliseconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.inference.engine import GenerationRequest
from mlwright_trainer.learning.tokenizer import train_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

TEXTS = ["import pandas as pd\n", "model.fit(X, y)\n", "print(score)\n"] * 4


def save_tiny_model(folder: Path, *, seed: int, ends: list[int] | None = None, **settings: Any) -> Path:
    """A Hugging Face folder; `ends` are further end-of-text ids, so that random text ends soon."""
    tokenizer = train_tokenizer(TEXTS, 300)
    config = AutoConfig.for_model(
        "qwen2",
        **{
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 128,
            "tie_word_embeddings": True,
            "initializer_range": 0.4,
            "eos_token_id": tokenizer.eos_token_id,
            "pad_token_id": tokenizer.pad_token_id,
            **settings,
        },
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config)
    if ends:
        model.generation_config.eos_token_id = [tokenizer.eos_token_id, *ends]
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose texts usually run to the limit."""
    return save_tiny_model(tmp_path_factory.mktemp("tiny"), seed=0)


@pytest.fixture(scope="session")
def ending(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose texts end after a few tokens, at different lengths."""
    return save_tiny_model(tmp_path_factory.mktemp("ending"), seed=1, ends=list(range(3, 60)))


Requests = Callable[..., list[GenerationRequest]]


@pytest.fixture
def ragged() -> Requests:
    """Requests with prompts of 1 to 9 tokens, so that a batch is padded."""

    def make(count: int, *, temperature: float = 1.0, max_tokens: int = 24) -> list[GenerationRequest]:
        return [
            GenerationRequest(
                id=f"r{i}",
                prompt_tokens=tuple(range(5 + i, 6 + i + i % 9)),
                seed=1000 + i,
                temperature=temperature,
                max_tokens=max_tokens,
            )
            for i in range(count)
        ]

    return make
