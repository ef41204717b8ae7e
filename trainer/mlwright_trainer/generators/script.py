"""A script in its parts, so that a variant or a bug changes one part and nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Script:
    """Lines of each part, in the order in which they are written."""

    imports: tuple[str, ...]
    load: tuple[str, ...]
    features: tuple[str, ...]
    target: tuple[str, ...]
    model: tuple[str, ...]
    validate: tuple[str, ...]
    fit: tuple[str, ...]
    predict: tuple[str, ...]
    write: tuple[str, ...]

    def text(self) -> str:
        """The source, imports set off by an empty line."""
        body = self.load + self.features + self.target + self.model + self.validate + self.fit
        body += self.predict + self.write
        return "\n".join((*sorted(self.imports, key=_import_order), "", *body)) + "\n"

    def swap(self, part: str, old: str, new: str) -> Script:
        """With `old` replaced by `new` in one part. Raises ValueError if it is not there."""
        lines: tuple[str, ...] = getattr(self, part)
        changed = tuple(line.replace(old, new) for line in lines)
        if changed == lines:
            raise ValueError(f"{old!r} is not in {part}: {lines}")
        return self.having(**{part: changed})

    def having(self, **parts: Any) -> Script:
        """With whole parts replaced."""
        return replace(self, **parts)


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line
