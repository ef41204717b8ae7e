"""Shipped generators of fine-tuning examples, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mlwright_trainer.errors import UserError
from mlwright_trainer.generators import sklearn_tabular
from mlwright_trainer.generators.example import Example


@dataclass(frozen=True)
class Generator:
    """A shipped generator: `examples(seed, count)`, and the metric of the tasks that its scripts solve."""

    examples: Callable[[int, int], list[Example]]
    metric: str


GENERATORS: Mapping[str, Generator] = {
    "sklearn-tabular": Generator(sklearn_tabular.examples, metric="roc_auc"),
}

__all__ = ["GENERATORS", "Example", "Generator", "generate", "generator_named"]


def generator_named(name: str) -> Generator:
    """A shipped generator. Raises UserError with the nearest name for one that is not known."""
    generator = GENERATORS.get(name)
    if generator is None:
        near = difflib.get_close_matches(name, GENERATORS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(GENERATORS)}"
        raise UserError(f"fineTuning.examples.generator: {name!r} is not a shipped generator; {hint}")
    return generator


def generate(name: str, *, seed: int, count: int) -> list[Example]:
    """`count` examples of the generator `name`, the same for the same seed. Raises UserError for a name unknown."""
    return generator_named(name).examples(seed, count)
