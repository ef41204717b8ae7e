"""Reads YAML 1.2 (and so JSON) into plain values, remembering on which line each field stands.

Strict where a manifest needs it: the core schema's scalars (`1e-6` is a number, `on` and `no` are text), no
duplicate keys, no tags, no merge keys, bounded depth and size: an alias bomb is an error and not a hang.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 64
MAX_WEIGHT = 400_000
"""Values of one document, long texts as one a 100 characters, aliases counted as often as they are used."""

FieldPath = tuple[str | int, ...]

_NULL = re.compile(r"(?:null|Null|NULL|~|)\Z")
_TRUE = re.compile(r"(?:true|True|TRUE)\Z")
_FALSE = re.compile(r"(?:false|False|FALSE)\Z")
_INTEGER = re.compile(r"[-+]?[0-9]{1,400}\Z")
_OCTAL = re.compile(r"0o[0-7]{1,400}\Z")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,400}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NOT_FINITE = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_STRING_TAG = "tag:yaml.org,2002:str"


class DocumentError(ValueError):
    """Text that is not a document; `line` counts from 1."""

    def __init__(self, message: str, *, line: int | None = None, document: int | None = None) -> None:
        super().__init__(message)
        self.line = line
        self.document = document


@dataclass
class Document:
    """One document: plain values, and the line (from 1) of each field by its path."""

    number: int
    value: Any
    lines: dict[FieldPath, int] = field(default_factory=dict)

    def line(self, path: FieldPath) -> int | None:
        """The line of a field, or of the nearest one around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None


def read_documents(raw: bytes) -> list[Document]:
    """Every document that is not empty. Raises DocumentError for the first thing that is not YAML."""
    if len(raw) > MAX_BYTES:
        raise DocumentError(f"larger than {MAX_BYTES // 2**20} MiB")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DocumentError("not UTF-8", line=raw.count(b"\n", 0, error.start) + 1) from None
    # A file that is JSON is read as such: YAML's tabs and surrogate escapes are not quite JSON's.
    documents = _read_json(text) if text.lstrip().startswith("{") else None
    return documents if documents is not None else list(_read_yaml(text))


def _read_json(text: str) -> list[Document] | None:
    try:
        value = json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_int=_scalar,
            parse_float=_scalar,
            parse_constant=_refuse_constant,
        )
    except json.JSONDecodeError:
        return None
    except RecursionError:
        raise DocumentError(f"nested deeper than {MAX_DEPTH}", document=1) from None
    _check_depth(value)
    return [Document(1, value)]


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        nested = [each.values() if isinstance(each, dict) else each for each in level if _holds(each)]
        level = [item for items in nested for item in items]
    if level:
        raise DocumentError(f"nested deeper than {MAX_DEPTH}", document=1)


def _holds(value: Any) -> bool:
    return isinstance(value, dict | list)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DocumentError(f"duplicate key {twice!r}", document=1)
    return mapping


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentError(f"{name} is not a finite number", document=1)


def _read_yaml(text: str) -> Iterator[Document]:
    number = 0
    try:
        events = iter(YAML(typ="safe", pure=True).parse(text))
        for event in events:
            if isinstance(event, DocumentStartEvent):
                number += 1
                document = _Builder(events, number).document()
                if document.value is not None:
                    yield document
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        raise DocumentError(message, line=mark.line + 1 if mark else None, document=number or 1) from None
    except YAMLError as error:
        raise DocumentError(str(error).splitlines()[0], document=number or 1) from None


class _Builder:
    """Builds the values of one document from parser events."""

    def __init__(self, events: Iterator[Event], number: int) -> None:
        self._events = events
        self._document = Document(number, None)
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._weight = 0

    def document(self) -> Document:
        self._document.value = self._value(next(self._events), ())
        return self._document

    def _value(self, event: Event, path: FieldPath) -> Any:
        self._document.lines.setdefault(path, event.start_mark.line + 1)
        if len(path) > MAX_DEPTH:
            self._refuse(event, f"nested deeper than {MAX_DEPTH}")
        if isinstance(event, AliasEvent):
            return self._alias(event)
        before = self._weight
        self._count(event, 1 + len(getattr(event, "value", "")) // 100)
        value = self._node(event, path)
        if isinstance(event, NodeEvent) and event.anchor:
            self._anchors[event.anchor] = (value, self._weight - before)
        return value

    def _node(self, event: Event, path: FieldPath) -> Any:
        tag = getattr(event, "tag", None)
        if tag is not None and str(tag) not in (_STRING_TAG, "!"):
            self._refuse(event, f"tag {str(tag)!r} is not allowed in a manifest")
        if isinstance(event, MappingStartEvent):
            return self._mapping(path)
        if isinstance(event, SequenceStartEvent):
            return self._sequence(path)
        assert isinstance(event, ScalarEvent)
        return event.value if event.style or tag else self._plain(event)

    def _mapping(self, path: FieldPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key = self._key(event)
            if key in mapping:
                self._refuse(event, f"duplicate key {key!r}")
            self._document.lines[(*path, key)] = event.start_mark.line + 1
            mapping[key] = self._value(next(self._events), (*path, key))
        return mapping

    def _key(self, event: Event) -> str:
        if not isinstance(event, ScalarEvent):
            self._refuse(event, "a key must be text")
        if event.value == "<<" and not event.style:
            self._refuse(event, "merge keys (<<) are not part of YAML 1.2: write the fields out")
        self._count(event, 1)
        return str(event.value)

    def _sequence(self, path: FieldPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            items.append(self._value(event, (*path, len(items))))
        return items

    def _alias(self, event: AliasEvent) -> Any:
        if event.anchor not in self._anchors:
            self._refuse(event, f"alias *{event.anchor} has no anchor before it")
        value, weight = self._anchors[event.anchor]
        self._count(event, weight)
        return value

    def _plain(self, event: ScalarEvent) -> Any:
        try:
            return _scalar(event.value)
        except DocumentError as error:
            self._refuse(event, str(error))

    def _count(self, event: Event, weight: int) -> None:
        self._weight += weight
        if self._weight > MAX_WEIGHT:
            self._refuse(event, f"more than {MAX_WEIGHT} values (aliases counted as often as they are used)")

    def _refuse(self, event: Event, message: str) -> NoReturn:
        raise DocumentError(message, line=event.start_mark.line + 1, document=self._document.number)


def _scalar(text: str) -> Any:
    """A plain scalar by the core schema of YAML 1.2."""
    if _NULL.match(text):
        return None
    if _TRUE.match(text) or _FALSE.match(text):
        return text.lower() == "true"
    if _INTEGER.match(text):
        return int(text)
    if _OCTAL.match(text) or _HEXADECIMAL.match(text):
        return int(text, 0)
    number = float(text) if _FLOAT.match(text) else None
    if _NOT_FINITE.match(text) or (number is not None and not math.isfinite(number)):
        raise DocumentError(f"{text[:40]} is not a finite number")
    return text if number is None else number
