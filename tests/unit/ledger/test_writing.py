"""One writer, each method one transaction, nothing written twice."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.rollout import Outcome
from mlwright_trainer.ledger import (
    Ledger,
    LedgerError,
    LedgerReader,
    Sampled,
    SealedScore,
    UpdateRow,
    WindowRow,
)


def test_a_round_is_committed_whole_or_not_at_all(ledger: Ledger, path: Path, make_sample: Any) -> None:
    twice = [make_sample(0), make_sample(1), make_sample(1, id="other")]
    with pytest.raises(LedgerError, match="UNIQUE"):
        ledger.commit_round(twice)
    with LedgerReader(path) as reader:
        assert reader.rollouts() == []


def test_an_exception_in_the_middle_of_a_round_leaves_nothing(
    ledger: Ledger, make_sample: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []

    def insert(table: str, values: Any, *, replace: bool = False) -> None:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(values)
        original(table, values, replace=replace)

    original = ledger._insert
    monkeypatch.setattr(ledger, "_insert", insert)
    with pytest.raises(KeyboardInterrupt):
        ledger.commit_round([make_sample(position) for position in range(4)])
    assert len(written) == 2
    assert ledger.rollouts() == []


def test_after_a_failed_transaction_the_ledger_can_still_be_written(ledger: Ledger, make_sample: Any) -> None:
    with pytest.raises(LedgerError):
        ledger.commit_round([make_sample(0), make_sample(0)])
    ledger.commit_round([make_sample(0)])
    assert [row.id for row in ledger.rollouts()] == ["r-0"]


def test_samples_without_a_sandbox_are_closed_with_their_round(
    ledger: Ledger, make_sample: Any, make_result: Any
) -> None:
    unparsed = make_result(Outcome.UNPARSED, -0.5)
    ledger.commit_round([make_sample(0, result=unparsed, script=None, tree=None), make_sample(1)])
    assert [row.outcome for row in ledger.rollouts()] == [Outcome.UNPARSED, None]
    assert [row.id for row in ledger.open_rollouts("Train")] == ["r-1"]


def test_a_row_closes_once(ledger: Ledger, make_sample: Any, make_result: Any) -> None:
    ledger.commit_round([make_sample(0)])
    ledger.close_rollout("r-0", make_result(reward=0.5))
    with pytest.raises(LedgerError, match="'r-0' is not open"):
        ledger.close_rollout("r-0", make_result(Outcome.ERROR, -0.5))
    assert ledger.rollout("r-0").reward == 0.5
    assert ledger.rollout("r-0").outcome is Outcome.SCORED


@pytest.mark.parametrize("act", ["launch", "close"])
def test_a_row_that_is_not_there_is_an_error(ledger: Ledger, make_result: Any, act: str) -> None:
    with pytest.raises(LedgerError, match="not open"):
        ledger.launch("nobody") if act == "launch" else ledger.close_rollout("nobody", make_result())


def test_a_closed_row_is_not_launched_again(ledger: Ledger, make_sample: Any, make_result: Any) -> None:
    ledger.commit_round([make_sample(0)])
    ledger.close_rollout("r-0", make_result())
    with pytest.raises(LedgerError, match="not open"):
        ledger.launch("r-0")


def test_interrupted_rollouts_come_before_those_that_never_ran(ledger: Ledger, make_sample: Any) -> None:
    ledger.commit_round([make_sample(position) for position in range(3)])
    ledger.launch("r-2", window=4, offset=1.5)
    assert [row.id for row in ledger.open_rollouts("Train")] == ["r-2", "r-0", "r-1"]
    assert ledger.rollout("r-2").window == 4
    assert ledger.rollout("r-2").window_offset == 1.5


def test_the_start_that_the_sandbox_measured_replaces_the_launch(
    ledger: Ledger, make_sample: Any, make_result: Any
) -> None:
    ledger.commit_round([make_sample(0)])
    ledger.launch("r-0", window=0, offset=0.2)
    ledger.close_rollout("r-0", make_result(started_at=123.0, window_offset=0.75))
    assert ledger.rollout("r-0").launched_at == 123.0
    assert ledger.rollout("r-0").window_offset == 0.75


def batch_ids(ledger: Ledger, number: int) -> list[str]:
    batch = ledger.batch(number)
    assert batch is not None
    return [row.id for row in batch.rows]


def closed(ledger: Ledger, samples: list[Sampled], results: list[Any]) -> None:
    ledger.commit_round(samples)
    for sample, result in zip(samples, results, strict=True):
        ledger.close_rollout(sample.id, result)


def test_a_batch_is_the_same_at_every_asking_and_in_the_order_given(
    ledger: Ledger, path: Path, make_sample: Any, make_result: Any
) -> None:
    closed(ledger, [make_sample(i) for i in range(3)], [make_result() for _ in range(3)])
    ledger.assign_batch(0, ["r-2", "r-0"])
    asked = [ledger.batch(0) for _ in range(3)]
    with LedgerReader(path) as reader:
        asked.append(reader.batch(0))
    assert all(batch == asked[0] for batch in asked)
    assert batch_ids(ledger, 0) == ["r-2", "r-0"]
    assert ledger.unassigned() == ["r-1"]
    assert ledger.batch_sizes() == {0: 2}


def test_a_batch_is_assigned_once(ledger: Ledger, make_sample: Any, make_result: Any) -> None:
    closed(ledger, [make_sample(i) for i in range(2)], [make_result() for _ in range(2)])
    ledger.assign_batch(0, ["r-0"])
    with pytest.raises(LedgerError, match="UNIQUE"):
        ledger.assign_batch(0, ["r-1"])
    assert batch_ids(ledger, 0) == ["r-0"]


def test_a_row_belongs_to_one_batch_and_a_refused_batch_leaves_nothing(
    ledger: Ledger, make_sample: Any, make_result: Any
) -> None:
    closed(ledger, [make_sample(i) for i in range(2)], [make_result() for _ in range(2)])
    ledger.assign_batch(0, ["r-0"])
    with pytest.raises(LedgerError, match="'r-0' belongs to a batch already"):
        ledger.assign_batch(1, ["r-1", "r-0"])
    assert ledger.batch(1) is None
    assert ledger.batches() == 1
    assert ledger.unassigned() == ["r-1"]


@pytest.mark.parametrize("purpose", ["Before", "After", "Evaluation"])
def test_only_training_rows_can_be_trained(
    ledger: Ledger, make_sample: Any, make_result: Any, purpose: str
) -> None:
    closed(ledger, [make_sample(0, purpose=purpose)], [make_result()])
    with pytest.raises(LedgerError, match="CHECK"):
        ledger.assign_batch(0, ["r-0"])
    assert ledger.batches() == 0


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.INFRASTRUCTURE_FAILED])
def test_a_row_without_reward_is_never_trained(
    ledger: Ledger, make_sample: Any, make_result: Any, outcome: Outcome
) -> None:
    closed(ledger, [make_sample(0)], [make_result(outcome, None)])
    assert ledger.unassigned() == []
    with pytest.raises(LedgerError, match="CHECK"):
        ledger.assign_batch(0, ["r-0"])


def test_rows_wait_for_a_batch_in_the_order_in_which_they_finished(
    ledger: Ledger, make_sample: Any, make_result: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = iter([0.0, 5.0, 3.0, 4.0])
    monkeypatch.setattr("mlwright_trainer.ledger.store.time.time", lambda: next(moments))
    ledger.commit_round([make_sample(position) for position in range(3)])
    for position in (1, 0, 2):
        ledger.close_rollout(f"r-{position}", make_result())
    assert ledger.unassigned() == ["r-0", "r-2", "r-1"]


def test_the_same_weights_may_be_published_again_and_other_ones_may_not(ledger: Ledger) -> None:
    first = UpdateRow(1, "a" * 64, {"kl": 0.01}, 5.0)
    ledger.record_update(first)
    ledger.record_update(UpdateRow(1, "a" * 64, {"kl": 0.9}, 9.0))
    assert ledger.updates() == [first]
    with pytest.raises(LedgerError, match="not reproducible"):
        ledger.record_update(UpdateRow(1, "b" * 64, {}, 9.0))
    assert ledger.updates() == [first]


def test_the_sealed_grading_is_written_once_and_closes_the_run(ledger: Ledger, make_sample: Any) -> None:
    ledger.commit_round([make_sample(0)])
    score = SealedScore("best", "r-0", "d", "Valid", score=0.9, interval=(0.8, 0.95))
    assert ledger.fact("closed") is None
    ledger.record_sealed([score])
    assert ledger.fact("closed") == "sealed"
    assert ledger.sealed() == [score]
    with pytest.raises(LedgerError, match="UNIQUE"):
        ledger.record_sealed([score])


def test_a_sealed_score_of_no_rollout_is_refused_and_leaves_the_run_open(ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="FOREIGN KEY"):
        ledger.record_sealed([SealedScore("x", "nobody", "d", "Valid")])
    assert ledger.fact("closed") is None


def test_a_window_is_overwritten_and_a_phase_is_added(ledger: Ledger) -> None:
    ledger.record_window(WindowRow(0, 2.0, 1.0, closed=False))
    ledger.record_window(WindowRow(0, 2.0, 2.0, closed=True, missing_mass=0.02))
    assert ledger.windows() == [WindowRow(0, 2.0, 2.0, True, 0.02)]
    ledger.record_phase("sampling", started_at=1.0, seconds=2.0, round=0)
    ledger.record_phase("sampling", started_at=4.0, seconds=0.5)
    assert ledger.phase_seconds() == {"sampling": 2.5}


def test_sessions_are_numbered_from_one_and_an_open_one_has_no_end(ledger: Ledger) -> None:
    assert ledger.start_session() == 1
    assert ledger.start_session() == 2
    ledger.end_session(1, "interrupted")
    ends = [(end is None, ending) for _, end, ending in ledger.sessions()]
    assert ends == [(False, "interrupted"), (True, "")]


def test_launches_of_a_window_hold_the_cancelled_and_leave_out_the_lost(
    ledger: Ledger, make_sample: Any, make_result: Any
) -> None:
    ledger.commit_round([make_sample(position) for position in range(4)])
    for position, outcome in enumerate([Outcome.SCORED, Outcome.CANCELLED, Outcome.INFRASTRUCTURE_FAILED]):
        ledger.launch(f"r-{position}", window=0, offset=position / 10)
        ledger.close_rollout(
            f"r-{position}", make_result(outcome, None if position else 0.5, seconds=position + 1.0)
        )
    launches = ledger.launches(0)
    assert [(launch.offset, launch.seconds, launch.finished) for launch in launches] == [
        (0.0, 1.0, True),
        (0.1, 2.0, False),
    ]


def test_a_full_disk_is_one_clear_error_and_leaves_the_ledger_as_it_was(
    ledger: Ledger, make_sample: Any
) -> None:
    pages = ledger._database.execute("PRAGMA page_count").fetchone()[0]
    ledger.commit_round([make_sample(0)])
    ledger._database.execute(f"PRAGMA max_page_count = {pages + 1}")
    bulky = [make_sample(position, response="x" * 20_000) for position in range(1, 20)]
    with pytest.raises(LedgerError, match="disk is full"):
        ledger.commit_round(bulky)
    assert [row.id for row in ledger.rollouts()] == ["r-0"]
    ledger._database.execute("PRAGMA max_page_count = 100000")
    ledger.commit_round(bulky)
    assert len(ledger.rollouts()) == 20


def test_a_second_writer_waits_for_the_first_and_then_says_so(
    path: Path, ledger: Ledger, make_sample: Any
) -> None:
    with Ledger(path) as second:
        second._database.execute("PRAGMA busy_timeout = 20")
        ledger._database.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="locked"):
            second.commit_round([make_sample(0)])
        ledger._database.execute("ROLLBACK")
        second.commit_round([make_sample(0)])
    assert [row.id for row in ledger.rollouts()] == ["r-0"]


def test_what_was_written_survives_a_writer_that_never_closes(path: Path, make_sample: Any) -> None:
    killed = Ledger.create(path, {})
    killed.commit_round([make_sample(0)])
    with LedgerReader(path) as reader:
        assert [row.id for row in reader.rollouts()] == ["r-0"]
    killed._database.execute("BEGIN IMMEDIATE")
    killed._database.execute("DELETE FROM rollouts")
    del killed
    with LedgerReader(path) as reader:
        assert [row.id for row in reader.rollouts()] == ["r-0"]


def test_there_is_only_one_ledger_in_a_place(path: Path, ledger: Ledger) -> None:
    with pytest.raises(LedgerError, match="there is a ledger already"):
        Ledger.create(path, {})


def test_an_unfinished_creation_is_taken_over(path: Path) -> None:
    path.with_suffix(".new").write_bytes(b"half a ledger")
    with Ledger.create(path, {"name": "demo"}) as ledger:
        assert ledger.facts() == {"name": "demo"}
    assert not path.with_suffix(".new").exists()


def test_writes_are_fully_synchronised(ledger: Ledger) -> None:
    pragmas = ("journal_mode", "synchronous", "foreign_keys")
    assert [ledger._database.execute(f"PRAGMA {name}").fetchone()[0] for name in pragmas] == ["wal", 2, 1]


def test_the_schema_refuses_an_outcome_without_its_end(ledger: Ledger, make_sample: Any) -> None:
    ledger.commit_round([make_sample(0)])
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        ledger._database.execute("UPDATE rollouts SET outcome = 'Scored'")
