"""Several runs together: a run is one value, and what spoils a comparison is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from mlwright_trainer.report import SeveralRuns, load_report
from mlwright_trainer.report.intervals import t_interval
from mlwright_trainer.report.seeds import differing_settings, over_runs

MakeRun = Callable[..., Path]


def several(*folders: Path) -> SeveralRuns:
    report = load_report(folders)
    assert isinstance(report, SeveralRuns)
    return report


def test_the_interval_is_students_over_runs_not_over_samples(make_run: MakeRun) -> None:
    report = several(*(make_run(seed=seed) for seed in (0, 11, 12)))
    means = [run.fresh.after.score_mean for run in report.runs if run.fresh.after]
    estimate = report.seeds.fresh.after_score_mean
    assert estimate is not None
    assert estimate.n == 3
    assert estimate.interval == t_interval([mean for mean in means if mean is not None])
    assert report.seeds.notes == []


def test_differences_are_taken_within_runs(make_run: MakeRun) -> None:
    report = several(*(make_run(seed=seed) for seed in (0, 11, 12)))
    differences = [run.fresh.difference.score_mean for run in report.runs if run.fresh.difference]
    estimate = report.seeds.fresh.difference_score_mean
    assert estimate is not None
    assert estimate.interval == t_interval([each for each in differences if each is not None])
    assert report.seeds.sentence.startswith("Over 3 runs, the valid fraction rose from")


def test_runs_of_different_length_are_averaged_where_they_overlap(make_run: MakeRun) -> None:
    report = several(make_run(), make_run(seed=2, updates=5, after=False, sealed=False, ended=""))
    counts = [each.reward_mean.n for each in report.seeds.per_update if each.reward_mean]
    assert counts == [2] * 5 + [1] * 7
    assert report.seeds.notes[0] == "1 run of 2 did not reach the last update yet."
    assert "different splits" in report.seeds.notes[1]


def test_runs_with_other_settings_are_not_repetitions(make_run: MakeRun) -> None:
    report = several(make_run(), make_run(seed=1, improve=0.5))
    assert report.seeds.differing == ["spec.prompts.improveFraction"]
    assert "not repetitions" in report.seeds.notes[0]


def test_runs_that_share_a_seed_are_not_independent(make_run: MakeRun) -> None:
    report = several(make_run(), make_run(ended="failed"))
    assert "share a seed" in report.seeds.notes[0]


def test_the_seed_is_no_difference_and_a_missing_field_is_one() -> None:
    runs = [
        {"spec": {"seed": 1, "a": {"b": 1}, "c": []}},
        {"spec": {"seed": 2, "a": {"b": 1}, "c": [], "d": 0}},
    ]
    assert differing_settings(runs) == ["spec.d"]


def test_a_share_over_runs_stays_a_share() -> None:
    estimate = over_runs([0.95, 1.0], share=True)
    assert estimate is not None
    assert estimate.interval is not None
    assert estimate.interval[1] == 1.0
    assert over_runs([None, None]) is None
    single = over_runs([0.5, None])
    assert single is not None
    assert (single.n, single.interval) == (1, None)


@pytest.mark.parametrize("count", [2, 5])
def test_one_run_more_is_one_value_more(make_run: MakeRun, count: int) -> None:
    report = several(*(make_run(seed=20 + seed, updates=2, planned=2, fresh=16) for seed in range(count)))
    assert report.seeds.runs == len(report.seeds.seeds) == count
