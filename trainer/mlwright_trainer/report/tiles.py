"""The key numbers at the top of the page."""

from __future__ import annotations

from dataclasses import dataclass

from mlwright_api.mltask import Split

from mlwright_trainer.report.model import Estimate, Range, RunReport, SeveralRuns
from mlwright_trainer.report.words import duration, number, percent, plural, score


@dataclass(frozen=True)
class Tile:
    """One number: what it is, the number, and what stands below it."""

    label: str
    value: str
    detail: str = ""
    before: str = ""
    """Where the number came from, if it moved."""


def run_tiles(run: RunReport) -> list[Tile]:
    """Four to six numbers; what is not known yet is left out."""
    tiles = [_valid(run), _score(run), _failures(run), _best(run), _rollouts(run), _time(run)]
    return [tile for tile in tiles if tile is not None]


def _valid(run: RunReport) -> Tile | None:
    before, after = run.fresh.before, run.fresh.after
    if before is None or before.valid_fraction is None:
        return None
    moved = after is not None and after.valid_fraction is not None
    now = after if after is not None and moved else before
    detail = f"of {plural(now.n, 'fresh sample')}{_percents(now.valid_interval)}"
    return Tile(
        "Valid scripts", percent(now.valid_fraction), detail, percent(before.valid_fraction) if moved else ""
    )


def _percents(interval: Range | None) -> str:
    return f", 95 % {100 * interval[0]:.0f}–{100 * interval[1]:.0f} %" if interval else ""


def _score(run: RunReport) -> Tile | None:
    before, after = run.fresh.before, run.fresh.after
    if before is None or before.score_mean is None:
        return None
    moved = after is not None and after.score_mean is not None
    now = after if after is not None and moved else before
    return Tile(
        f"Mean {run.score_scale.title}, valid",
        score(now.score_mean),
        f"on {now.score_split}{_ends(now.interval)}",
        score(before.score_mean) if moved else "",
    )


def _ends(interval: Range | None) -> str:
    return f", 95 % {score(interval[0])}–{score(interval[1])}" if interval else ""


def _failures(run: RunReport) -> Tile | None:
    before, after = run.fresh.before, run.fresh.after
    if before is None or after is None or after.score_with_failures is None:
        return None
    return Tile(
        "Failures as baseline",
        score(after.score_with_failures),
        f"on {after.score_split}{_ends(after.score_with_failures_interval)}",
        score(before.score_with_failures),
    )


def _best(run: RunReport) -> Tile | None:
    best = run.scores.best
    split = next((each for each in (Split.FINAL, Split.SELECTION, Split.REWARD) if each in best), None)
    if split is None:
        return None
    ends = _ends(run.scores.best_interval) if split is Split.FINAL else ""
    return Tile("Best script", score(best[split]), f"{run.scores.metric or 'score'} on {split}{ends}")


def _rollouts(run: RunReport) -> Tile:
    detail = f"{run.trained.rows:,} trained, {run.scripts.distinct:,} distinct scripts"
    return Tile("Rollouts", f"{run.rollouts.total:,}", detail)


def _time(run: RunReport) -> Tile:
    share = run.seconds.execution / run.seconds.total if run.seconds.total else 0.0
    return Tile("Wall time", duration(run.seconds.total), f"{100 * share:.0f} % running scripts")


def seed_tiles(report: SeveralRuns) -> list[Tile]:
    """The key numbers over runs; the spread is between runs."""
    fresh, runs = report.seeds.fresh, report.seeds.runs
    name = report.runs[0].score_scale.title
    named = [
        ("Valid scripts", percent, fresh.before_valid_fraction, fresh.after_valid_fraction),
        (f"Mean {name}, valid", score, fresh.before_score_mean, fresh.after_score_mean),
        ("Failures as baseline", score, fresh.before_score_with_failures, fresh.after_score_with_failures),
    ]
    tiles = [
        Tile(label, show(after.mean), f"mean of {plural(after.n, 'run')}{_over(after)}", show(before.mean))
        for label, show, before, after in named
        if before is not None and after is not None
    ]
    best = report.seeds.best.get(Split.FINAL) or report.seeds.best.get(Split.SELECTION)
    if best is not None:
        tiles.append(Tile("Best script", score(best.mean), f"mean of {plural(best.n, 'run')}{_over(best)}"))
    total = sum(run.rollouts.total for run in report.runs)
    return [*tiles, Tile("Runs", number(float(runs)), f"{total:,} rollouts together")]


def _over(estimate: Estimate) -> str:
    return _ends(estimate.interval)
