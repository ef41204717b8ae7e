"""The key numbers at the top of the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlwright_api.mltask import Split

from mlwright_trainer.report.model import Estimate, Range, RunReport, SeveralRuns
from mlwright_trainer.report.words import NBSP, duration, percent, plural, score

FAILURES = "Failures as baseline"
COUNTED = "a failure counts as the constant predictor's score"
"""What that means, in half a sentence."""


@dataclass(frozen=True)
class Tile:
    """One number: what it is, the number, and what stands below it."""

    label: str
    value: str
    detail: str = ""
    interval: str = ""
    before: str = ""
    """Where the number came from, if it moved."""


def run_tiles(run: RunReport) -> list[Tile]:
    """Up to six numbers; what is not known yet is left out."""
    tiles = [_valid(run), _score(run), _failures(run), _best(run), _rollouts(run), _time(run)]
    return [tile for tile in tiles if tile is not None]


def _valid(run: RunReport) -> Tile | None:
    before, after = run.fresh.before, run.fresh.completed_after
    if before is None or before.valid_fraction is None:
        return None
    moved = after is not None and after.valid_fraction is not None
    now = after if after is not None and moved else before
    return Tile(
        "Valid scripts",
        percent(now.valid_fraction),
        f"of {plural(now.n, 'fresh sample')}",
        _ends(now.valid_interval, lambda value: f"{100 * value:.0f}{NBSP}%"),
        percent(before.valid_fraction) if moved else "",
    )


def _score(run: RunReport) -> Tile | None:
    before, after = run.fresh.before, run.fresh.completed_after
    if before is None or before.score_mean is None:
        return None
    moved = after is not None and after.score_mean is not None
    now = after if after is not None and moved else before
    return Tile(
        f"Mean {run.score_scale.title}",
        score(now.score_mean),
        f"of valid samples, {now.score_split}",
        _ends(now.interval),
        score(before.score_mean) if moved else "",
    )


def _failures(run: RunReport) -> Tile | None:
    before, after = run.fresh.before, run.fresh.completed_after
    if before is None or after is None or after.score_with_failures is None:
        return None
    if run.fresh.nothing_valid:
        return Tile(FAILURES, score(None), "no sample was valid")
    return Tile(
        FAILURES,
        score(after.score_with_failures),
        f"mean of all samples, {after.score_split}; {COUNTED}",
        _ends(after.score_with_failures_interval),
        score(before.score_with_failures),
    )


def _best(run: RunReport) -> Tile | None:
    best = run.scores.best if len(run.tasks) == 1 else {}
    split = next((each for each in (Split.FINAL, Split.SELECTION, Split.REWARD) if each in best), None)
    if split is None:
        return None
    interval = _ends(run.scores.best_interval) if split is Split.FINAL else ""
    return Tile("Best script", score(best[split]), f"{run.scores.metric or 'score'}, {split}", interval)


def _rollouts(run: RunReport) -> Tile:
    detail = f"{run.trained.rows:,} trained"
    return Tile(
        "Rollouts", f"{run.rollouts.total:,}", detail, plural(run.scripts.distinct, "distinct script")
    )


def _time(run: RunReport) -> Tile:
    share = run.seconds.execution / run.seconds.total if run.seconds.total else 0.0
    return Tile("Wall time", duration(run.seconds.total), f"{100 * share:.0f} % running scripts")


def _ends(interval: Range | None, show: Callable[[float], str] = score) -> str:
    if interval is None:
        return ""
    unit = f"{NBSP}%"
    low, high = show(interval[0]).removesuffix(unit), show(interval[1])
    return f"95{NBSP}% CI {low}{NBSP}to{NBSP}{high}"


def seed_tiles(report: SeveralRuns) -> list[Tile]:
    """The key numbers over runs; the spread is between runs."""
    fresh, runs = report.seeds.fresh, report.seeds.runs
    named = [
        ("Valid scripts", percent, fresh.before_valid_fraction, fresh.after_valid_fraction),
        (
            f"Mean {report.runs[0].score_scale.title}",
            score,
            fresh.before_score_mean,
            fresh.after_score_mean,
        ),
        (FAILURES, score, fresh.before_score_with_failures, fresh.after_score_with_failures),
    ]
    tiles = [
        _seed_tile(label, after, show, before)
        for label, show, before, after in named
        if before is not None and after is not None
    ]
    best = report.seeds.best.get(Split.FINAL) or report.seeds.best.get(Split.SELECTION)
    if best is not None:
        tiles.append(_seed_tile("Best script", best, score))
    total = sum(run.rollouts.total for run in report.runs)
    return [*tiles, Tile("Runs", str(runs), f"{total:,} rollouts together")]


def _seed_tile(
    label: str, now: Estimate, show: Callable[[float | None], str], before: Estimate | None = None
) -> Tile:
    detail = f"mean of {plural(now.n, 'run')}" + (f"; {COUNTED}" if label == FAILURES else "")
    came_from = show(before.mean) if before is not None else ""
    return Tile(label, show(now.mean), detail, _ends(now.interval, show), came_from)
