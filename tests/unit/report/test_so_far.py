"""A report of a run that is not over: nothing is claimed that the rest of it could take back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_trainer.report import RunReport, SeveralRuns, closing_sentence, load_report, render_page
from mlwright_trainer.report.tiles import run_tiles

MakeRun = Callable[..., Path]
OPEN = {"closing_open": 20, "sealed": False, "ended": ""}


def one(folder: Path) -> RunReport:
    report = load_report([folder])
    assert isinstance(report, RunReport)
    return report


def test_while_closing_samples_are_open_no_change_is_claimed(make_run: MakeRun) -> None:
    report = one(make_run(**OPEN))
    sentence = closing_sentence(report)
    assert "so far (44 of 64)" in sentence
    assert "no change is claimed" in sentence
    assert not any(claim in sentence for claim in (" rose ", " fell ", "no clear change"))
    assert "rose from" in closing_sentence(one(make_run(sealed=False)))


def test_numbers_of_the_difference_wait_for_the_last_sample(make_run: MakeRun) -> None:
    difference = one(make_run(**OPEN)).fresh.difference
    assert difference is not None
    numbers = difference.model_dump(exclude={"sentence"})
    assert len(numbers) == 6
    assert set(numbers.values()) == {None}


def test_tiles_and_page_compare_nothing_yet(make_run: MakeRun) -> None:
    report = one(make_run(**OPEN))
    assert not any(tile.before for tile in run_tiles(report))
    page = render_page(report)
    assert "20 of the 64 samples after learning are still open" in page
    assert "finished" not in page.split("<h1>")[0].split("<body>")[1]
    assert "after − before" not in page
    assert "After, so far" in page
    assert report.milestones[1].label == "Fresh, after, so far"
    assert one(make_run()).milestones[1].label == "Fresh, after"


def test_a_run_with_open_closing_samples_is_left_out_of_the_mean_over_runs(make_run: MakeRun) -> None:
    report = load_report([make_run(**OPEN), make_run(seed=1, sealed=False), make_run(seed=2, sealed=False)])
    assert isinstance(report, SeveralRuns)
    after = report.seeds.fresh.after_valid_fraction
    assert after is not None
    assert after.n == 2
    assert any("closing samples of 1 run of 3 are still open" in note for note in report.seeds.notes)


def test_one_update_has_one_batch(make_run: MakeRun) -> None:
    fields = {"after": False, "sealed": False, "ended": ""}
    single = closing_sentence(one(make_run(updates=1, **fields)))
    assert "So far 1 update: mean reward" in single
    assert "in the only batch" in single
    assert "in the last" not in single
    assert "in the last" in closing_sentence(one(make_run(updates=2, **fields)))


def test_commands_on_the_page_work_from_where_one_stands(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = make_run()
    monkeypatch.chdir(folder.parent.parent)
    page = render_page(one(folder))
    below = f"{folder.parent.name}/{folder.name}"
    assert f"mlwright show {below} ROLLOUT" in page
    assert str(folder.parent.parent) not in page
    monkeypatch.chdir(tmp_path)
    assert f"mlwright replay {folder}" in render_page(one(folder))
    assert str(folder) not in one(folder).model_dump_json()


def test_a_folder_with_a_blank_or_a_hyphen_is_one_argument_of_the_command(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copied = tmp_path / "-own run"
    copied.mkdir()
    for name in ("run.yaml", "ledger.sqlite"):
        (copied / name).write_bytes((make_run() / name).read_bytes())
    monkeypatch.chdir(tmp_path)
    assert one(copied).argument == "'./-own run'"
    monkeypatch.chdir(copied)
    assert one(copied).argument == "."
