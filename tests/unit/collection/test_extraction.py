"""The script in answers as models write them."""

from __future__ import annotations

import pytest
from mlwright_trainer.collection.extraction import extract_script

A = "import os\nprint(os.name)\n"
B = "print(2)\n"


@pytest.mark.parametrize(
    ("text", "script"),
    [
        (f"Sure!\n\n```python\n{A}```\nThis prints it.", A),
        (f"```py\n{A}```", A),
        (f"```Python3\n{A}```", A),
        (f"```python3.11\n{A}```", A),
        (f"``` python \n{A}```  ", A),
        (f"```python title=script.py\n{A}```", A),
        (f"```{{.python .numberLines}}\n{A}```", A),
        (f"```python:script.py\n{A}```", A),
        (f"~~~python\n{A}~~~", A),
        (f"````python\n{A}````", A),
        (f"```python\n{A}`````", A),
        (f"```\n{A}```", A),
        (f"```python\n\n\n{A}\n\n```", A),
        (f"```python\r\n{A.replace(chr(10), chr(13) + chr(10))}```\r\n", A),
        (f"\ufeff{A}", A),
        (A.rstrip(), A),
    ],
)
def test_one_block_is_found_however_it_is_labelled(text: str, script: str) -> None:
    assert extract_script(text) == script


def test_the_last_python_block_counts() -> None:
    assert extract_script(f"First:\n```python\n{A}```\nBetter:\n```python\n{B}```\n") == B


@pytest.mark.parametrize(
    "after",
    [
        "```\nAUC 0.91\n```",
        "```bash\npython script.py\n```",
        "```text\n0.91\n```",
        "```",
        "```python-repl\n>>> 1\n```",
        "```pycon\n>>> 1\n```",
    ],
)
def test_what_follows_the_python_block_does_not_take_its_place(after: str) -> None:
    assert extract_script(f"```python\n{A}```\nwhich gives\n{after}\n") == A


def test_of_unlabelled_blocks_the_last_that_does_something_counts() -> None:
    assert extract_script(f"```\n{A}```\ngives\n```\nposix\n```\n") == A
    assert extract_script("```\nnot python at all\n```\n```\nnor this one\n```") == "nor this one\n"


def test_a_block_in_another_language_is_no_script() -> None:
    assert extract_script("```bash\npython train.py\n```") is None
    assert extract_script("```json\n[1]\n```") is None


def test_an_unclosed_last_block_counts_only_if_the_model_stopped_by_itself() -> None:
    text = f"```python\n{A}```\nor\n```python\n{B}"
    assert extract_script(text, stopped=True) == B
    assert extract_script(text, stopped=False) == A
    assert extract_script(f"```python\n{A}", stopped=False) is None


def test_a_block_in_a_list_loses_the_lists_indent_only() -> None:
    text = "1. Do this:\n\n   ```python\n   if True:\n       print(1)\n   ```\n"
    assert extract_script(text) == "if True:\n    print(1)\n"


def test_a_longer_fence_keeps_a_shorter_one_as_text() -> None:
    script = 'NOTE = """\n```python\nprint(0)\n```\n"""\nprint(NOTE)\n'
    assert extract_script(f"````python\n{script}````") == script


def test_tildes_keep_backticks_as_text() -> None:
    script = 'NOTE = """\n```\n"""\nprint(NOTE)\n'
    assert extract_script(f"~~~python\n{script}~~~") == script


def test_a_fence_in_a_string_of_the_same_length_is_read_as_text_if_only_that_parses() -> None:
    script = 'NOTE = """\n```\nusage\n```\n"""\nprint(NOTE)\n'
    assert extract_script(f"```python\n{script}```\nDone.") == script


def test_a_block_that_was_left_open_does_not_swallow_the_one_after_it() -> None:
    assert extract_script(f"```python\nx = (\nNo, better:\n```python\n{A}```") == A


def test_a_block_that_does_not_parse_is_still_the_answer() -> None:
    assert extract_script(f"```python\n{A}```\n```python\nx = (\n```") == "x = (\n"


def test_backticks_within_a_line_are_no_fence() -> None:
    assert extract_script("Use ```print(1)``` or so.") is None


@pytest.mark.parametrize("text", ["", "   \n", "OK", "yes.no", "'done'", "0.91", "Sorry, I cannot.", "a, b"])
def test_words_are_no_script_though_some_parse(text: str) -> None:
    assert extract_script(text) is None


@pytest.mark.parametrize("text", ["x = 1", "f()", "import os", "if a: pass", "await_(x)"])
def test_bare_python_that_does_something_is_a_script(text: str) -> None:
    assert extract_script(text) == f"{text}\n"


def test_an_empty_block_is_no_script() -> None:
    assert extract_script("```python\n```") is None
    assert extract_script("```python") is None


def test_nothing_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    extract_script("print('ran')")
    assert capsys.readouterr().out == ""


def test_a_flood_of_fences_is_read_in_time() -> None:
    assert extract_script("```\n" * 60_000) is None
    assert extract_script("```python\n" * 5_000) is not None


def test_a_huge_answer_without_a_fence_is_not_parsed() -> None:
    assert extract_script("x = 1\n" * 100_000) is None
