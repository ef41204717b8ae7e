"""Prompt templates: shipped texts or the run's own, with known placeholders only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib import resources

from mlwright_api.trainingrun import PromptTemplates

from mlwright_trainer.errors import UserError

TASK_PLACEHOLDERS = (
    "title",
    "description",
    "metric",
    "direction",
    "files",
    "data_heads",
    "submission_file",
    "submission_columns",
    "id_column",
    "target_columns",
    "submission_kind",
    "time_limit",
    "cpu",
    "memory",
)
"""Known in every template."""
PARENT_PLACEHOLDERS = ("code", "output", "score")
"""Known in the improve template besides."""

_PLACEHOLDER = re.compile(r"\{\{([a-z_]+)\}\}|\{([a-z_]+)\}")


@dataclass(frozen=True)
class Templates:
    """The three texts of one run; an empty system text means no system message."""

    system: str
    draft: str
    improve: str


def templates_of(overrides: PromptTemplates) -> Templates:
    """The shipped templates with those of the run in their place; UserError for an unknown placeholder."""
    templates = Templates(
        system=_or_shipped(overrides.system, "system"),
        draft=_or_shipped(overrides.draft, "draft"),
        improve=_or_shipped(overrides.improve, "improve"),
    )
    _check("system", templates.system, TASK_PLACEHOLDERS)
    _check("draft", templates.draft, TASK_PLACEHOLDERS)
    _check("improve", templates.improve, TASK_PLACEHOLDERS + PARENT_PLACEHOLDERS)
    return templates


def filled(template: str, values: Mapping[str, str]) -> str:
    """`template` with every `{name}` of `values` replaced, in one pass: braces in a value stay what they are.

    `{{name}}` gives `{name}`; braces around anything but a lower-case word are left alone. KeyError for
    a name that `values` lacks (`templates_of` has refused those).
    """
    return _PLACEHOLDER.sub(lambda match: f"{{{match[1]}}}" if match[1] else values[match[2]], template)


def _or_shipped(override: str | None, name: str) -> str:
    return _shipped(name) if override is None else override


@cache
def _shipped(name: str) -> str:
    folder = resources.files("mlwright_trainer.collection") / "templates"
    return (folder / f"{name}.md").read_text(encoding="utf-8").strip()


def _check(field: str, template: str, known: Iterable[str]) -> None:
    known = sorted(known)
    for match in _PLACEHOLDER.finditer(template):
        name = match[2]
        if name and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f" (did you mean {{{near[0]}}}?)" if near else ""
            raise UserError(
                f"prompts.templates.{field}: unknown placeholder {{{name}}}{hint}; known are "
                f"{', '.join(known)}; write {{{{{name}}}}} for the word in braces"
            )
