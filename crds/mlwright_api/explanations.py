"""Turns pydantic's errors into sentences: the field's path as in YAML, what is allowed, the nearest name."""

from __future__ import annotations

import difflib
import json
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mlwright_api.patterns import IN_WORDS
from mlwright_api.violations import RuleViolations

FieldPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Explanation:
    """One problem: where (as in YAML) and a sentence."""

    path: FieldPath
    message: str


def explain(error: ValidationError, model: type[BaseModel], value: object) -> list[Explanation]:
    """One explanation a field, in the order of the schema; alternatives of a union joined by "or"."""
    messages: dict[FieldPath, list[str]] = {}
    for details in error.errors(include_url=False):
        for each in _explain_one(details, model, value):
            known = messages.setdefault(each.path, [])
            if each.message not in known:
                known.append(each.message)
    return [
        Explanation(path, " or ".join(found))
        for path, found in messages.items()
        if not _outer(path, messages)
    ]


def _outer(path: FieldPath, others: Iterable[FieldPath]) -> bool:
    """Whether a problem inside of `path` is known: then the other members of a union have nothing to add."""
    return any(len(other) > len(path) and other[: len(path)] == path for other in others)


def dotted(path: Sequence[str | int]) -> str:
    """`("spec", "tasks", 0, "name")` as `spec.tasks[0].name`; keys that are no names are quoted in brackets."""
    return "".join(map(_step_text, path)).removeprefix(".")


def _step_text(part: str | int) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() else f"[{json.dumps(part)}]"


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that `name` was probably meant to be, by letters and without regard to case."""
    folded = {each.lower().replace("_", ""): each for each in known}
    close = difflib.get_close_matches(name.lower().replace("_", ""), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def unknown(name: str, known: Sequence[str], *, what: str) -> str:
    """A sentence for a name that does not exist, with the nearest one that does."""
    guess = nearest(name, known)
    meant = f"did you mean {guess}? " if guess else ""
    return f"unknown {what} {name!r}: {meant}allowed are {', '.join(known) or 'none'}"


def _explain_one(details: ErrorDetails, model: type[BaseModel], value: object) -> Iterator[Explanation]:
    kind, location = details["type"], details["loc"]
    cause = details.get("ctx", {}).get("error")
    if kind == "extra_forbidden":
        fields = sorted(fields_at(model, location[:-1]))
        yield Explanation(location, unknown(str(location[-1]), fields, what="field"))
    elif kind == "missing":
        yield Explanation(location, "is required")
    elif isinstance(cause, RuleViolations):
        around = _as_written(location, value)
        for violation in cause.violations:
            yield Explanation((*around, *parse_path(violation.field)), violation.message)
    else:
        yield Explanation(_as_written(location, value), _sentence(details))


def parse_path(field: str) -> FieldPath:
    """`tasks[0].name` as `("tasks", 0, "name")`."""
    parts = field.replace("[", ".[").split(".") if field else []
    return tuple(int(part[1:-1]) if part.startswith("[") else part for part in parts if part)


def _as_written(location: FieldPath, value: Any) -> FieldPath:
    """The part of pydantic's location that exists in the document: without names of union members."""
    path: list[str | int] = []
    for part in location:
        if part in _keys(value):
            value = value[part]
            path.append(part)
    return tuple(path)


def _keys(value: object) -> Iterable[str | int]:
    if isinstance(value, dict):
        return value.keys()
    return range(len(value)) if isinstance(value, list) else ()


_TYPES = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
    "datetime_from_date_parsing": "a time such as 2026-01-31T12:00:00Z",
    "datetime_parsing": "a time such as 2026-01-31T12:00:00Z",
    "datetime_type": "a time such as 2026-01-31T12:00:00Z",
}
_BOUNDS = {
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:.15g}",
}
_LENGTHS = {
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "too_short": "at least {min_length} entries",
    "too_long": "at most {max_length} entries",
}


def _sentence(details: ErrorDetails) -> str:
    kind, context, given = details["type"], details.get("ctx", {}), details.get("input")
    if kind in _TYPES:
        return f"must be {_TYPES[kind]}, not {_name(given)}"
    if kind in _BOUNDS:
        return f"must be {_BOUNDS[kind].format(**context)}, not {given}"
    if kind in _LENGTHS:
        if not given:
            return "must not be empty"
        size = context.get("actual_length", len(given) if isinstance(given, str) else None)
        return f"must have {_LENGTHS[kind].format(**context)}, not {size}"
    if kind in ("literal_error", "enum"):
        return _choice(str(context["expected"]), given)
    if kind == "string_pattern_mismatch":
        pattern = str(context["pattern"])
        return f"must be {IN_WORDS.get(pattern, f'text that matches {pattern}')}, not {_name(given)}"
    return details["msg"].removeprefix("Value error, ")


def _choice(expected: str, given: object) -> str:
    options = [option.strip().strip("'") for option in expected.replace(" or ", ", ").split(", ")]
    guess = nearest(given, options) if isinstance(given, str) else None
    allowed = options[0] if len(options) == 1 else f"one of {', '.join(options)}"
    return f"must be {allowed}, not {_name(given)}" + (f" (did you mean {guess}?)" if guess else "")


def _name(given: object) -> str:
    if isinstance(given, str):
        return f"the text {given[:57] + '...' if len(given) > 60 else given!r}"
    if given is None:
        return "null"
    if isinstance(given, dict | list):
        return "a mapping" if isinstance(given, dict) else "a list"
    return str(given).lower() if isinstance(given, bool) else str(given)


def fields_at(model: type[BaseModel], location: FieldPath) -> list[str]:
    """The names (camelCase) of the fields that the object at `location` may have."""
    candidates: list[Any] = [model]
    for part in location:
        candidates = [after for before in candidates for after in _step(before, part)]
    return [str(name) for each in candidates for name in _fields(each)]


def _step(annotation: Any, part: str | int) -> list[Any]:
    """The types that one step into `annotation` can lead to; a union member's name leads nowhere new."""
    found = _fields(annotation)
    if found:
        return _members(found[part]) if part in found else []
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is list and isinstance(part, int):
        return _members(arguments[0])
    if origin in (dict, Mapping):
        return _members(arguments[1])
    return []


def _fields(annotation: Any) -> dict[str | int, Any]:
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return {}
    return {field.alias or name: field.annotation for name, field in annotation.model_fields.items()}


def _members(annotation: Any) -> list[Any]:
    """The plain types of an annotation: Optional, Union and Annotated taken apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return [member for argument in get_args(annotation) for member in _members(argument)]
    if origin is Literal or (isinstance(annotation, type) and issubclass(annotation, Enum)):
        return []
    return [annotation]
