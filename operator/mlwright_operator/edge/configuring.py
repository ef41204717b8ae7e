"""Reads the operator's configuration file; what is wrong with it is said by line and field, all at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mlwright_api.documents import Document, DocumentError, read_documents
from mlwright_api.explanations import dotted, explain
from pydantic import ValidationError

from mlwright_operator.config import OperatorConfig
from mlwright_operator.errors import ConfigError


def load_config(path: Path) -> OperatorConfig:
    """The configuration in a YAML or JSON file. Raises ConfigError with one line for each problem."""
    try:
        documents = read_documents(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except DocumentError as error:
        raise ConfigError(_line(path, error.line, "", str(error))) from error
    if len(documents) != 1 or not isinstance(documents[0].value, dict):
        raise ConfigError(
            f"{path}: must hold one mapping, with `profiles` (see docs/how-to/run-the-operator.md)"
        )
    return _parsed(path, documents[0])


def _parsed(path: Path, document: Document) -> OperatorConfig:
    value: dict[str, Any] = document.value
    try:
        return OperatorConfig.model_validate_json(
            json.dumps(value), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        problems = explain(error, OperatorConfig, value)
        lines = [_line(path, document.line(each.path), dotted(each.path), each.message) for each in problems]
        raise ConfigError("\n".join(lines)) from error


def _line(path: Path, line: int | None, field: str, message: str) -> str:
    place = f"{path}:{line}" if line is not None else str(path)
    return ": ".join(part for part in (place, field, message) if part)
