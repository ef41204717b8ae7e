"""The API's errors, one hierarchy.

ApiError
└── ManifestError    a file that is no manifest of ours; one problem a line
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ApiError(Exception):
    """Base of everything that the API raises on purpose; the text is fit for a person."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a manifest, and where."""

    source: str
    """The file, as it was named."""
    message: str
    document: int | None = None
    """Counted from 1; None where the file as a whole is meant."""
    line: int | None = None
    """Counted from 1."""
    field: str = ""
    """Path in camelCase, such as `spec.tasks[0].name`."""

    def __str__(self) -> str:
        place = [self.source]
        if self.document is not None:
            place.append(f"document {self.document}")
        if self.line is not None:
            place.append(f"line {self.line}")
        return ": ".join(part for part in (", ".join(place), self.field, self.message) if part)


class ManifestError(ApiError):
    """Everything that is wrong with a file of manifests, a line each."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
