"""A run in which no script was valid says so, and claims neither a comparison nor a reading of Final."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from mlwright_api.rollout import Outcome
from mlwright_trainer.command import report as report_command
from mlwright_trainer.command import show as show_command
from mlwright_trainer.errors import UserError
from mlwright_trainer.report import RunReport, SeveralRuns, closing_sentence, load_report, render_page
from mlwright_trainer.report.model import ReasonReport, RolloutCounts, RunState
from mlwright_trainer.report.notes import no_valid_script
from mlwright_trainer.report.tiles import FAILURES, run_tiles
from typer.testing import CliRunner

MakeRun = Callable[..., Path]
HOPELESS = {"hopeless": True, "updates": 2, "planned": 2}
app = typer.Typer()
report_command.register(app)
show_command.register(app)


def one(folder: Path) -> RunReport:
    report = load_report([folder])
    assert isinstance(report, RunReport)
    return report


def counts(**by_outcome: int) -> RolloutCounts:
    found = {Outcome(name): count for name, count in by_outcome.items()}
    return RolloutCounts(total=sum(found.values()), open=0, by_outcome=found, by_purpose={})


def reason(outcome: Outcome, text: str, count: int) -> ReasonReport:
    return ReasonReport(outcome=outcome, reason=text, count=count, example="a")


def test_the_note_and_the_closing_sentence_name_the_most_frequent_reason(make_run: MakeRun) -> None:
    report = one(make_run(**HOPELESS))
    expected = "No valid script among 176 rollouts: the most frequent reason was KeyError: 'Churn' (Error, 176 times)."
    assert report.notes == [expected]
    assert closing_sentence(report) == expected
    assert expected.replace("'", "&#39;") in render_page(report)


def test_the_command_prints_that_sentence_once(make_run: MakeRun, tmp_path: Path) -> None:
    arguments = ["report", str(make_run(**HOPELESS)), "--out", str(tmp_path / "page.html")]
    result = CliRunner().invoke(app, arguments)
    assert result.stdout.splitlines()[0] == closing_sentence(one(make_run(**HOPELESS)))
    assert result.stdout.count("No valid script") == 1


def test_the_tile_shows_no_baseline_as_if_it_were_measured(make_run: MakeRun) -> None:
    hopeless = one(make_run(**HOPELESS))
    tile = next(tile for tile in run_tiles(hopeless) if tile.label == FAILURES)
    assert (tile.value, tile.interval, tile.before) == ("–", "", "")
    assert "0.500 [0.500, 0.500]" not in render_page(hopeless)
    usual = next(tile for tile in run_tiles(one(make_run())) if tile.label == FAILURES)
    assert usual.value != "–"
    assert "a failure counts as the constant predictor's score" in usual.detail


def test_a_run_with_a_valid_script_has_no_such_note() -> None:
    assert list(no_valid_script(RunState.SEALED, counts(Error=9, Trivial=1), [])) == []
    assert list(no_valid_script(RunState.OPEN, counts(Cancelled=2), [])) == []


def test_a_reason_that_says_nothing_of_the_policy_is_not_the_one() -> None:
    reasons = [reason(Outcome.CANCELLED, "the window closed", 9), reason(Outcome.ERROR, "boom", 2)]
    found = list(no_valid_script(RunState.OPEN, counts(Cancelled=9, Error=2), reasons))
    assert found == [
        "No valid script so far among 2 rollouts: the most frequent reason was boom (Error, 2 times)."
    ]


def test_without_reasons_the_outcome_is_named() -> None:
    assert "was Timeout (2 times)" in next(no_valid_script(RunState.SEALED, counts(Error=1, Timeout=2), []))


def test_a_hostile_reason_stays_one_harmless_line() -> None:
    hostile = [reason(Outcome.ERROR, "\x1b[2Jfirst\nsecond " + "x" * 500, 1)]
    sentence = next(no_valid_script(RunState.SEALED, counts(Error=1), hostile))
    assert "\\x1b[2Jfirst second" in sentence
    assert not {"\x1b", "\n"} & set(sentence)
    assert len(sentence) < 300


def test_final_that_was_not_read_is_not_said_to_be(make_run: MakeRun) -> None:
    report = one(make_run(**HOPELESS))
    assert (report.state, report.final_reads) == (RunState.SEALED, 0)
    page = render_page(report)
    assert "<b>Final</b> was not read: no submission was there to be graded on it." in page
    assert "was read once" not in page
    assert one(make_run()).final_reads > 0


def test_show_says_why_a_sealed_run_has_no_best_script(make_run: MakeRun) -> None:
    for sealed, words in ((True, "no script of the run was valid"), (False, "not sealed yet")):
        arguments = ["show", str(make_run(**HOPELESS, sealed=sealed)), "best"]
        with pytest.raises(UserError, match=words):
            CliRunner().invoke(app, arguments, catch_exceptions=False)


def test_sealed_runs_are_not_said_to_be_unsealed_because_one_has_nothing_valid(make_run: MakeRun) -> None:
    report = load_report([make_run(**HOPELESS), make_run(seed=1, updates=2, planned=2)])
    assert isinstance(report, SeveralRuns)
    assert not any("sealed" in note for note in report.seeds.notes)
    assert any("No valid script among" in note for note in report.seeds.notes)
    mixed = load_report([make_run(), make_run(seed=1, sealed=False)])
    assert isinstance(mixed, SeveralRuns)
    assert any("not every run has been sealed" in note for note in mixed.seeds.notes)


def test_several_runs_without_a_valid_script_have_no_mean_of_baselines(make_run: MakeRun) -> None:
    report = load_report([make_run(**HOPELESS), make_run(**HOPELESS, seed=1)])
    assert isinstance(report, SeveralRuns)
    assert report.seeds.fresh.after_score_with_failures is None
    assert closing_sentence(report) == report.seeds.sentence
