"""How a rule between several fields says what is wrong, so that every violation reaches the user at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pydantic.alias_generators import to_snake

from mlwright_api.base import ApiModel

Spec = TypeVar("Spec")


@dataclass(frozen=True)
class Violation:
    """A broken rule: the field's path (camelCase, from the object that has the rule) and what is allowed."""

    field: str
    message: str


Rule = Callable[[Spec], Iterable[Violation]]


class RuleViolations(ValueError):
    """What a validator raises; pydantic keeps it, and the loader turns it into one problem a violation."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(
            "; ".join(": ".join(filter(None, (each.field, each.message))) for each in self.violations)
        )


def enforce(spec: Spec, rules: Iterable[Rule[Spec]]) -> Spec:
    """Return `spec` if every rule holds; raise RuleViolations with all that do not."""
    broken = list(_broken(spec, rules))
    if broken:
        raise RuleViolations(broken)
    return spec


def _broken(spec: Spec, rules: Iterable[Rule[Spec]]) -> Iterator[Violation]:
    for rule in rules:
        yield from rule(spec)


def exactly_one(spec: ApiModel, *names: str) -> Iterator[Violation]:
    """The rule of a union written as optional fields (camelCase): one of them, and only one."""
    given = [name for name in names if getattr(spec, to_snake(name)) is not None]
    if len(given) != 1:
        found = f"not {' and '.join(given)}" if given else "and none is given"
        yield Violation("", f"exactly one of {', '.join(names)} is required, {found}")


def first_duplicate(names: Iterable[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
