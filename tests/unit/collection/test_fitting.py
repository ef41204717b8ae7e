"""What gives way when a prompt is too long, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from mlwright_api.mltask import Direction
from mlwright_api.trainingrun import PromptTemplates
from mlwright_trainer.collection.fitting import STEPS, fit_draft, fit_improve
from mlwright_trainer.collection.parents import Parent
from mlwright_trainer.collection.prompts import DataFile, Message, TaskPrompt, draft_messages
from mlwright_trainer.collection.templating import templates_of
from mlwright_trainer.errors import UserError

TEMPLATES = templates_of(
    PromptTemplates(system="", draft="{description}{data_heads}", improve="{description}{data_heads}{code}{output}")
)  # fmt: skip
TASK = TaskPrompt(
    name="churn",
    title="Churn",
    description="D" * 100,
    metric="AUC",
    direction=Direction.MAXIMIZE,
    submission_file="submission.csv",
    id_column="id",
    target_columns=("y",),
    submission_kind="values",
    timeout_seconds=10,
    cpu="1",
    memory="1Gi",
    files=(DataFile("train.csv", 1, ("h" * 100, "r" * 100, "s" * 100, "t" * 100)),),
)
PARENT = Parent("r", "C" * 300, 0.8, "O" * 2000, "d", 0)


def encode(messages: Sequence[Message]) -> tuple[int, ...]:
    """A token a character."""
    return tuple(ord(character) for message in messages for character in message["content"])


def test_a_prompt_that_fits_is_left_alone() -> None:
    fitted = fit_draft(encode, TASK, TEMPLATES, max_prompt_tokens=10_000)
    assert fitted.detail == STEPS[0]
    assert fitted.messages == draft_messages(TASK, TEMPLATES)
    assert fitted.tokens == encode(fitted.messages)


@pytest.mark.parametrize("limit", [435, 600, 800, 1000, 1200, 1500, 2000, 3000])
def test_the_output_gives_way_before_the_data_and_code_and_description_never(limit: int) -> None:
    fitted = fit_improve(encode, TASK, PARENT, TEMPLATES, max_prompt_tokens=limit)
    assert fitted is not None
    text = fitted.messages[0]["content"]
    assert len(fitted.tokens) <= limit
    assert "D" * 100 in text
    assert "C" * 300 in text
    if "t" * 100 not in text:
        assert "O" * 10 not in text


def test_more_room_never_shows_less() -> None:
    shown = []
    for limit in range(435, 3000, 50):
        fitted = fit_improve(encode, TASK, PARENT, TEMPLATES, max_prompt_tokens=limit)
        assert fitted is not None
        shown.append(len(fitted.tokens))
    assert shown == sorted(shown)


def test_a_parent_whose_code_does_not_fit_gives_no_prompt() -> None:
    long = replace(PARENT, script="C" * 5000)
    assert fit_improve(encode, TASK, long, TEMPLATES, max_prompt_tokens=1000) is None


def test_a_draft_that_does_not_fit_is_the_users_to_mend_and_names_the_task() -> None:
    with pytest.raises(UserError, match=r"task 'churn': its prompt has 100 tokens.*maxPromptTokens \(99\)"):
        fit_draft(encode, TASK, TEMPLATES, max_prompt_tokens=99)
    assert len(fit_draft(encode, TASK, TEMPLATES, max_prompt_tokens=100).tokens) == 100


def test_nothing_is_encoded_twice_where_a_step_changes_nothing() -> None:
    calls = []

    def counting(messages: Sequence[Message]) -> tuple[int, ...]:
        calls.append(messages)
        return encode(messages)

    fit_draft(counting, TASK, TEMPLATES, max_prompt_tokens=450)
    assert len(calls) == 2  # four lines of data, then three; shorter output changes no draft
