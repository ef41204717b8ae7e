"""What a person gets wrong and what the machine refuses: one clear line, the right exit status, nothing lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.sandbox, pytest.mark.torch]
Miniature = Any

USERS_MISTAKE, OUR_FAULT = 2, 1


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    """The error as it was said: one line on stderr, nothing on stdout, no traceback."""
    said = [line for line in done.stderr.splitlines() if line.startswith("mlwright: ")]
    assert len(said) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return said[0]


def refused(miniature: Miniature, *arguments: str | Path, code: int = USERS_MISTAKE) -> str:
    done = miniature.run(*arguments)
    assert done.returncode == code, done.stderr
    return only_line(done)


def test_a_missing_field(miniature: Miniature) -> None:
    file = miniature.write({"model": None}, name="bad.yaml")
    line = refused(miniature, "run", file, "--dir", miniature.root / "bad")
    assert "spec.model" in line
    assert not (miniature.root / "bad").exists()


def test_a_misspelt_field_with_the_nearest_name(miniature: Miniature) -> None:
    file = miniature.write({"algorithm": {"learningrate": 1e-3}}, name="bad.yaml")
    line = refused(miniature, "run", file)
    assert "learningrate" in line
    assert "learningRate" in line
    assert "bad.yaml" in line


def test_an_unknown_metric(miniature: Miniature, tmp_path: Path) -> None:
    task = copied_task(miniature, tmp_path)
    manifest = task / "task.yaml"
    manifest.write_text(manifest.read_text().replace("roc_auc", "roc_acu"))
    line = refused(miniature, "run", miniature.run_file, "--task", f"coins={task}")
    assert "roc_acu" in line
    assert "roc_auc" in line


def test_a_task_folder_without_answers(miniature: Miniature, tmp_path: Path) -> None:
    task = copied_task(miniature, tmp_path)
    (task / "private" / "answers.csv").unlink()
    line = refused(miniature, "run", miniature.run_file, "--task", f"coins={task}")
    assert str(task) in line
    assert "answers" in line


def test_a_task_folder_that_is_not_there(miniature: Miniature, tmp_path: Path) -> None:
    line = refused(miniature, "run", miniature.run_file, "--task", f"coins={tmp_path / 'nothing'}")
    assert str(tmp_path / "nothing") in line


def test_a_model_that_cannot_be_found(miniature: Miniature, tmp_path: Path) -> None:
    file = miniature.write(
        {"model": {"source": {"scratch": None, "path": "no-model"}}, "fineTuning": None}, "m.yaml"
    )
    line = refused(miniature, "run", file, "--dir", tmp_path / "run")
    assert "no-model" in line


def test_a_device_that_is_not_there(miniature: Miniature, tmp_path: Path) -> None:
    line = refused(miniature, "run", miniature.run_file, "--dir", tmp_path / "run", "--device", "cuda:9")
    assert "--device cuda:9" in line
    assert not (tmp_path / "run").exists()


def test_a_place_that_cannot_be_written(miniature: Miniature) -> None:
    line = refused(miniature, "run", miniature.run_file, "--dir", "/proc/mlwright")
    assert "/proc/mlwright" in line
    assert "--dir" in line


def test_a_folder_that_holds_a_run(miniature: Miniature, undisturbed: Path) -> None:
    before = contents(undisturbed)
    line = refused(miniature, "run", miniature.run_file, "--dir", undisturbed)
    assert "--resume" in line
    assert contents(undisturbed) == before


def test_a_folder_that_holds_another_run(miniature: Miniature, undisturbed: Path) -> None:
    before = contents(undisturbed)
    file = miniature.write({"seed": 99}, name="other.yaml")
    line = refused(miniature, "run", file, "--dir", undisturbed, "--resume")
    assert "spec.seed: 99, not 3" in line
    assert contents(undisturbed) == before


def test_more_updates_after_the_exam(miniature: Miniature, undisturbed: Path) -> None:
    before = contents(undisturbed)
    line = refused(miniature, "run", "--resume", "--dir", undisturbed, "--updates", "30")
    assert "closed" in line
    assert contents(undisturbed) == before


@pytest.mark.parametrize("command", [["replay"], ["report"], ["show", "x"], ["ledger", "list"]])
def test_a_folder_without_a_run(miniature: Miniature, tmp_path: Path, command: list[str]) -> None:
    place = [command[0], str(tmp_path), *command[1:]] if command[0] == "show" else [*command, str(tmp_path)]
    assert str(tmp_path) in refused(miniature, *place)


def test_a_disk_that_fills_up_loses_nothing(miniature: Miniature, tmp_path: Path) -> None:
    """A file system of 400 kB, mounted in a namespace of the command's own."""
    small = tmp_path / "small"
    small.mkdir()
    inside = f'mount -t tmpfs -o size=400k tmpfs "{small}" && exec "$@"'
    command = [sys.executable, "-m", "mlwright_trainer.command.main", "run", str(miniature.run_file)]
    done = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", inside, "sh", *command, "--dir", str(small / "run")],
        cwd=miniature.root,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == OUR_FAULT, done.stderr
    line = only_line(done)
    assert "full" in line or "No space left" in line


def test_a_model_larger_than_the_memory(miniature: Miniature, tmp_path: Path) -> None:
    huge = {"scratch": {"config": {"hidden_size": 65536, "intermediate_size": 65536}}}
    file = miniature.write({"model": {"source": huge}}, name="huge.yaml")
    limit = 12 * 1024**3

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-m", "mlwright_trainer.command.main", "run", file, "--dir", tmp_path / "run"],
        cwd=miniature.root,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        preexec_fn=limited,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == OUR_FAULT, done.stderr
    assert "out of memory" in only_line(done)


def copied_task(miniature: Miniature, folder: Path) -> Path:
    return Path(shutil.copytree(miniature.root / "coins", folder / "coins"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file that a person would miss, byte by byte."""
    kept = [
        path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", "ledger"))
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}
