"""The YAML 1.2 reader: scalars, lines, and everything that is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from mlwright_api.documents import MAX_BYTES, DocumentError, read_documents


def read(text: str) -> Any:
    documents = read_documents(text.encode())
    assert len(documents) == 1
    return documents[0].value


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("1e-6", 1e-6),
        ("1E6", 1e6),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("-3", -3),
        ("+3", 3),
        ("007", 7),
        ("0o17", 15),
        ("0x1F", 31),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("on", "on"),
        ("off", "off"),
        ("yes", "yes"),
        ("no", "no"),
        ("y", "y"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-31", "2026-01-31"),
        ("1.2.3", "1.2.3"),
        ("'1'", "1"),
        ('"true"', "true"),
        ("!!str 1", "1"),
        ("! 1", "1"),
        ("''", ""),
    ],
)
def test_a_scalar_is_what_the_core_schema_of_yaml_1_2_says(scalar: str, value: object) -> None:
    found = read(f"key: {scalar}")["key"]
    assert found == value
    assert type(found) is type(value)


def test_a_numeric_key_is_text() -> None:
    assert read("1: a\ntrue: b\n") == {"1": "a", "true": "b"}


def test_every_field_knows_its_line() -> None:
    (document,) = read_documents(b"# comment\na:\n  b: [1,\n    2]\nc: |\n  text\n")
    assert document.line(("a",)) == 2
    assert document.line(("a", "b")) == 3
    assert document.line(("a", "b", 1)) == 4
    assert document.line(("c",)) == 5


def test_a_missing_field_has_the_line_of_what_is_around_it() -> None:
    (document,) = read_documents(b"a:\n  b:\n    c: 1\n")
    assert document.line(("a", "b", "missing", 0)) == 2


def test_empty_documents_are_left_out_and_still_counted() -> None:
    documents = read_documents(b"---\n# nothing\n---\na: 1\n---\nnull\n---\nb: 2\n")
    assert [(document.number, document.value) for document in documents] == [(2, {"a": 1}), (4, {"b": 2})]


def test_an_alias_stands_for_what_its_anchor_named() -> None:
    assert read("a: &x {k: [1, 2]}\nb: *x\n") == {"a": {"k": [1, 2]}, "b": {"k": [1, 2]}}


def test_json_is_read_with_its_tabs_and_surrogate_escapes() -> None:
    value = {"a": [1, 2.5, None, True, "\U0001f600"], "b": {"c": "x\ty"}}
    assert read(json.dumps(value, indent="\t", ensure_ascii=True)) == value


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert read_documents(b"\xef\xbb\xbfa: 1")[0].value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "duplicate key 'c'", 4),
        ('{"a": 1, "a": 2}', "duplicate key 'a'", None),
        ("a: *nowhere", "alias *nowhere has no anchor before it", 1),
        ("a: &x [*x]", "alias *x has no anchor before it", 1),
        ("a: {<<: {b: 1}}", "merge keys (<<) are not part of YAML 1.2", 1),
        ("a: !!python/object:os.system x", "is not allowed in a manifest", 1),
        ("a: !!int '1'", "is not allowed in a manifest", 1),
        ("? [a, b]\n: 1", "a key must be text", 1),
        ("? *x\n: 1", "a key must be text", 1),
        ("a: .nan", ".nan is not a finite number", 1),
        ("a: -.inf", "-.inf is not a finite number", 1),
        ("a: 1e999", "1e999 is not a finite number", 1),
        ('{"a": NaN}', "NaN is not a finite number", None),
        ('{"a": 1e999}', "1e999 is not a finite number", None),
        ("a:\n\t- b", "found character '\\t'", 2),
        ("a: [1, 2\nb: 3", "expected ',' or ']'", 2),
        ("a: 'x", "while scanning a quoted scalar", 1),
        ("a: 1\n b: 2", "mapping values are not allowed here", 2),
        ("a: b\n---\nc: [", "while parsing a flow node", 3),
        ("a: \x01", "special characters are not allowed", None),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_line(text: str, message: str, line: int | None) -> None:
    with pytest.raises(DocumentError) as caught:
        read_documents(text.encode())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.line == line


def test_text_that_is_not_utf_8_is_refused_with_its_line() -> None:
    with pytest.raises(DocumentError, match="not UTF-8") as caught:
        read_documents(b"a: 1\nb: \xff\n")
    assert caught.value.line == 2


def test_an_alias_bomb_is_an_error() -> None:
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(DocumentError, match="aliases counted as often as they are used"):
        read_documents("\n".join(["a0: &a0 [x]", *levels]).encode())


def test_a_long_text_counts_each_time_an_alias_uses_it() -> None:
    text = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 100)}]"
    with pytest.raises(DocumentError, match="more than 400000 values"):
        read_documents(text.encode())


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_an_error(opening: str) -> None:
    closing = {"[": "]", "{a: ": "}", "- ": ""}[opening]
    with pytest.raises(DocumentError, match="nested deeper than 64"):
        read_documents((opening * 5000 + "1" + closing * 5000).encode())


@pytest.mark.parametrize("depth", [65, 500, 200_000])
def test_deeply_nested_json_is_an_error(depth: int) -> None:
    with pytest.raises(DocumentError, match="nested deeper than 64"):
        read_documents(('{"a":' * depth + "1" + "}" * depth).encode())


@pytest.mark.parametrize("opening", ['{"a":', "{a: "])
def test_the_bound_on_nesting_is_the_same_for_json_and_yaml(opening: str) -> None:
    assert read_documents((opening * 64 + "1" + "}" * 64).encode())
    with pytest.raises(DocumentError):
        read_documents((opening * 65 + "1" + "}" * 65).encode())


def test_a_huge_file_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(DocumentError, match="larger than 16 MiB"):
        read_documents(b" " * (MAX_BYTES + 1))
