"""The generated CRDs as text and values: current, structural, bounded, described, and true to the models."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from mlwright_api.base import ApiModel
from mlwright_api.manifests import dump_yaml
from mlwright_api.mltask import Split
from mlwright_api.presets import DESIGN_DEFAULTS, PRESET_COVERED, PRESETS
from mlwright_api.quantities import PositiveQuantity, Quantity
from mlwright_api.runstatus import TrainingRunStatus
from mlwright_api.trainingrun import MUTABLE, TrainingRunSpec
from mlwright_api.violations import Cel, Rule, exactly_one
from mlwright_crds import __main__ as generator
from mlwright_crds import definitions, policies
from mlwright_crds.schemas import COVERED, NotStructural, structural
from mlwright_crds.validations import changes, immutable, message_expression, validation
from pydantic import Field
from pydantic.alias_generators import to_camel
from ruamel.yaml import YAML

CRDS = Path(__file__).parents[3] / "crds"
FILES = generator.files()
SCHEMAS = {each.kind.__name__: definitions.object_schema(each) for each in definitions.RESOURCES}
KUBECTL_ANNOTATION_BYTES = 256 * 1024


def nodes(schema: dict[str, Any], path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema within a schema, by the path of its field."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


NODES = [
    node
    for kind, schema in SCHEMAS.items()
    for part in ("spec", "status")
    for node in nodes(schema["properties"][part], f"{kind}.{part}")
]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_generated_file_is_current(path: Path) -> None:
    assert (CRDS / path).read_text() == generator.text(FILES[path]), "make crds"


def test_every_yaml_file_is_generated() -> None:
    assert {path.relative_to(CRDS) for path in CRDS.rglob("*.yaml")} == set(FILES)


def test_a_stale_file_is_found_and_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generator, "ROOT", tmp_path)
    path = Path("rollouts.yaml")
    monkeypatch.setattr(generator, "files", lambda: {path: FILES[path]})
    assert generator.main(["--check"]) == 1
    assert "crds/rollouts.yaml is not current: make crds" in capsys.readouterr().err
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    (tmp_path / "rollouts.yaml").write_text("old")
    assert generator.main(["--check"]) == 1


@pytest.mark.parametrize("path", FILES, ids=str)
@pytest.mark.parametrize("version", [(1, 1), (1, 2)])
def test_every_reader_of_yaml_sees_the_same(path: Path, version: tuple[int, int]) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.version = version
    assert list(yaml.load_all((CRDS / path).read_text())) == FILES[path]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_nothing_looks_like_a_template_to_helm(path: Path) -> None:
    assert "{{" not in (CRDS / path).read_text()


def test_an_object_fits_into_what_kubectl_keeps_of_it() -> None:
    for objects in FILES.values():
        assert all(len(json.dumps(each)) < KUBECTL_ANNOTATION_BYTES / 4 for each in objects)


def test_every_field_is_described() -> None:
    assert [path for path, node in NODES if not node.get("description") and path[-1] not in "]}"] == []


def bounded(node: dict[str, Any]) -> bool:
    match node.get("type"):
        case "string":
            return "maxLength" in node or "enum" in node or node.get("format") == "date-time"
        case "array":
            return "maxItems" in node and "x-kubernetes-list-type" in node
        case "object" if "properties" not in node:
            return "maxProperties" in node
    return True


def test_every_list_text_and_mapping_is_bounded() -> None:
    assert [path for path, node in NODES if not bounded(node)] == []


def test_every_node_has_one_type() -> None:
    """Or is a quantity: an integer or text, in the one form in which a structural schema can say it."""
    either = [{"type": "integer"}, {"type": "string"}]
    for path, node in NODES:
        if node.get("x-kubernetes-int-or-string"):
            assert (node["anyOf"], "type" in node, "pattern" in node) == (either, False, True), path
        else:
            assert isinstance(node["type"], str), path
            assert not {"$ref", "anyOf", "allOf", "oneOf", "const", "title"} & set(node), path


def test_lists_of_objects_with_a_name_are_merged_by_it() -> None:
    keyed = {
        path: node["x-kubernetes-list-map-keys"]
        for path, node in NODES
        if "x-kubernetes-list-map-keys" in node
    }
    assert keyed == {
        "TrainingRun.spec.tasks": ["name"],
        "TrainingRun.status.conditions": ["type"],
        "TrainingRun.status.inference": ["pod"],
        "MLTask.status.conditions": ["type"],
        "Rollout.spec.files": ["path"],
        "Rollout.status.conditions": ["type"],
    }


def test_no_status_has_defaults() -> None:
    assert [path for path, node in NODES if ".status" in path and "default" in node] == []


def below(path: str) -> str:
    return path.removeprefix("TrainingRun.")


def test_a_field_that_a_preset_covers_has_no_default_but_says_what_it_becomes() -> None:
    found = {below(path): node for path, node in NODES if below(path) in COVERED}
    assert set(found) == set(COVERED)
    for path, node in found.items():
        assert "default" not in node, path
        assert "(left out: " in node["description"], path
        block = dict(NODES)[f"TrainingRun.{path.rpartition('.')[0]}"]
        assert path.rpartition(".")[2] not in block.get("default", {}), path
    told = found["spec.reward.invalid"]["description"]
    assert told.endswith("(left out: -0.5; RLforMLE: -10.0.)")


def defaults(node: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, inner in node.get("properties", {}).items():
        if "default" in inner:
            yield name, inner["default"]


def test_the_default_of_a_block_is_that_of_its_fields() -> None:
    """An API server tries rules on it before it fills it up."""
    for path, node in NODES:
        if isinstance(node.get("default"), dict):
            assert node["default"] == dict(defaults(node)), path


def test_every_other_default_of_the_models_is_in_the_schema() -> None:
    spec = TrainingRunSpec.model_validate({"tasks": [{"name": "t"}], "model": {"source": {"path": "m"}}})
    ours = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    theirs = dict(defaults(SCHEMAS["TrainingRun"]["properties"]["spec"]))
    for name, value in theirs.items():
        assert contains(ours[name], value), name
    assert set(ours) - set(theirs) == {"tasks", "model"}


def contains(whole: Any, part: Any) -> bool:
    if isinstance(part, dict):
        return all(contains(whole[key], value) for key, value in part.items())
    return bool(whole == part)


def at(kind: str, path: str) -> dict[str, Any]:
    """The schema at a JSONPath; conditions are found by their type."""
    schema = SCHEMAS[kind]
    for step in re.sub(r"\[.*?\]", "[]", path).strip(".").split("."):
        schema = schema["properties"][step.removesuffix("[]")]
        schema = schema["items"] if step.endswith("[]") else schema
    return schema


@pytest.mark.parametrize("resource", definitions.RESOURCES, ids=lambda each: each.kind.__name__)
def test_a_column_shows_a_field_that_exists_and_has_its_type(resource: definitions.Resource) -> None:
    for column in resource.columns:
        if column.path != ".metadata.creationTimestamp":
            assert at(resource.kind.__name__, column.path)["type"] == column.type, column
    narrow = [column.name for column in resource.columns if not column.wide]
    assert narrow[-1] == "Age"
    assert len(narrow) <= 7, "a terminal of 80 columns"


@pytest.mark.parametrize("resource", definitions.RESOURCES, ids=lambda each: each.kind.__name__)
def test_a_selectable_field_is_text(resource: definitions.Resource) -> None:
    assert all(at(resource.kind.__name__, path)["type"] == "string" for path in resource.selectable)


def test_names_are_those_of_the_design() -> None:
    made = [definitions.definition(each)["spec"]["names"] for each in definitions.RESOURCES]
    assert [(each["kind"], each["shortNames"], each["categories"]) for each in made] == [
        ("TrainingRun", ["tr"], ["mlwright"]),
        ("MLTask", ["mlt"], ["mlwright"]),
        ("Rollout", ["ro"], ["mlwright"]),
    ]


class Inner(ApiModel):
    """A block."""

    size: PositiveQuantity = Quantity("1")
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """How much."""


class Outer(ApiModel):
    """Everything that a schema can hold."""

    inner: Inner = Inner()
    names: Annotated[list[Annotated[str, Field(max_length=9)]], Field(max_length=3)] = []
    """Some."""
    scores: dict[Split, float] = {}
    """By split."""
    word: Literal["Only"] = "Only"
    """One."""
    free: Annotated[dict[str, Any], Field(max_length=2)] = {}
    """Anything."""

    @classmethod
    def rules(cls) -> tuple[Rule[Any], ...]:
        return (exactly_one("names", "scores"),)


def test_a_model_becomes_a_structural_schema() -> None:
    made = structural(Outer, path="spec")
    properties = made["properties"]
    assert properties["inner"]["default"] == {"size": "1"}
    assert properties["inner"]["description"] == "A block."
    assert properties["inner"]["properties"]["share"] == {
        "description": "How much.",
        "type": "number",
        "format": "double",
        "minimum": 0,
        "exclusiveMinimum": True,
        "maximum": 1,
    }
    assert properties["names"]["x-kubernetes-list-type"] == "atomic"
    assert "default" not in properties["names"]
    assert list(properties["scores"]["properties"]) == ["Reward", "Selection", "Final"]
    assert properties["word"] == {
        "description": "One.",
        "type": "string",
        "enum": ["Only"],
        "default": "Only",
    }
    assert properties["free"]["x-kubernetes-preserve-unknown-fields"] is True
    assert len(made["x-kubernetes-validations"]) == 2


def test_a_positive_quantity_has_its_rule() -> None:
    (rule,) = structural(Inner, path="spec")["properties"]["size"]["x-kubernetes-validations"]
    assert rule["message"] == "must be greater than 0"


class Either(ApiModel):
    """Of two types."""

    value: int | Annotated[str, Field(max_length=9)]
    """Either."""


def test_what_a_schema_cannot_say_is_an_error() -> None:
    with pytest.raises(NotStructural, match=r"spec\.value: is one of several types"):
        structural(Either, path="spec")


def test_a_message_is_filled_in_by_the_server() -> None:
    assert message_expression("at most {self.k}, not {self.k + 1}: 5 %") == (
        '"at most %s, not %s: 5 %%".format([self.k, self.k + 1])'
    )
    assert validation(Cel("self.k > 0", "must be more", field="k")) == {
        "rule": "self.k > 0",
        "message": "must be more",
        "fieldPath": ".k",
    }


def test_no_message_is_built_by_concatenation() -> None:
    """Its cost would be taken for unbounded."""
    for path, node in NODES:
        for rule in node.get("x-kubernetes-validations", ()):
            assert not re.search(r"\bstring\(", rule.get("messageExpression", "")), path


def test_an_immutable_spec_says_why() -> None:
    assert validation(immutable("make another")) == {
        "rule": "self == oldSelf",
        "message": "is immutable: make another",
    }


def test_what_may_change_is_left_out_of_the_rules_on_changes() -> None:
    rules = {each.field: each for each in changes(Outer, ["word", "inner.share"])}
    assert set(rules) == {"inner", "names", "scores", "free"}
    assert rules["inner"].expression == (
        "has(self.inner.size) == has(oldSelf.inner.size) && "
        "(!has(self.inner.size) || self.inner.size == oldSelf.inner.size)"
    )
    assert rules["inner"].message.startswith("only share may change")
    assert rules["free"].message.startswith("cannot change")


def test_what_may_change_in_a_run_exists() -> None:
    spec = SCHEMAS["TrainingRun"]["properties"]["spec"]["properties"]
    for path in MUTABLE:
        block, _, field = path.partition(".")
        assert field in spec[block]["properties"] if field else block in spec, path


def written_out(name: str) -> set[str]:
    """What CEL says that a field is where it is left out."""
    expressions = json.dumps([node.get("x-kubernetes-validations") for _, node in NODES])
    return set(re.findall(rf"\.\?{name}\.orValue\(((?:[^()]|\([^()]*\))*)\)", expressions))


@pytest.mark.parametrize("name", sorted(PRESET_COVERED))
def test_what_cel_says_of_a_field_that_is_left_out_is_what_presets_say(name: str) -> None:
    """Where it needs to know: `preset ? RLforMLE's : the design's`, or one value where they agree."""
    design, preset = DESIGN_DEFAULTS[name], PRESETS["RLforMLE"][name]
    ours = {repr(value) if isinstance(value, str) else str(value) for value in (design, preset)}
    agreed = {str(design), f"'{design}'"}
    either = {f"has(self.preset) ? {preset!r} : {design!r}"}
    for found in written_out(to_camel(name.rpartition(".")[2])):
        assert {found} <= (agreed if len(ours) == 1 else either)


def test_cel_knows_some_fields_that_are_left_out() -> None:
    known = [name for name in PRESET_COVERED if written_out(to_camel(name.rpartition(".")[2]))]
    assert {"algorithm.batch_size", "reward.score", "reward.invalid", "algorithm.clip_range"} <= set(known)


def test_there_is_one_preset_so_that_having_one_says_which() -> None:
    """The rules on rewards ask only `has(self.preset)`."""
    assert list(PRESETS) == ["RLforMLE"]


def test_a_policy_knows_every_field_of_a_runs_status() -> None:
    text = dump_yaml(policies.policies()[2])
    for name, field in TrainingRunStatus.model_fields.items():
        assert (field.alias or name) in text


def test_every_policy_refuses_also_where_it_fails_and_is_bound_everywhere() -> None:
    made = policies.policies()
    bound = {each["spec"]["policyName"]: each["spec"] for each in made if each["kind"].endswith("Binding")}
    names = [each["metadata"]["name"] for each in made if not each["kind"].endswith("Binding")]
    assert names == list(bound)
    assert all(each["spec"].get("failurePolicy", "Fail") == "Fail" for each in made)
    assert all(
        spec["validationActions"] == ["Deny"] and "matchResources" not in spec for spec in bound.values()
    )
