"""hack/venv.sh: what it refuses to touch, and that it does nothing twice."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BASE_PYTHON: str = sys._base_executable  # type: ignore[attr-defined]  # there since Python 3.3, as venv uses it


def setup(venv: Path, python: str = BASE_PYTHON) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "hack/venv.sh"), str(venv), python]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_folder_that_it_did_not_make_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "thesis"
    mine.mkdir()
    (mine / "chapter.txt").write_text("years of work")
    done = setup(mine)
    assert done.returncode == 1
    assert "exists and was not made by this script: remove it, or choose another" in done.stderr
    assert (mine / "chapter.txt").read_text() == "years of work"
    assert [path.name for path in mine.iterdir()] == ["chapter.txt"]


def test_an_environment_that_is_current_is_not_touched(tmp_path: Path) -> None:
    project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    stamp = tmp_path / ".mlwright"
    stamp.write_text(f"{sys.version.replace(chr(10), ' ')}\n{project} {ROOT}\n1\n")
    done = setup(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == [stamp]


def test_without_a_folder_it_says_how_it_is_used() -> None:
    done = subprocess.run([str(ROOT / "hack/venv.sh")], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "usage: hack/venv.sh VENV [PYTHON]" in done.stderr
