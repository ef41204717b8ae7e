"""Rules between fields: each says what is wrong in Python, and beside it the same in CEL, for an API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic.alias_generators import to_snake

Spec = TypeVar("Spec")


@dataclass(frozen=True)
class Violation:
    """A broken rule: the field's path (camelCase, from the object that has the rule) and what is allowed."""

    field: str
    message: str


@dataclass(frozen=True)
class Cel:
    """What a CRD says of a rule (`x-kubernetes-validations`): the same verdict, field and message as in Python."""

    expression: str
    """True where the rule holds; `self` is the object that has the rule."""
    message: str
    """What is allowed; a CEL expression in {braces} stands for its value, as text."""
    field: str = ""
    """Path below the object; empty: the object itself."""


@dataclass(frozen=True)
class Rule(Generic[Spec]):
    """What must hold between the fields of an object; all of its violations are told at once."""

    violations: Callable[[Spec], Iterable[Violation]]
    cel: tuple[Cel, ...]
    """Empty where the schema itself says it (a list of distinct values, say)."""


def rule(*cel: Cel) -> Callable[[Callable[[Spec], Iterable[Violation]]], Rule[Spec]]:
    """Make a rule of a function that yields violations; what changes in one must change in the other."""
    return lambda violations: Rule(violations, cel)


class RuleViolations(ValueError):
    """What a validator raises; pydantic keeps it, and the loader turns it into one problem a violation."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(violations)
        super().__init__(
            "; ".join(": ".join(filter(None, (each.field, each.message))) for each in self.violations)
        )


def enforce(spec: Spec, rules: Iterable[Rule[Spec]]) -> Spec:
    """Return `spec` if every rule holds; raise RuleViolations with all that do not."""
    broken = list(violations(spec, rules))
    if broken:
        raise RuleViolations(broken)
    return spec


def violations(spec: Spec, rules: Iterable[Rule[Spec]]) -> Iterator[Violation]:
    """What is wrong with `spec`, in the order of the rules."""
    for each in rules:
        yield from each.violations(spec)


def exactly_one(*names: str) -> Rule[Any]:
    """The rule of a union written as optional fields (camelCase): one of them, and only one."""
    required = f"exactly one of {', '.join(names)} is required"
    listed = ", ".join(f"has(self.{name}) ? '{name}' : ''" for name in names)
    found = f"[{listed}].filter(name, name != '')"

    @rule(
        Cel(f"{found}.size() > 0", message=f"{required}, and none is given"),
        Cel(f"{found}.size() <= 1", message=f"{required}, not {{{found}}}"),
    )
    def one(spec: Any) -> Iterator[Violation]:
        given = [name for name in names if getattr(spec, to_snake(name)) is not None]
        if len(given) != 1:
            instead = f"not {' and '.join(given)}" if given else "and none is given"
            yield Violation("", f"{required}, {instead}")

    return one


def first_duplicate(names: Iterable[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
