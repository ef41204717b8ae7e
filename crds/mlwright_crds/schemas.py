"""A model's JSON schema as a structural OpenAPI schema, which is what a CRD may hold.

Pydantic writes references, unions with null and keys by pattern; an API server wants every field in its place, once.
What cannot be said so is an error here, not a field without validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from mlwright_api.base import ApiModel
from mlwright_api.presets import DESIGN_DEFAULTS, PRESET_COVERED, PRESETS
from pydantic.alias_generators import to_camel

from mlwright_crds.validations import validation

Schema = dict[str, Any]

COVERED: Mapping[str, str] = {
    ".".join(["spec", *map(to_camel, path.split("."))]): path for path in PRESET_COVERED
}
"""Fields that a preset may fill in, by path in camelCase: the API server must not do so before."""
_KEPT = (
    "enum",
    "pattern",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
)
_FORMATS = {"integer": "int64", "number": "double"}


class NotStructural(Exception):
    """A field that a CRD cannot describe."""


@dataclass(frozen=True)
class Source:
    """What schemas refer to by name."""

    definitions: Mapping[str, Schema]
    models: Mapping[str, type[ApiModel]]


def structural(model: type[ApiModel], *, path: str) -> Schema:
    """The schema of `model` as found at `path` (`spec` or `status`) of an object.

    A status gets no defaults: what is not known yet is absent. Errors: NotStructural.
    """
    schema = model.model_json_schema(by_alias=True)
    models = {each.__name__: each for each in _models_in(model, set())}
    source = Source(schema.get("$defs", {}) | {model.__name__: schema}, models)
    return _field({"$ref": f"#/$defs/{model.__name__}"}, source, path)


def _models_in(annotation: Any, seen: set[Any]) -> Iterator[type[ApiModel]]:
    """The models that an annotation, or a model's fields, are made of."""
    if isinstance(annotation, type) and issubclass(annotation, ApiModel) and annotation not in seen:
        seen.add(annotation)
        yield annotation
        for field in annotation.model_fields.values():
            yield from _models_in(field.annotation, seen)
    for argument in get_args(annotation):
        yield from _models_in(argument, seen)


def _field(schema: Schema, source: Source, path: str) -> Schema:
    plain = _plain(schema, source, path)
    typed = _typed(plain, source, path)
    text = plain.get("description") or typed.get("items", {}).get("description", "")
    made = {"description": _description(text, path), **typed} if text else typed
    if rules := plain.get("x-kubernetes-validations"):
        made["x-kubernetes-validations"] = rules
    default = _default(plain.get("default"), made, path)
    return made if default is None else {**made, "default": default}


def _plain(schema: Schema, source: Source, path: str) -> Schema:
    """Without references, and without null: in the API a field that is null is absent."""
    options: list[Schema] = schema.get("anyOf") or schema.get("allOf") or []
    inner = [each for each in options if each.get("type") != "null"]
    if len(inner) > 1:
        raise NotStructural(f"{path}: is one of several types")
    around = {key: value for key, value in schema.items() if key not in ("anyOf", "allOf", "$ref")}
    if inner:
        return _plain({**inner[0], **around}, source, path)
    if "$ref" not in schema:
        return schema
    name = schema["$ref"].rsplit("/", 1)[1]
    rules = {"x-kubernetes-validations": _rules(name, source)}
    return {**_plain(source.definitions[name], source, path), **rules, **around}


def _rules(name: str, source: Source) -> list[Schema]:
    model = source.models.get(name)
    return [] if model is None else [validation(cel) for rule in model.rules() for cel in rule.cel]


def _typed(schema: Schema, source: Source, path: str) -> Schema:
    kind = schema.get("type")
    if schema.get("format") == "quantity":
        kept = {key: schema[key] for key in ("pattern", "maxLength")}
        return {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            **kept,
            "x-kubernetes-int-or-string": True,
        }
    if "const" in schema:
        return {"type": "string", "enum": [schema["const"]]}
    if kind == "object":
        return _object(schema, source, path)
    if kind == "array":
        return _array(schema, source, path)
    if kind not in ("string", "integer", "number", "boolean"):
        raise NotStructural(f"{path}: type {kind}")
    timed = {"format": "date-time"} if schema.get("format") == "date-time" else {}
    counted = {"format": _FORMATS[kind]} if kind in _FORMATS else {}
    return {"type": kind, **timed, **counted, **_kept(schema), **_interval(schema)}


def _kept(schema: Schema) -> Schema:
    return {key: schema[key] for key in _KEPT if key in schema}


def _interval(schema: Schema) -> Schema:
    """OpenAPI 3.0 has flags where JSON Schema has numbers."""
    found: Schema = {}
    for bound in ("minimum", "maximum"):
        exclusive = f"exclusive{bound.capitalize()}"
        if exclusive in schema:
            found |= {bound: schema[exclusive], exclusive: True}
        elif bound in schema:
            found[bound] = schema[bound]
    return found


def _array(schema: Schema, source: Source, path: str) -> Schema:
    extensions = {key: value for key, value in schema.items() if key.startswith("x-kubernetes-list-")}
    merged = extensions or {"x-kubernetes-list-type": "atomic"}
    items = _field(schema["items"], source, f"{path}[]")
    return {"type": "array", **_kept(schema), "items": items, **merged}


def _object(schema: Schema, source: Source, path: str) -> Schema:
    properties, values = _properties(schema, source, path), schema.get("additionalProperties", False)
    made: Schema = {"type": "object", **_kept(schema)}
    if schema.get("required"):
        made["required"] = schema["required"]
    if properties:
        made["properties"] = {
            name: _field(each, source, f"{path}.{name}") for name, each in properties.items()
        }
    elif isinstance(values, dict):
        made["additionalProperties"] = _field(values, source, f"{path}{{}}")
    if values is True:
        made["x-kubernetes-preserve-unknown-fields"] = True
    return made


def _properties(schema: Schema, source: Source, path: str) -> Schema:
    """The named fields; a mapping whose keys are an enumeration has those."""
    keys = _plain(schema.get("propertyNames", {}), source, path).get("enum", ())
    described = {"description": schema.get("description", "")}
    return schema.get("properties") or {key: {**schema["additionalProperties"], **described} for key in keys}


def _default(default: Any, made: Schema, path: str) -> Any:
    """None where there is none, and where somebody else fills it in."""
    if path in COVERED or path.startswith("status"):
        return None
    if isinstance(default, dict):
        return _defaults(made) if "properties" in made and "required" not in made else None
    return None if default == [] else default


def _defaults(block: Schema) -> Schema:
    """Those of a block's fields: written out, because rules are tried on a default before it is filled up."""
    return {name: each["default"] for name, each in block["properties"].items() if "default" in each}


def _description(text: str, path: str) -> str:
    text = " ".join(text.split())
    return f"{text} {_filled_in(COVERED[path])}" if path in COVERED else text


def _filled_in(name: str) -> str:
    """What becomes of a field that is left out and that a preset may fill in."""
    values = {"left out": DESIGN_DEFAULTS[name]}
    values |= {preset: each[name] for preset, each in PRESETS.items() if each[name] != DESIGN_DEFAULTS[name]}
    told = "; ".join(f"{who}: {'none' if value is None else value}" for who, value in values.items())
    return f"({told}.)"
