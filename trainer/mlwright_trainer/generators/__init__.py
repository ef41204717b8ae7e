"""Shipped generators of fine-tuning examples, by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping

from mlwright_trainer.errors import UserError
from mlwright_trainer.generators import sklearn_tabular
from mlwright_trainer.generators.example import Example

Generator = Callable[[int, int], list[Example]]

GENERATORS: Mapping[str, Generator] = {"sklearn-tabular": sklearn_tabular.examples}

__all__ = ["GENERATORS", "Example", "Generator", "generate"]


def generate(name: str, *, seed: int, count: int) -> list[Example]:
    """`count` examples of the generator `name`, the same for the same seed. Raises UserError for a name unknown."""
    generator = GENERATORS.get(name)
    if generator is None:
        near = difflib.get_close_matches(name, GENERATORS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(GENERATORS)}"
        raise UserError(f"fineTuning.examples.generator: {name!r} is not a shipped generator; {hint}")
    return generator(seed, count)
