"""Templates: known placeholders, everything else as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mlwright_api.trainingrun import PromptTemplates
from mlwright_trainer.collection.templating import (
    PARENT_PLACEHOLDERS,
    TASK_PLACEHOLDERS,
    filled,
    templates_of,
)
from mlwright_trainer.errors import UserError


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{title}!", "T!"),
        ("{title}{title}", "TT"),
        ("{{title}}", "{title}"),
        ("{}", "{}"),
        ("{'a': {1: 2}}", "{'a': {1: 2}}"),
        ("{Title} {x1} { title }", "{Title} {x1} { title }"),
        ("{{{title}}}", "{{title}}"),
        ("$title %s \\1", "$title %s \\1"),
    ],
)
def test_only_known_words_in_single_braces_are_replaced(template: str, expected: str) -> None:
    assert filled(template, {"title": "T"}) == expected


def test_braces_in_a_value_stay_what_they_are() -> None:
    assert filled("{code}|{title}", {"code": "{title} {{x}}", "title": "T"}) == "{title} {{x}}|T"


def test_a_runs_own_text_takes_the_place_of_the_shipped_one() -> None:
    templates = templates_of(PromptTemplates(draft="Solve {title}."))
    assert templates.draft == "Solve {title}."
    assert "machine-learning engineer" in templates.system
    assert "{code}" in templates.improve


@pytest.mark.parametrize("field", ["system", "draft", "improve"])
def test_an_unknown_placeholder_is_refused_with_its_field_and_the_known_ones(field: str) -> None:
    with pytest.raises(UserError) as caught:
        templates_of(PromptTemplates.model_validate({field: "Solve {titel} now"}))
    message = str(caught.value)
    assert message.startswith(f"prompts.templates.{field}: unknown placeholder {{titel}}")
    assert "did you mean {title}?" in message
    assert "submission_columns" in message
    assert "{{titel}}" in message


def test_a_parents_placeholders_are_for_the_improve_template_only() -> None:
    templates_of(PromptTemplates(improve="{code} {output} {score}"))
    with pytest.raises(UserError, match=r"draft: unknown placeholder \{code\}"):
        templates_of(PromptTemplates(draft="{code}"))


def test_the_reference_page_lists_the_placeholders_that_exist_and_no_others() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/prompts.md").read_text()
    table = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `{")]
    assert sorted(re.findall(r"\{([a-z_]+)\}", " ".join(table))) == sorted(
        TASK_PLACEHOLDERS + PARENT_PLACEHOLDERS
    )
