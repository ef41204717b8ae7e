"""Rules of the API as `x-kubernetes-validations`, and rules on what may change in an object that exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from mlwright_api.base import ApiModel
from mlwright_api.trainingrun import MUTABLE
from mlwright_api.violations import Cel

_HOLE = re.compile(r"\{([^{}]+)\}")


def validation(cel: Cel) -> dict[str, Any]:
    """One entry of `x-kubernetes-validations`."""
    made = {"rule": cel.expression}
    if _HOLE.search(cel.message):
        made["messageExpression"] = message_expression(cel.message)
    else:
        made["message"] = cel.message
    return made | ({"fieldPath": f".{cel.field}"} if cel.field else {})


def message_expression(template: str) -> str:
    """CEL that fills in a message: `at most {self.k}` as `"at most %s".format([self.k])`.

    Not by `+` and `string()`: an API server takes their result for unbounded, and so for too costly.
    """
    text = _HOLE.sub("%s", template.replace("%", "%%"))
    return f"{json.dumps(text)}.format([{', '.join(_HOLE.findall(template))}])"


def immutable(why: str) -> Cel:
    """A spec that never changes."""
    return Cel("self == oldSelf", message=f"is immutable: {why}")


def changes(spec: type[ApiModel], mutable: Iterable[str] = MUTABLE) -> Iterator[Cel]:
    """What may change in a spec, given the paths (camelCase) of what may: of blocks, or of fields of blocks.

    One rule a block, so that the message names it.
    """
    allowed = set(mutable)
    for block, inner in _fields(spec).items():
        if block in allowed:
            continue
        free = sorted(path.removeprefix(f"{block}.") for path in allowed if path.startswith(f"{block}."))
        if not free:
            yield Cel(
                _same(block), field=block, message="cannot change in a run that exists: create another one"
            )
            continue
        kept = [f"{block}.{name}" for name in _fields(inner) if name not in free]
        message = f"only {', '.join(free)} may change in a run that exists: create another one"
        yield Cel(" && ".join(map(_same, kept)), field=block, message=message)


def _fields(model: Any) -> dict[str, Any]:
    """Types of a model's fields by their names in camelCase."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _same(path: str) -> str:
    """CEL: a field is what it was, also where it is absent."""
    new, old = f"self.{path}", f"oldSelf.{path}"
    return f"has({new}) == has({old}) && (!has({new}) || {new} == {old})"
