"""Preparing is all or nothing: no failure and no difference touches the data that is there."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.tasks.checksums import digest_files
from mlwright_trainer.tasks.folder import DATA_FOLDERS, TaskFolder
from mlwright_trainer.tasks.preparation import prepare_task

PREPARE = """\
import sys
from pathlib import Path

out = Path(sys.argv[1])
for folder, text in {
    "public/train.csv": "id,x,big\\n1,2,0\\n",
    "public/test.csv": "id,x\\n2,2\\n3,2\\n4,2\\n",
    "public/sample_submission.csv": "id,big\\n2,0.5\\n3,0.5\\n4,0.5\\n",
    "private/answers.csv": "id,big,split\\n2,0,Reward\\n3,1,Selection\\n",
    "sealed/answers.csv": "id,big,split\\n4,1,Final\\n",
}.items():
    (out / folder).parent.mkdir(parents=True, exist_ok=True)
    (out / folder).write_text(text)
"""


@pytest.fixture
def bare(made_up: Callable[..., TaskFolder]) -> Path:
    """A task folder with a prepare.py and no data."""
    root = made_up().root
    for name in DATA_FOLDERS:
        for path in (root / name).iterdir():
            path.unlink()
        (root / name).rmdir()
    (root / "prepare.py").write_text(PREPARE)
    return root


def _contents(root: Path) -> dict[str, str]:
    return digest_files(root, [name for name in DATA_FOLDERS if (root / name).exists()])


def _names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def test_the_first_preparation_makes_data_and_records_checksums(bare: Path) -> None:
    prepared = prepare_task(bare)

    assert (prepared.changed, prepared.recorded) == (True, True)
    assert _contents(bare) == dict(prepared.files)
    assert _names(bare) == sorted(["task.yaml", "prepare.py", "checksums.txt", *DATA_FOLDERS])


def test_a_second_preparation_changes_nothing(bare: Path) -> None:
    prepare_task(bare)
    before = (bare / "public/train.csv").stat().st_ino
    again = prepare_task(bare)

    assert (again.changed, again.recorded) == (False, False)
    assert (bare / "public/train.csv").stat().st_ino == before


def test_data_that_does_not_match_the_checksums_is_not_put_in_place(bare: Path) -> None:
    prepare_task(bare)
    before = _contents(bare)
    (bare / "prepare.py").write_text(PREPARE.replace("1,2,0", "1,2,1"))

    with pytest.raises(UserError, match=r"records \(public/train\.csv has other contents\).*--record"):
        prepare_task(bare)
    assert _contents(bare) == before


def test_other_data_is_not_overwritten_without_force(bare: Path) -> None:
    prepare_task(bare)
    (bare / "public/train.csv").write_text("edited by hand\n")

    with pytest.raises(UserError, match=r"other data is already there .*--force"):
        prepare_task(bare)
    assert (bare / "public/train.csv").read_text() == "edited by hand\n"

    assert prepare_task(bare, force=True).changed
    assert (bare / "public/train.csv").read_text() == "id,x,big\n1,2,0\n"


def test_a_hand_made_file_beside_the_data_counts_as_other_data(bare: Path) -> None:
    prepare_task(bare)
    (bare / "public/notes.txt").write_text("mine")

    with pytest.raises(UserError, match=r"public/notes\.txt is missing|public/notes\.txt is new"):
        prepare_task(bare)
    assert (bare / "public/notes.txt").read_text() == "mine"


def test_the_log_of_final_reads_survives_a_replacement(bare: Path) -> None:
    prepare_task(bare)
    (bare / "sealed/reads.log").write_text("{}\n")
    (bare / "prepare.py").write_text(PREPARE.replace("1,2,0", "1,2,1"))
    prepare_task(bare, force=True, record=True)

    assert (bare / "sealed/reads.log").read_text() == "{}\n"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("raise SystemExit('no data today')", "failed (exit 1): no data today"),
        ("import sys; print('x'); sys.exit(3)", "failed (exit 3): x"),
        ("1 / 0", "ZeroDivisionError"),
        ("import os; os.kill(os.getpid(), 9)", "failed (exit -9): no output"),
        ("pass", "made no folder public/"),
        (
            PREPARE.replace('"id,x,big', '"id,x,bog').replace("id,big,split", "id,bog,split"),
            "no column 'big'",
        ),
        (PREPARE.replace("4,1,Final", "5,1,Final"), "'5' is not in the sample submission"),
    ],
)
def test_a_failing_preparer_leaves_nothing_behind(bare: Path, script: str, said: str) -> None:
    (bare / "prepare.py").write_text(script)
    before = _names(bare)

    with pytest.raises(UserError) as caught:
        prepare_task(bare)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert _names(bare) == before


def test_a_failing_preparer_leaves_data_that_is_there_as_it_is(bare: Path) -> None:
    prepare_task(bare)
    before = _contents(bare)
    (bare / "prepare.py").write_text("raise SystemExit('broken')")

    with pytest.raises(UserError, match="broken"):
        prepare_task(bare, force=True)
    assert _contents(bare) == before


def test_a_move_that_fails_half_way_is_undone(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prepare_task(bare)
    before = _contents(bare)
    (bare / "prepare.py").write_text(PREPARE.replace("1,2,0", "1,2,1"))
    rename = Path.rename

    def full(source: Path, target: Path) -> Path:
        if target == bare / "sealed" and "replaced" not in source.parts:
            raise OSError(28, "No space left on device", str(target))
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(UserError, match="no space left on device; the task's data was left as it was"):
        prepare_task(bare, force=True, record=True)
    assert _contents(bare) == before


def test_a_full_disk_or_a_read_only_folder_is_one_line(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(bare))

    monkeypatch.setattr(tempfile, "TemporaryDirectory", refuse)
    with pytest.raises(UserError, match="permission denied; the task's data was left as it was"):
        prepare_task(bare)


def test_a_task_without_preparer_says_so(task: TaskFolder) -> None:
    with pytest.raises(UserError, match=r"no prepare\.py: put public/, private/ and sealed/ there yourself"):
        prepare_task(task.root)


def test_the_preparer_hashes_the_same_at_every_run(bare: Path) -> None:
    script = PREPARE.replace('"id,x\\n2,2', 'f"id,x\\n2,{hash(chr(97))}')
    (bare / "prepare.py").write_text(script)
    prepare_task(bare)

    assert prepare_task(bare).changed is False
