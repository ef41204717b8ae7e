"""Supervised fine-tuning: the loss is of completions only, it falls, and it is the same for the same seed."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mlwright_api.trainingrun import FineTuning, ScratchModel
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.generators import Example
from mlwright_trainer.learning import fine_tuning
from mlwright_trainer.learning.fine_tuning import (
    IGNORED,
    Encoded,
    FineTuned,
    collate,
    completion_loss,
    encode_examples,
    fine_tune,
    sorted_batches,
)
from mlwright_trainer.learning.sources import LoadedModel, scratch_model
from mlwright_trainer.learning.tokenizer import train_tokenizer

pytestmark = pytest.mark.torch

EXAMPLES = [
    Example("# a", "import pandas as pd\nmodel.fit(X, y)\n"),
    Example("# b", "print(score)\n"),
] * 32
CONFIG = {
    "model_type": "qwen2",
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
}


def _model(seed: int = 0) -> LoadedModel:
    texts = [text for example in EXAMPLES for text in (example.prompt, example.completion)]
    return scratch_model(ScratchModel(config=CONFIG, vocabulary_size=300), texts, seed)


def _spec(**fields: Any) -> FineTuning:
    return FineTuning.model_validate(
        {"examples": {"path": "x"}, "batchSize": 8, "learningRate": 0.02, "epochs": 4, **fields}
    )


def _tune(loaded: LoadedModel, spec: FineTuning, *, seed: int = 0) -> FineTuned:
    return fine_tune(
        loaded.model, loaded.tokenizer, EXAMPLES, spec, seed=seed, progress=lambda note, share: None
    )


def test_the_loss_falls_to_what_the_examples_leave_open() -> None:
    tuned = _tune(_model(), _spec(epochs=10))
    assert tuned.steps == 80
    assert tuned.first_loss > 3
    assert tuned.last_loss < 0.3


def test_a_tuned_model_ends_its_text_where_the_examples_end() -> None:
    loaded = _model()
    _tune(loaded, _spec())
    example = encode_examples(loaded.tokenizer, EXAMPLES[:1])[0]
    with torch.no_grad():
        logits = loaded.model(input_ids=torch.tensor([[*example.prompt, *example.completion[:-1]]])).logits
    assert int(logits[0, -1].argmax()) == loaded.tokenizer.eos_token_id


def test_the_same_seed_gives_the_same_weights() -> None:
    one, other = _model(), _model()
    _tune(one, _spec())
    _tune(other, _spec())
    for left, right in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert torch.equal(left, right)


def test_another_seed_gives_other_weights() -> None:
    one, other = _model(), _model()
    _tune(one, _spec(epochs=1))
    _tune(other, _spec(epochs=1), seed=1)
    assert any(
        not torch.equal(left, right)
        for left, right in zip(one.model.parameters(), other.model.parameters(), strict=True)
    )


def test_a_tuned_model_is_left_in_evaluation_mode() -> None:
    loaded = _model()
    _tune(loaded, _spec(epochs=1))
    assert not loaded.model.training


def test_examples_that_are_too_long_are_left_out_and_counted() -> None:
    loaded = _model()
    lengths = sorted({len(example) for example in encode_examples(loaded.tokenizer, EXAMPLES)})
    assert lengths[0] < 16 <= lengths[-1] or len(lengths) == 2
    loaded.model.config.max_position_embeddings = lengths[0]
    notes: list[str] = []
    tuned = fine_tune(
        loaded.model,
        loaded.tokenizer,
        EXAMPLES,
        _spec(),
        seed=0,
        progress=lambda note, share: notes.append(note),
    )
    assert (tuned.examples, tuned.left_out) == (32, 32)
    assert "32 examples too long and left out" in notes[-1]


def test_no_example_that_fits_is_the_users_mistake() -> None:
    loaded = _model()
    loaded.model.config.max_position_embeddings = 2
    with pytest.raises(UserError, match=r"fineTuning\.maxTokens: every one of 64 examples is longer than 2"):
        _tune(loaded, _spec())


def test_a_loss_that_is_not_finite_stops_the_stage() -> None:
    loaded = _model()
    with torch.no_grad():
        loaded.model.get_input_embeddings().weight.fill_(float("nan"))
    with pytest.raises(InternalError, match="loss of step 0 is nan"):
        _tune(loaded, _spec())


def test_progress_tells_step_loss_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fine_tuning, "REPORT_SECONDS", 0.0)
    loaded = _model()
    heard: list[tuple[str, float]] = []
    fine_tune(
        loaded.model,
        loaded.tokenizer,
        EXAMPLES,
        _spec(epochs=1),
        seed=0,
        progress=lambda note, share: heard.append((note, share)),
    )
    assert [share for _, share in heard] == pytest.approx([i / 8 for i in range(1, 9)])
    assert heard[-1][0].startswith("fine-tuning: step 8/8, loss ")
    assert heard[-1][0].endswith(" 0 s left")


def test_the_last_step_is_told_however_fast_the_steps_are() -> None:
    heard: list[float] = []
    loaded = _model()
    fine_tune(
        loaded.model,
        loaded.tokenizer,
        EXAMPLES,
        _spec(epochs=1),
        seed=0,
        progress=lambda note, share: heard.append(share),
    )
    assert heard[-1] == 1.0


# Parts


def test_prompts_go_through_the_chat_template_and_completions_end_with_the_end_token() -> None:
    tokenizer = train_tokenizer(["# a\n", "x = 1\n"], 300)
    encoded = encode_examples(tokenizer, [Example("# a", "x = 1\n")])[0]
    assert tokenizer.decode(encoded.prompt) == "<|begin|># a\n"
    assert tokenizer.decode(encoded.completion) == "x = 1\n<|end|>"


def test_only_completion_tokens_carry_labels() -> None:
    ids, mask, labels = collate([Encoded((1, 5), (6, 7, 2)), Encoded((1,), (8, 2))], padding=0)
    assert ids.tolist() == [[1, 5, 6, 7, 2], [1, 8, 2, 0, 0]]
    assert mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert labels.tolist() == [[IGNORED, IGNORED, 6, 7, 2], [IGNORED, 8, 2, IGNORED, IGNORED]]


def test_the_loss_is_the_mean_over_labelled_tokens() -> None:
    logits = torch.randn(2, 4, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([[IGNORED, IGNORED, 3, 1], [IGNORED, 2, IGNORED, IGNORED]])
    logprobs = torch.log_softmax(logits, dim=-1)
    expected = -(logprobs[0, 1, 3] + logprobs[0, 2, 1] + logprobs[1, 0, 2]) / 3
    assert float(completion_loss(logits, labels)) == pytest.approx(float(expected), rel=1e-6)


def test_the_prompt_changes_no_loss_and_no_gradient() -> None:
    logits = torch.zeros(1, 3, 4, requires_grad=True)
    completion_loss(logits, torch.tensor([[IGNORED, IGNORED, 2]])).backward()  # type: ignore[no-untyped-call]  # torch
    assert logits.grad is not None
    assert logits.grad[0, 0].abs().sum() == 0
    assert logits.grad[0, 1].abs().sum() > 0


@given(st.lists(st.integers(1, 30), min_size=1, max_size=60), st.integers(1, 9), st.integers(0, 99))
def test_batches_hold_every_example_once(lengths: list[int], size: int, seed: int) -> None:
    examples = [Encoded((1,), (i,) * length) for i, length in enumerate(lengths)]
    batches = sorted_batches(examples, size, seed)
    assert Counter(example for batch in batches for example in batch) == Counter(examples)
    assert len(batches) == math.ceil(len(examples) / size)


def test_batches_waste_little_on_padding() -> None:
    examples = [Encoded((1,), (i,) * (1 + i % 50)) for i in range(800)]
    waste = sum(
        max(map(len, batch)) * len(batch) - sum(map(len, batch)) for batch in sorted_batches(examples, 16, 0)
    )
    assert waste < 0.05 * sum(map(len, examples))


def test_the_order_of_batches_is_not_that_of_lengths() -> None:
    examples = [Encoded((1,), (i,) * (1 + i % 50)) for i in range(800)]
    firsts = [len(batch[0]) for batch in sorted_batches(examples, 16, 0)]
    assert firsts != sorted(firsts)
