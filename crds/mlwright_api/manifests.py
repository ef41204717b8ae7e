"""Manifests as files: read with errors that say where and what, written in one canonical form."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter

from mlwright_api.base import API_VERSION, ApiModel
from mlwright_api.consistency import check_task
from mlwright_api.documents import Document, DocumentError, FieldPath, read_documents
from mlwright_api.errors import ManifestError, Problem
from mlwright_api.explanations import dotted, explain, parse_path, unknown
from mlwright_api.mltask import MLTask
from mlwright_api.presets import PresetError, resolve
from mlwright_api.rollout import Rollout
from mlwright_api.trainingrun import TrainingRun
from mlwright_api.violations import Violation

Manifest = MLTask | TrainingRun | Rollout
KINDS: dict[str, type[MLTask] | type[TrainingRun] | type[Rollout]] = {
    "MLTask": MLTask,
    "TrainingRun": TrainingRun,
    "Rollout": Rollout,
}


def load_manifests(path: Path) -> list[Manifest]:
    """Every object of a YAML or JSON file, in order; at least one.

    Raises ManifestError with every problem of every document, also where the file cannot be read.
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ManifestError([Problem(str(path), (error.strerror or str(error)).lower())]) from None
    return parse_manifests(raw, source=str(path))


def parse_manifests(raw: bytes | str, *, source: str) -> list[Manifest]:
    """As load_manifests, from text; `source` is what problems name as the file."""
    try:
        documents = read_documents(raw.encode() if isinstance(raw, str) else raw)
    except DocumentError as error:
        raise ManifestError([Problem(source, str(error), error.document, error.line)]) from None
    if not documents:
        raise ManifestError([Problem(source, f"is empty: expected {', '.join(KINDS)} of {API_VERSION}")])
    results = [_parse(document, source) for document in documents]
    problems = [each for result in results if isinstance(result, list) for each in result]
    if problems:
        raise ManifestError(problems)
    return [result for result in results if not isinstance(result, list)]


def _parse(document: Document, source: str) -> Manifest | list[Problem]:
    def problem(path: FieldPath, message: str) -> Problem:
        return Problem(source, message, document.number, document.line(path), dotted(path))

    wrong = [problem(path, message) for path, message in _wrong_type(document.value)]
    if wrong:
        return wrong
    model = KINDS[document.value["kind"]]
    try:
        # By way of JSON, because strict JSON is what an API server accepts: no text for numbers or booleans.
        manifest = model.model_validate_json(
            json.dumps(_whole_numbers(document.value), allow_nan=False),
            strict=True,
            by_alias=True,
            by_name=False,
        )
    except ValidationError as error:
        return [problem(each.path, each.message) for each in explain(error, model, document.value)]
    broken = _broken_rules(manifest)
    return [problem(("spec", *parse_path(each.field)), each.message) for each in broken] or manifest


def _broken_rules(manifest: Manifest) -> Iterable[Violation]:
    """Rules that a schema cannot hold: on the catalogue of metrics, and on the spec once presets are filled in."""
    if isinstance(manifest, MLTask):
        return check_task(manifest.spec)
    if isinstance(manifest, TrainingRun):
        try:
            resolve(manifest.spec)
        except PresetError as error:
            return error.violations
    return []


def _wrong_type(value: Any) -> Iterator[tuple[FieldPath, str]]:
    """What is wrong with apiVersion and kind, which decide what everything else means."""
    if not isinstance(value, dict):
        yield (), "must be a mapping with apiVersion, kind, metadata and spec"
        return
    version, kind = value.get("apiVersion"), value.get("kind")
    if version is None:
        yield ("apiVersion",), f"is required: {API_VERSION}"
    elif version != API_VERSION:
        yield ("apiVersion",), f"must be {API_VERSION}, not {version!r}"
    if kind is None:
        yield ("kind",), f"is required: one of {', '.join(KINDS)}"
    elif not isinstance(kind, str) or kind not in KINDS:
        yield ("kind",), unknown(str(kind), list(KINDS), what="kind")


def wire(model: ApiModel, *, defaults: bool = True) -> dict[str, Any]:
    """A model as its JSON object: camelCase, absent fields left out, whole floats as integers."""
    dumped = model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=not defaults)
    whole: dict[str, Any] = _whole_numbers(dumped)
    return whole


FREE_FORM = frozenset({"config", "affinity"})
"""Fields whose values are somebody else's, and are kept as they are."""


def _whole_numbers(value: Any) -> Any:
    """1.0 as 1, which is the same JSON number (RFC 8785): so integers may be written so, and digests agree."""
    if isinstance(value, dict):
        return {key: item if key in FREE_FORM else _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value


def dump_manifest(manifest: Manifest) -> str:
    """Canonical YAML of an object, defaults included; `parse_manifests` gives back an equal object."""
    return dump_yaml(wire(manifest))


def dump_yaml(value: Any) -> str:
    """YAML of plain values in their order, which readers of YAML 1.1 and 1.2 understand alike."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = 1_000_000
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # annotated as None upstream
    yaml.Representer = _Representer
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()


class _Representer(SafeRepresenter):
    """Text in blocks where that reads well, and quoted where YAML 1.1 readers would see something else."""

    def represent_text(self, text: str) -> ScalarNode:
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))
        return node

    def represent_number(self, number: float) -> ScalarNode:
        # With a dot, because YAML 1.1 readers take `1e-06` for text.
        text = repr(number) if "." in repr(number) else repr(number).replace("e", ".0e")
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:float", text)
        return node


_Representer.add_representer(str, _Representer.represent_text)
_Representer.add_representer(float, _Representer.represent_number)
_YAML_1_1_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", ""})


def _style(text: str) -> str | None:
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    if len(lines) > 1:
        block = plain and lines[-1] == "" and lines[-2] != "" and lines[0] and not lines[0].startswith(" ")
        return "|" if block else '"'
    return '"' if not plain or text.lower() in _YAML_1_1_WORDS or text[:1].isdigit() else None
