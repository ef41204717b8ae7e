"""Reading fine-tuning examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mlwright_api.presets import GENERATED_EXAMPLES
from mlwright_api.trainingrun import FineTuning
from mlwright_trainer.errors import UserError
from mlwright_trainer.generators import Example, generate
from mlwright_trainer.learning.examples import load_examples

pytestmark = pytest.mark.torch


def _load(base: Path, *, seed: int = 0, count: int | None = None, **source: Any) -> list[Example]:
    spec = FineTuning.model_validate({"examples": source, "count": count})
    return load_examples(spec, base=base, seed=seed)


def _write(folder: Path, text: str) -> None:
    (folder / "e.jsonl").write_text(text, encoding="utf-8")


def test_lines_become_examples_and_the_prompt_may_be_left_out(tmp_path: Path) -> None:
    _write(tmp_path, '{"prompt": "p", "completion": "c"}\n\n{"completion": "größer"}\n')
    assert _load(tmp_path, path="e.jsonl") == [Example("p", "c"), Example("", "größer")]


def test_count_takes_the_first_and_reads_no_further(tmp_path: Path) -> None:
    _write(tmp_path, '{"completion": "1"}\n{"completion": "2"}\nnot JSON\n')
    assert [example.completion for example in _load(tmp_path, path="e.jsonl", count=2)] == ["1", "2"]


def test_an_absolute_path_is_taken_as_it_is(tmp_path: Path) -> None:
    _write(tmp_path, '{"completion": "1"}\n')
    assert len(_load(Path("/nowhere"), path=str(tmp_path / "e.jsonl"))) == 1


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[1]", "needs a text `completion`"),
        ('{"prompt": "p"}', "needs a text `completion`"),
        ('{"completion": ""}', "needs a text `completion`"),
        ('{"completion": 3}', "needs a text `completion`"),
        ('{"completion": "c", "prompt": null}', "a text `prompt`"),
    ],
)
def test_a_line_that_is_no_example_is_named(tmp_path: Path, line: str, reason: str) -> None:
    _write(tmp_path, '{"completion": "fine"}\n' + line + "\n")
    with pytest.raises(UserError, match=rf"e\.jsonl, line 2: .*{reason}"):
        _load(tmp_path, path="e.jsonl")


def test_a_file_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"fineTuning\.examples\.path: .*e\.jsonl cannot be read"):
        _load(tmp_path, path="e.jsonl")


def test_a_file_in_another_encoding_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(b'{"completion": "gr\xf6\xdfer"}\n')
    with pytest.raises(UserError, match="cannot be read"):
        _load(tmp_path, path="e.jsonl")


def test_a_file_without_examples_is_the_users_mistake(tmp_path: Path) -> None:
    _write(tmp_path, "\n")
    with pytest.raises(UserError, match="has no examples"):
        _load(tmp_path, path="e.jsonl")


@pytest.mark.parametrize("source", [{"image": "registry/examples:1"}, {"claim": {"name": "examples"}}])
def test_sources_of_a_cluster_are_refused_on_one_machine(tmp_path: Path, source: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="only be used in a cluster"):
        _load(tmp_path, **source)


def test_a_generator_makes_as_many_as_asked_from_the_runs_seed(tmp_path: Path) -> None:
    examples = _load(tmp_path, generator="sklearn-tabular", seed=4, count=9)
    assert examples == generate("sklearn-tabular", seed=4, count=9)


def test_a_generator_makes_20000_unless_told_otherwise() -> None:
    assert GENERATED_EXAMPLES == 20_000
