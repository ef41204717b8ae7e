"""What tests/conftest.py makes of skipped tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = ROOT / "tests/conftest.py"
SKIPPING = """
import pytest

@pytest.mark.skip(reason="no printer")
def test_that_prints(): ...

@pytest.mark.xfail(reason="known")
def test_that_is_known_to_fail():
    assert False

def test_that_passes(): ...
"""


def run(folder: Path, text: str, *, forbid: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST.read_text())
    (folder / "pytest.ini").write_text(
        f"[pytest]\npythonpath = {ROOT / 'hack/cluster'}\nmarkers =\n  browser: b\n  sandbox: s\n  torch: t\n"
    )
    (folder / "test_it.py").write_text(text)
    environment = (
        os.environ | {"MLWRIGHT_FORBID_SKIPS": forbid} | ({"PATH": path} if path is not None else {})
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_skipped_test_is_named_in_one_line_with_its_reason(tmp_path: Path) -> None:
    done = run(tmp_path, SKIPPING, forbid="0")
    assert done.returncode == 0
    assert "not run: 1 tests, no printer" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("1 passed, 1 skipped, 1 xfailed")


def test_where_skips_are_forbidden_a_skipped_test_fails(tmp_path: Path) -> None:
    done = run(tmp_path, SKIPPING, forbid="1")
    assert done.returncode == 1
    assert "which MLWRIGHT_FORBID_SKIPS forbids: Skipped: no printer" in done.stdout
    assert done.stdout.rstrip().splitlines()[-1].startswith("1 passed, 1 xfailed, 1 error")


def test_where_skips_are_forbidden_a_skipped_module_fails(tmp_path: Path) -> None:
    module = "import pytest\npytest.skip('no module', allow_module_level=True)\n"
    assert run(tmp_path, module, forbid="0").returncode == 5
    done = run(tmp_path, module, forbid="1")
    assert done.returncode == 2
    assert "no module" in done.stdout


@pytest.mark.parametrize(("forbid", "code"), [("", 0), ("1", 1)])
def test_a_suite_that_the_machine_cannot_run_says_what_to_install(
    tmp_path: Path, forbid: str, code: int
) -> None:
    text = "import pytest\n@pytest.mark.browser\ndef test_page(): ...\ndef test_other(): ...\n"
    done = run(tmp_path, text, forbid=forbid, path=str(tmp_path))
    assert done.returncode == code
    assert "chromium and chromedriver missing (apt-get install chromium chromium-driver)" in done.stdout
