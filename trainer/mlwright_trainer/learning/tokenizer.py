"""A tokenizer made from the fine-tuning examples, for models that start from nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

BEGIN, END, PADDING = "<|begin|>", "<|end|>", "<|padding|>"
# Contents pass through as they are; the answer starts on a line of its own.
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% if message['content'] %}"
    "{{ message['content'].rstrip('\\n') + '\\n' }}{% endif %}{% endfor %}"
)


def train_tokenizer(texts: Iterable[str], vocabulary_size: int) -> Any:
    """Byte-level BPE whose merges cross spaces but never a line's end; has bos, eos, pad and a chat template.

    Scripts repeat whole lines, so that lines become tokens: about 50 a script, where words as units need 300.
    Every text can be encoded and comes back as it was.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex("\n"), behavior="merged_with_previous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        special_tokens=[AddedToken(text, special=True) for text in (PADDING, BEGIN, END)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PADDING,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = CHAT_TEMPLATE
    return fast
