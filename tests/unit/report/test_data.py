"""A run's report as data: the contract of `mlwright report --json`, and every kind of run."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from mlwright_api.mltask import Split
from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import Ledger, LedgerReader
from mlwright_trainer.report import RunReport, load_report
from mlwright_trainer.report.model import RunState
from mlwright_trainer.report.scripts import Families

MakeRun = Callable[..., Path]


def one(folder: Path) -> RunReport:
    report = load_report([folder])
    assert isinstance(report, RunReport)
    return report


def test_the_document_has_every_field_that_the_design_names(make_run: MakeRun) -> None:
    document = json.loads(one(make_run()).model_dump_json(by_alias=True))
    assert document["updates"] == 12
    assert set(document["rollouts"]) >= {"total", "byOutcome"}
    assert set(document["trained"]) >= {"rows", "distinct"}
    assert set(document["perUpdate"][0]) >= {
        "update", "rewardMean", "validFraction", "scoreMean", "scoreBest", "executionSecondsMean",
        "effectiveSampleSize",
    }  # fmt: skip
    for group in ("before", "after"):
        assert set(document["fresh"][group]) >= {"n", "validFraction", "scoreMean", "interval"}
    assert set(document["scores"]) >= {"baseline", "reference", "best"}
    assert set(document["scores"]["best"]) == {"Reward", "Selection", "Final"}
    assert len(document["weightsDigest"]) == 64
    assert set(document["seconds"]) >= {"total", "sampling", "execution", "learning"}
    assert document["versions"] == {"mlwright": "0.1.0", "python": "3.11.7", "torch": "2.15.0"}


def test_the_numbers_are_those_of_the_ledger(make_run: MakeRun) -> None:
    folder = make_run()
    report = one(folder)
    with LedgerReader(folder / "ledger.sqlite") as ledger:
        rows = ledger.rollouts()
        digests = [update.digest for update in ledger.updates()]
    batch = [row for row in rows if row.batch == 3]
    scores = [row.status.scores[Split.REWARD] for row in batch if row.status.scores]
    third = report.per_update[3]
    assert report.rollouts.total == len(rows) == sum(report.rollouts.by_outcome.values())
    assert third.rows == len(batch) == 24
    assert third.reward_mean == pytest.approx(sum(row.reward or 0 for row in batch) / 24)
    assert third.score_mean == pytest.approx(sum(scores) / len(scores))
    assert third.score_best == max(scores)
    assert sum(third.by_outcome.values()) == sum(third.by_family.values()) == 24
    assert (report.initial_weights_digest, report.weights_digest) == (digests[0], digests[-1])


def test_no_row_is_trained_twice_and_that_can_be_seen(make_run: MakeRun, tmp_path: Path) -> None:
    report = one(make_run())
    assert report.trained.rows == report.trained.distinct == 12 * 24
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("run.yaml", "ledger.sqlite"):
        (copy / name).write_bytes((make_run() / name).read_bytes())
    database = sqlite3.connect(copy / "ledger.sqlite")
    database.execute(
        "UPDATE rollouts SET batch = 1, batch_position = 99 WHERE batch = 0 AND batch_position = 0"
    )
    database.execute("UPDATE batches SET size = size + 1 WHERE number = 1")
    database.commit()
    database.close()
    assert one(copy).trained.rows == 289
    assert one(copy).trained.distinct == 288


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({}, RunState.SEALED),
        ({"sealed": False}, RunState.FINISHED),
        ({"sealed": False, "closing_open": 20, "ended": ""}, RunState.OPEN),
        ({"sealed": False, "closing_open": 20, "ended": "interrupted"}, RunState.STOPPED),
        ({"sealed": False, "after": False, "ended": "interrupted"}, RunState.STOPPED),
        ({"updates": 3, "after": False, "sealed": False, "ended": "interrupted"}, RunState.STOPPED),
        ({"updates": 3, "after": False, "sealed": False, "ended": ""}, RunState.OPEN),
        ({"updates": 0, "fresh": 0, "after": False, "sealed": False, "ended": ""}, RunState.OPEN),
    ],
)
def test_a_run_says_how_far_it_has_come(
    make_run: MakeRun, fields: dict[str, object], state: RunState
) -> None:
    report = one(make_run(**fields))
    assert report.state is state
    assert report.updates == fields.get("updates", 12)
    assert report.planned_updates == 12


def test_a_run_that_has_only_begun_has_a_report(make_run: MakeRun) -> None:
    report = one(make_run(updates=0, fresh=0, after=False, sealed=False, ended=""))
    assert not any([report.per_update, report.best_scripts, report.milestones, report.prompt_kinds])
    assert report.fresh.before is report.fresh.after is None
    assert report.trained.rows == report.rollouts.total == 0
    assert report.scores.best == {}
    assert report.scores.baseline == 0.5


def test_a_batch_that_is_assigned_and_not_learned_from_is_not_trained(
    make_run: MakeRun, tmp_path: Path
) -> None:
    source = make_run(updates=3, after=False, sealed=False, ended="")
    copy = tmp_path / "run"
    copy.mkdir()
    for name in ("run.yaml", "ledger.sqlite"):
        (copy / name).write_bytes((source / name).read_bytes())
    database = sqlite3.connect(copy / "ledger.sqlite")
    database.execute("DELETE FROM updates WHERE version = 3")
    database.commit()
    database.close()
    report = one(copy)
    assert report.trained.rows == 48
    assert [update.published for update in report.per_update] == [True, True, False]
    assert report.durations.trained < report.durations.finished


def test_the_time_of_a_killed_process_ends_with_what_it_wrote_last(
    builder: ModuleType, tmp_path: Path
) -> None:
    builder.write_settings(tmp_path, builder.Scenario())
    clock = builder.Clock(1000.0)
    with clock.ticking(), Ledger.create(tmp_path / "ledger.sqlite", {}) as ledger:
        ledger.start_session()
        ledger.record_phase("sampling", started_at=1000.0, seconds=30.0)
        clock.now = 50_000.0
        number = ledger.start_session()
        ledger.record_phase("learning", started_at=50_000.0, seconds=10.0)
        clock.now = 50_020.0
        ledger.end_session(number, "finished")
    seconds = one(tmp_path).seconds
    assert seconds.total == pytest.approx(50, abs=0.2)
    assert (seconds.sampling, seconds.learning) == (30.0, 10.0)
    assert seconds.other == pytest.approx(10, abs=0.2)


def test_overlapping_phases_leave_no_negative_rest(builder: ModuleType, tmp_path: Path) -> None:
    builder.write_settings(tmp_path, builder.Scenario())
    with builder.Clock(1000.0).ticking(), Ledger.create(tmp_path / "ledger.sqlite", {}) as ledger:
        number = ledger.start_session()
        for kind in ("sampling", "execution"):
            ledger.record_phase(kind, started_at=1000.0, seconds=30.0)
        ledger.end_session(number, "finished")
    assert one(tmp_path).seconds.other == 0


def test_durations_account_for_every_training_row(make_run: MakeRun) -> None:
    report = one(make_run(mode="Window", seed=3, batch_size=40))
    durations = report.durations
    assert durations.launched == durations.finished + durations.cancelled + durations.infrastructure_failed
    assert durations.launched + durations.not_launched == report.rollouts.by_purpose["Train"]
    for name in ("launched", "finished", "trained", "cancelled"):
        assert sum(getattr(bucket, name) for bucket in durations.buckets) == getattr(durations, name)
    assert durations.cancelled > 0
    assert durations.missing_mass == 0.01
    highs = [bucket.high for bucket in durations.buckets[:-1]]
    assert highs == [bucket.low for bucket in durations.buckets[1:]]


def test_prompt_kinds_compare_children_with_their_parents(make_run: MakeRun) -> None:
    drafts, improvements = one(make_run(improve=0.5, seed=1)).prompt_kinds
    assert (drafts.kind, improvements.kind) == ("draft", "improve")
    assert drafts.compared == 0
    assert 0 < improvements.better_than_parent < improvements.compared <= improvements.valid
    assert drafts.rollouts + improvements.rollouts == 12 * 24


def test_children_of_a_loss_are_better_when_lower(make_run: MakeRun) -> None:
    kinds = {kind.kind: kind for kind in one(make_run(improve=0.5, seed=1, metric="rmse")).prompt_kinds}
    share = kinds["improve"].better_than_parent / kinds["improve"].compared
    same = {kind.kind: kind for kind in one(make_run(improve=0.5, seed=1)).prompt_kinds}
    assert share == pytest.approx(same["improve"].better_than_parent / same["improve"].compared, abs=0.1)


def test_the_best_script_is_the_one_that_the_sealed_grading_read(make_run: MakeRun) -> None:
    report = one(make_run())
    (best,) = report.best_scripts
    with LedgerReader(make_run() / "ledger.sqlite") as ledger:
        (sealed,) = [score for score in ledger.sealed() if score.subject == "best"]
    assert best.rollout == sealed.rollout
    assert best.scores[Split.FINAL] == report.scores.best[Split.FINAL] == sealed.score
    assert report.scores.best_interval == sealed.interval
    assert "HistGradientBoosting" in best.source or "RandomForest" in best.source


def test_before_the_sealed_grading_the_best_script_has_no_final_score(make_run: MakeRun) -> None:
    report = one(make_run(sealed=False))
    assert set(report.scores.best) == {Split.REWARD, Split.SELECTION}
    assert report.scores.best_interval is None


def test_a_changed_best_file_is_noticed(make_run: MakeRun, builder: ModuleType, tmp_path: Path) -> None:
    assert one(make_run()).notes == []
    folder = builder.build_run(tmp_path / "run", builder.Scenario())
    (folder / "best" / "script.py").write_text("print('better')")
    assert one(folder).notes == [
        "best/script.py differs from the best script in the ledger; the ledger's is shown."
    ]


def test_several_tasks_are_told_apart_and_together(make_run: MakeRun) -> None:
    report = one(make_run(tasks=("churn", "houses"), metric="rmse", seed=4))
    assert report.score_scale.name == "normalized"
    assert [task.name for task in report.tasks] == ["churn", "houses"]
    assert sum(task.rollouts for task in report.tasks) == report.rollouts.total
    for task in report.tasks:
        assert task.fresh.after is not None
        assert task.fresh.after.n == 32
        assert task.fresh.after.score_mean is not None
        assert 0.3 < task.fresh.after.score_mean < 1.2
    assert len(report.best_scripts) == 2


def test_a_run_whose_tasks_are_unknown_says_what_it_cannot_say(make_run: MakeRun) -> None:
    report = one(make_run(with_tasks=False, sealed=False))
    assert report.score_scale.direction is None
    assert report.best_scripts == []
    assert "metric, direction and references are unknown" in report.notes[-1]


def test_a_script_without_a_model_is_a_family_of_its_own(make_run: MakeRun) -> None:
    with LedgerReader(make_run() / "ledger.sqlite") as ledger:
        row = next(row for row in ledger.rollouts() if row.script is not None)
        bare = next(row for row in ledger.rollouts() if row.script is None)
    family = Families()
    assert family(replace(row, script="print(1)", tree="a")) == "no known model"
    assert family(replace(row, script="def (", tree=None)) == "not Python"
    assert family(bare) == "no script"
    assert family(replace(row, script="import this", tree="a")) == "no known model"


def test_reasons_alike_but_for_numbers_are_one(make_run: MakeRun) -> None:
    reasons = one(make_run()).reasons
    assert [reason.count for reason in reasons] == sorted((reason.count for reason in reasons), reverse=True)
    assert len({reason.reason for reason in reasons}) == len(reasons)


def test_plain_processes_and_missing_receipts_are_caveats(builder: ModuleType, tmp_path: Path) -> None:
    folder = builder.build_run(tmp_path / "run", builder.Scenario(updates=1, planned=1, sealed=False))
    database = sqlite3.connect(folder / "ledger.sqlite")
    database.execute("""UPDATE rollouts SET isolation = json_set(isolation, '$.backend', 'Plain') WHERE round = 0
                        AND purpose = 'Train'""")
    database.execute("UPDATE rollouts SET isolation = NULL WHERE purpose = 'After'")
    database.commit()
    database.close()
    notes = one(folder).notes
    assert "ran as plain processes without isolation: their scores can be forged" in notes[0]
    assert "without a receipt" in notes[1]


@pytest.mark.parametrize("missing", ["run.yaml", "ledger.sqlite"])
def test_a_folder_that_is_no_run_is_the_users_mistake(
    tmp_path: Path, make_run: MakeRun, missing: str
) -> None:
    for name in {"run.yaml", "ledger.sqlite"} - {missing}:
        (tmp_path / name).write_bytes((make_run() / name).read_bytes())
    with pytest.raises(UserError, match=f"{missing} is missing"):
        load_report([tmp_path])


def test_a_folder_that_is_not_there_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        load_report([tmp_path / "nowhere"])
    with pytest.raises(UserError, match="name at least one"):
        load_report([])


def test_settings_that_are_no_run_are_the_users_mistake(tmp_path: Path, make_run: MakeRun) -> None:
    (tmp_path / "ledger.sqlite").write_bytes((make_run() / "ledger.sqlite").read_bytes())
    (tmp_path / "run.yaml").write_text("kind: [")
    with pytest.raises(UserError, match=r"run\.yaml"):
        load_report([tmp_path])


def test_a_run_is_not_counted_twice(make_run: MakeRun) -> None:
    folder = make_run()
    with pytest.raises(UserError, match="named twice"):
        load_report([folder, folder / ".." / folder.name])


def test_the_report_is_the_same_at_every_asking(make_run: MakeRun) -> None:
    assert one(make_run()) == one(make_run())


def test_no_path_of_the_machine_is_in_the_document(make_run: MakeRun) -> None:
    assert str(make_run().parent) not in one(make_run()).model_dump_json()


@pytest.mark.slow
def test_two_thousand_rollouts_take_less_than_three_seconds_of_computing(make_run: MakeRun) -> None:
    from mlwright_trainer.report import render_page

    folder = make_run(seed=6, updates=40, planned=40, batch_size=48, improve=0.3)
    render_page(load_report([make_run()]))
    began = time.process_time()
    page = render_page(load_report([folder]))
    assert time.process_time() - began < 3
    assert len(page) < 1_000_000
