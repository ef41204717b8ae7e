"""Chat messages to prompt tokens, response tokens to text, with the model's own tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import TemplateError

from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.model_folder import load_tokenizer


class TransformersCodec:
    """A tokenizer behind the Codec port.

    A tokenizer without a chat template (a base model's) gets the contents one after the other.
    """

    def __init__(self, folder: Path) -> None:
        self._tokenizer: Any = load_tokenizer(folder)

    def encode(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        """Prompt tokens of `[{role, content}, ...]`. Raises UserError where the chat template refuses them."""
        return encode_messages(self._tokenizer, messages)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of response tokens, special tokens left out."""
        text: str = self._tokenizer.decode(
            list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text


def encode_messages(tokenizer: Any, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
    """Tokens through the chat template, ready for the answer; without one, of the contents joined."""
    if not tokenizer.chat_template:
        return tuple(tokenizer("".join(message["content"] for message in messages)).input_ids)
    try:
        tokens = tokenizer.apply_chat_template(
            list(messages), add_generation_prompt=True, tokenize=True, return_dict=False
        )
    except TemplateError as error:
        roles = ", ".join(message["role"] for message in messages)
        raise UserError(
            f"the model's chat template refuses messages of the roles {roles}: {error}"
        ) from error
    return tuple(tokens)
