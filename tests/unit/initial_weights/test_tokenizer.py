"""The tokenizer of scratch models: merges cross spaces, never lines; any text comes back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_trainer.generators import generate
from mlwright_trainer.inference.codec import encode_messages
from mlwright_trainer.learning.tokenizer import BEGIN, END, PADDING, train_tokenizer

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [example.completion for example in generate("sklearn-tabular", seed=0, count=1500)]


@pytest.fixture(scope="module")
def tokenizer(texts: list[str]) -> Any:
    return train_tokenizer(texts, 1024)


def _pieces(tokenizer: Any) -> list[str]:
    return [tokenizer.decode([i]) for i in range(len(tokenizer))]


def test_merges_never_cross_lines(tokenizer: Any) -> None:
    for piece in _pieces(tokenizer):
        assert "\n" not in piece[:-1]


def test_merges_cross_spaces(tokenizer: Any) -> None:
    assert any(piece.count(" ") >= 3 for piece in _pieces(tokenizer))


def test_a_line_that_is_always_there_is_one_token(tokenizer: Any) -> None:
    assert len(tokenizer('train = pd.read_csv("data/train.csv")\n').input_ids) == 1


def test_a_script_has_fewer_than_60_tokens_on_average(tokenizer: Any, texts: list[str]) -> None:
    lengths = [len(ids) for ids in tokenizer(texts).input_ids]
    assert sum(lengths) / len(lengths) < 60


def test_every_example_comes_back_as_it_was(tokenizer: Any, texts: list[str]) -> None:
    for text in texts:
        assert tokenizer.decode(tokenizer(text).input_ids, skip_special_tokens=True) == text


@given(st.text(max_size=30).filter(lambda text: "<|" not in text))
def test_text_that_was_never_seen_comes_back_too(tokenizer: Any, text: str) -> None:
    assert tokenizer.decode(tokenizer(text).input_ids) == text


def test_the_vocabulary_has_the_asked_size_and_the_special_tokens(tokenizer: Any) -> None:
    assert len(tokenizer) == 1024
    assert (tokenizer.pad_token, tokenizer.bos_token, tokenizer.eos_token) == (PADDING, BEGIN, END)
    assert (tokenizer.pad_token_id, tokenizer.bos_token_id, tokenizer.eos_token_id) == (0, 1, 2)


def test_the_same_texts_give_the_same_tokenizer(texts: list[str], tokenizer: Any) -> None:
    assert train_tokenizer(texts, 1024).get_vocab() == tokenizer.get_vocab()


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([("user", "solve it")], f"{BEGIN}solve it\n"),
        ([("user", "solve it\n")], f"{BEGIN}solve it\n"),
        ([("system", "be brief"), ("user", "solve it")], f"{BEGIN}be brief\nsolve it\n"),
        ([("user", "")], BEGIN),
    ],
)
def test_the_chat_template_passes_contents_through_line_by_line(
    tokenizer: Any, messages: list[tuple[str, str]], expected: str
) -> None:
    tokens = encode_messages(tokenizer, [{"role": role, "content": content} for role, content in messages])
    assert tokenizer.decode(tokens) == expected
