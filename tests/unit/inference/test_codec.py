"""Messages to tokens and back, through the model's own tokenizer."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.codec import TransformersCodec
from mlwright_trainer.inference.model_folder import load_tokenizer
from mlwright_trainer.learning.tokenizer import train_tokenizer

pytestmark = pytest.mark.torch


@pytest.fixture
def with_template(tmp_path: Path) -> Path:
    tokenizer = train_tokenizer(["hello\n"], 300)
    tokenizer.chat_template = (
        "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    tokenizer.save_pretrained(tmp_path)
    return tmp_path


def _text(folder: Path, tokens: tuple[int, ...]) -> str:
    text: str = load_tokenizer(folder).decode(tokens)
    return text


def test_messages_go_through_the_chat_template_ready_for_the_answer(with_template: Path) -> None:
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}]
    tokens = TransformersCodec(with_template).encode(messages)
    assert _text(with_template, tokens) == "<system>be brief<user>hi<assistant>"


def test_without_a_template_the_contents_follow_each_other(with_template: Path) -> None:
    tokenizer = load_tokenizer(with_template)
    tokenizer.chat_template = None
    (with_template / "chat_template.jinja").unlink()
    tokenizer.save_pretrained(with_template)
    tokens = TransformersCodec(with_template).encode(
        [{"role": "system", "content": "a\n"}, {"role": "user", "content": "b"}]
    )
    assert _text(with_template, tokens) == "a\nb"


def test_a_template_that_refuses_a_role_is_the_users_mistake(with_template: Path) -> None:
    tokenizer = load_tokenizer(with_template)
    tokenizer.chat_template = "{{ raise_exception('no system messages') }}"
    tokenizer.save_pretrained(with_template)
    with pytest.raises(UserError, match=r"refuses messages of the roles system: no system messages"):
        TransformersCodec(with_template).encode([{"role": "system", "content": "x"}])


def test_special_tokens_are_left_out_of_text(tiny: Path) -> None:
    tokenizer = load_tokenizer(tiny)
    body = tuple(tokenizer("print(1)\n").input_ids)
    tokens = (tokenizer.bos_token_id, *body, tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert TransformersCodec(tiny).decode(tokens) == "print(1)\n"


def test_no_tokens_are_no_text(tiny: Path) -> None:
    assert TransformersCodec(tiny).decode(()) == ""


@given(st.text(max_size=40).filter(lambda text: "<|" not in text))
def test_any_text_without_special_tokens_comes_back_as_it_was(tiny: Path, text: str) -> None:
    codec = TransformersCodec(tiny)
    tokens = tuple(load_tokenizer(tiny)(text, add_special_tokens=False).input_ids)
    assert codec.decode(tokens) == text


def test_spaces_before_punctuation_are_kept(tiny: Path) -> None:
    tokens = tuple(load_tokenizer(tiny)("a , b . c ! d 's").input_ids)
    assert TransformersCodec(tiny).decode(tokens) == "a , b . c ! d 's"


def test_bytes_that_are_no_text_do_not_raise(tiny: Path) -> None:
    assert "�" in TransformersCodec(tiny).decode(tuple(range(130, 140)))


def test_a_folder_without_a_tokenizer_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not hold a tokenizer"):
        TransformersCodec(tmp_path)
