"""Where fine-tuning examples come from: a JSON-lines file or a shipped generator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from mlwright_api.presets import GENERATED_EXAMPLES
from mlwright_api.trainingrun import FineTuning

from mlwright_trainer.errors import UserError
from mlwright_trainer.generators import Example, generate


def load_examples(spec: FineTuning, *, base: Path, seed: int) -> list[Example]:
    """The examples that `spec` asks for; relative paths start at `base`.

    Raises UserError for a source that is not there, a line that is not an example, and no examples at all.
    """
    source = spec.examples
    if source.generator is not None:
        return generate(source.generator, seed=seed, count=spec.count or GENERATED_EXAMPLES)
    if source.path is None:
        raise UserError(
            "fineTuning.examples: claim and image can only be used in a cluster; use path or generator"
        )
    path = base / source.path
    try:
        with path.open(encoding="utf-8") as lines:
            examples = list(islice(_read(lines, path), spec.count))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"fineTuning.examples.path: {path} cannot be read: {error}") from error
    if not examples:
        raise UserError(f"fineTuning.examples.path: {path} has no examples")
    return examples


def _read(lines: Iterator[str], path: Path) -> Iterator[Example]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _parse(line, f"{path}, line {number}")


def _parse(line: str, where: str) -> Example:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise UserError(f"{where}: not JSON: {error}") from error
    fields = record if isinstance(record, dict) else {}
    prompt, completion = fields.get("prompt", ""), fields.get("completion")
    if not isinstance(prompt, str) or not isinstance(completion, str) or not completion:
        raise UserError(f"{where}: needs a text `completion` and, if there is one, a text `prompt`")
    return Example(prompt=prompt, completion=completion)
