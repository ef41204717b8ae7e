"""What is refused before it runs, each with a line that says why."""

from __future__ import annotations

import pytest
from mlwright_api.rollout import FILES_BYTES
from mlwright_trainer.collection.static_checks import refuse


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("", "no statement"),
        ("# only a thought\n", "no statement"),
        ("x = 1\nprint('a\n", "line 2: unterminated string literal"),
        ("for x in y\n    pass\n", "line 1: expected ':'"),
        ("if x:\npass\n", "line 2: expected an indented block"),
        ("x = 1\n  y = 2\n", "line 2: unexpected indent"),
        ("return 1\n", "line 1: 'return' outside function"),
        ("print 1\n", "line 1: Missing parentheses"),
        ("x = 1\ny = 'a\0b'\n", "line 2: a NUL byte"),
        ("x = 1\n\ny = '\ud800'\n", "line 3: half of a surrogate pair"),
        ("x = “quoted”\n", "line 1: invalid character"),
        ("# coding: klingon\nx = 1\n", "line 1: unknown encoding"),
        ("# coding: latin-1\nx = 'é'\n", "declares the encoding iso-8859-1"),
        (f"x = {'-' * 500}1\n", "nested too deeply"),
        (f"x = '{'a' * FILES_BYTES}'\n", f"larger than {FILES_BYTES} bytes"),
        (f"x = '{'é' * (FILES_BYTES // 2)}'\n", f"larger than {FILES_BYTES} bytes"),
        ("from __future__ import braces\n", "line 1: not a chance"),
        (f"x = {'9' * 5000}\n", "line 1: Exceeds the limit"),
    ],
)
def test_a_script_that_cannot_run_is_refused_with_where_and_why(script: str, reason: str) -> None:
    found = refuse(script)
    assert found is not None
    assert found.startswith(reason)
    assert "\n" not in found
    assert len(found) <= 200


@pytest.mark.parametrize(
    "script",
    [
        "print(1)",
        "x = '\\d'\n",
        "# coding: latin-1\nx = 1\n",
        "# -*- coding: utf-8 -*-\nx = 'é'\n",
        "import os\nos.system('rm -rf /')\n",
        "raise SystemExit(1)\n",
        "eval('1')\n",
        f"x = [{'1, ' * 20_000}]\n",
        f"x = '{'a' * (FILES_BYTES - 7)}'\n",
    ],
)
def test_what_python_would_run_is_not_refused_whatever_it_does(script: str) -> None:
    assert refuse(script) is None


def test_nothing_of_the_script_is_executed(capsys: pytest.CaptureFixture[str]) -> None:
    assert refuse("print('ran')\nraise ValueError\n") is None
    assert capsys.readouterr().out == ""
