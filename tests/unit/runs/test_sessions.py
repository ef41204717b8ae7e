"""A folder holds one run: begun once, continued only as what it was, closed after the exam."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from mlwright_api.trainingrun import TrainingRunSpec
from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import Ledger, LedgerReader, UpdateRow
from mlwright_trainer.runs.folder import RunFolder
from mlwright_trainer.runs.plan import RunPlan
from mlwright_trainer.runs.sessions import opened_ledger


def plan(name: str = "one", digest: str = "sha256:a", **algorithm: Any) -> RunPlan:
    spec = TrainingRunSpec.model_validate(
        {
            "tasks": [{"name": "t"}],
            "model": {"source": {"path": "/m"}},
            "algorithm": {"updates": 4, **algorithm},
        }
    )
    return Planned(name, spec, cast("Any", {"t": SimpleNamespace(digest=digest)}))


class Planned(RunPlan):
    """A plan whose task folders are not looked at when it is written down."""

    def dump(self) -> str:
        return RunPlan(self.name, self.spec, {}).dump()


def begin(folder: RunFolder, one: RunPlan) -> None:
    folder.path.mkdir(exist_ok=True)
    with opened_ledger(one, folder, resume=False):
        pass


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def refusal(folder: RunFolder, one: RunPlan, *, resume: bool = True) -> str:
    before = {path: path.read_bytes() for path in folder.path.iterdir() if path.suffix == ".yaml"}
    with pytest.raises(UserError) as caught, opened_ledger(one, folder, resume=resume):
        pass
    assert {path: path.read_bytes() for path in before} == before
    return str(caught.value)


def test_a_new_run_has_a_resolved_file_and_a_ledger_with_versions(folder: RunFolder) -> None:
    begin(folder, plan())
    assert "kind: TrainingRun" in folder.run_file.read_text()
    with LedgerReader(folder.ledger) as ledger:
        assert ledger.fact("name") == "one"
        assert ledger.fact("version/python") is not None


def test_a_folder_with_a_run_is_not_begun_again(folder: RunFolder) -> None:
    begin(folder, plan())
    with opened_ledger(plan(), folder, resume=True) as ledger:
        ledger.record_update(UpdateRow(0, "d", {}, published_at=0.0))
    assert "--resume" in refusal(folder, plan(), resume=False)


def test_a_run_that_ended_before_it_had_weights_can_be_begun_otherwise(folder: RunFolder) -> None:
    begin(folder, plan())
    begin(folder, plan(epochs=3))
    assert "epochs: 3" in folder.run_file.read_text()
    with LedgerReader(folder.ledger) as ledger:
        assert len(ledger.sessions()) == 1


def test_resuming_where_nothing_is_begins(folder: RunFolder) -> None:
    folder.path.mkdir()
    with opened_ledger(plan(), folder, resume=True) as ledger:
        assert ledger.rollouts() == []


def test_another_run_is_not_continued(folder: RunFolder) -> None:
    begin(folder, plan())
    assert "holds the run 'one', not 'two'" in refusal(folder, plan("two"))


def test_a_changed_field_is_named(folder: RunFolder) -> None:
    begin(folder, plan())
    assert "spec.algorithm.epochs: 3, not 1" in refusal(folder, plan(epochs=3))


def test_a_changed_task_is_named(folder: RunFolder) -> None:
    begin(folder, plan())
    assert "task t" in refusal(folder, plan(digest="sha256:b"))


def test_more_updates_may_be_asked_for(folder: RunFolder) -> None:
    begin(folder, plan())
    with opened_ledger(plan().with_updates(9), folder, resume=True):
        assert "updates: 9" in folder.run_file.read_text()


def test_a_falling_learning_rate_fixes_the_number_of_updates(folder: RunFolder) -> None:
    falling = plan(scheduler={"kind": "Cosine"})
    begin(folder, falling)
    assert "planned for 4 updates" in refusal(folder, falling.with_updates(9))


def test_after_the_exam_no_more_updates_are_learned(folder: RunFolder) -> None:
    begin(folder, plan())
    with opened_ledger(plan(), folder, resume=True) as ledger:
        ledger.record_sealed([])
    assert "closed" in refusal(folder, plan().with_updates(9))


def test_a_closed_run_can_be_opened_for_its_report(folder: RunFolder) -> None:
    begin(folder, plan())
    with opened_ledger(plan(), folder, resume=True) as ledger:
        ledger.record_sealed([])
    finished = plan().with_updates(0)
    with opened_ledger(finished, folder, resume=True) as ledger:
        assert ledger.fact("closed") == "sealed"


@pytest.mark.parametrize(
    ("error", "ending"), [(None, "finished"), (KeyboardInterrupt, "interrupted"), (RuntimeError, "failed")]
)
def test_a_session_says_how_it_ended(
    folder: RunFolder, error: type[BaseException] | None, ending: str
) -> None:
    folder.path.mkdir()
    try:
        with opened_ledger(plan(), folder, resume=False):
            if error is not None:
                raise error
    except (KeyboardInterrupt, RuntimeError):
        pass
    with LedgerReader(folder.ledger) as ledger:
        ((started, ended, said),) = ledger.sessions()
    assert said == ending
    assert ended is not None
    assert ended >= started


def test_a_kill_while_a_run_begins_leaves_a_folder_that_can_be_begun(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.path.mkdir()

    def dying(*_: Any) -> Ledger:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "create", dying)
        with pytest.raises(KeyboardInterrupt), opened_ledger(plan(), folder, resume=False):
            pass
    begin(folder, plan())
    with LedgerReader(folder.ledger) as ledger:
        assert ledger.fact("name") == "one"


def test_a_run_file_of_the_users_is_never_overwritten(folder: RunFolder) -> None:
    folder.path.mkdir()
    folder.run_file.write_text("my own")
    assert "choose another --dir" in refusal(folder, plan(), resume=False)
    assert folder.run_file.read_text() == "my own"
