"""The report as one self-contained page: no network, no scripts, everything of others escaped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined, Template
from markupsafe import Markup

from mlwright_trainer.report import charts, comparisons, words
from mlwright_trainer.report.charts import Figure
from mlwright_trainer.report.code_view import CodeLine, code_lines, side_by_side
from mlwright_trainer.report.model import BestScript, Report, RunReport, RunState, Scores, SeveralRuns
from mlwright_trainer.report.summary import headline, method
from mlwright_trainer.report.tiles import Tile, run_tiles, seed_tiles
from mlwright_trainer.report.time_spent import Slice, slices
from mlwright_trainer.report.visible import visible

MAX_SETTINGS = 200_000
"""Characters of run.yaml that are shown."""

STATE_WORDS = {
    RunState.SEALED: "finished and sealed",
    RunState.FINISHED: "finished, not sealed",
    RunState.STOPPED: "stopped before its end",
    RunState.OPEN: "running, or killed",
}


@dataclass(frozen=True)
class ShownScript:
    """A best script as the page shows it: alone, or level with its parent."""

    best: BestScript
    title: str
    scores: Scores
    figure: Figure | None
    lines: Sequence[CodeLine]
    parent_lines: Sequence[CodeLine] = ()


@dataclass(frozen=True)
class ShownRun:
    """One run with its charts."""

    run: RunReport
    tiles: Sequence[Tile]
    figures: Mapping[str, Sequence[Figure]]
    scripts: Sequence[ShownScript]
    slices: Sequence[Slice]


def render_page(report: Report) -> str:
    """The page as text; the same report gives the same page."""
    if isinstance(report, SeveralRuns):
        return str(
            _template("seeds.html").render(
                report=report,
                runs=report.runs,
                seeds=report.seeds,
                tiles=seed_tiles(report),
                figures=charts.seed_curves(report.runs, report.seeds),
                **_common(),
            )
        )
    return str(
        _template("run.html").render(
            shown=_shown(report),
            run=report,
            headline=headline(report),
            sections=sections(report),
            method=method(report),
            **_common(),
        )
    )


def _common() -> dict[str, Any]:
    return {
        "style": Markup(_text("report.css")),
        "comparisons": comparisons,
        "RunState": RunState,
        "state_words": STATE_WORDS,
    }


def sections(run: RunReport) -> list[tuple[str, str]]:
    """Anchors and names of the page's sections that have something in them."""
    asked = [
        ("fresh", "Before and after", run.fresh.before or run.fresh.after),
        ("curves", "Learning curves", True),
        ("outcomes", "Outcomes", True),
        ("time", "Time accounted", run.durations.launched),
        ("scripts", "Scripts", run.scripts.total),
        ("best", "Best script", run.best_scripts),
        ("health", "Optimizer", any(update.metrics for update in run.per_update)),
        ("spent", "Wall time", True),
        ("settings", "Settings", True),
    ]
    return [(key, name) for key, name, there in asked if there]


def _shown(run: RunReport) -> ShownRun:
    return ShownRun(
        run=run,
        tiles=run_tiles(run),
        figures=_figures(run),
        scripts=[_script(best, run) for best in run.best_scripts],
        slices=slices(run.seconds),
    )


def _figures(run: RunReport) -> dict[str, list[Figure]]:
    unit = run.score_scale.title
    on = run.fresh.before or run.fresh.after
    fresh_unit = f"{unit} on {on.score_split}" if on else unit
    rules = charts.references(run)
    found: dict[str, list[Figure | None]] = {
        "fresh": [
            comparisons.fresh_validity(run.fresh),
            comparisons.fresh_scores(run.fresh, fresh_unit, rules),
            comparisons.fresh_distribution(run.fresh, fresh_unit),
        ],
        "curves": [*charts.learning_curves(run)],
        "outcomes": [charts.outcome_mix(run), comparisons.milestone_chart(run.milestones)],
        "time": [comparisons.duration_histogram(run.durations), charts.execution_seconds(run)],
        "scripts": [charts.family_mix(run), charts.distinct_share(run)],
        "health": [*charts.health(run)],
    }
    return {name: [figure for figure in figures if figure] for name, figures in found.items()}


def _script(best: BestScript, run: RunReport) -> ShownScript:
    task = next(task for task in run.tasks if task.name == best.task)
    figure = comparisons.split_scores(task.scores, key=f"splits-{run.tasks.index(task)}")
    shown = partial(ShownScript, best, task.title, task.scores, figure)
    if best.parent is None:
        return shown(code_lines(best.source))
    parent, lines = side_by_side(best.parent.source, best.source)
    return shown(lines, parent)


@cache
def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        finalize=_finalize,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_text),
    )
    environment.filters.update(
        score=words.score,
        percent=words.percent,
        span=words.span,
        duration=words.duration,
        number=words.number,
        signed=words.signed,
        moment=_moment,
        plural=words.plural,
        clipped=lambda text, most=MAX_SETTINGS: text if len(text) <= most else f"{text[:most]}\n…",
    )
    return environment


def _finalize(value: Any) -> Any:
    """Text of others with what would not be seen, or would turn the text around it, written out."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _template(name: str) -> Template:
    return _environment().get_template(name)


def _text(name: str) -> str:
    return (files("mlwright_trainer.report") / "templates" / name).read_text(encoding="utf-8")


def _moment(seconds: float | None) -> str:
    """A moment in UTC, to the minute."""
    return "–" if seconds is None else datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
