"""Results as a page of markdown: what is finished, the arms, the differences, every seed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from mlwright_trainer.report.model import Estimate

from benchmarks.quickstart.comparison import MEASURES, QUALITY, PairedDifference
from benchmarks.quickstart.records import ArmRecord
from benchmarks.quickstart.results import Results
from benchmarks.quickstart.settings import ARMS, FIRST_TASK

TITLES: Mapping[str, str] = {
    "validFraction": "valid fraction",
    "scoreMean": "AUC of valid samples",
    "scoreWithFailures": "AUC, failures at baseline",
    "bestFinal": "best script's AUC",
    "sandboxSeconds": "sandbox s",
    "wallSeconds": "wall s",
}


def markdown(results: Results) -> str:
    """The whole page."""
    sections = [_opening(results), *(_task(results, task) for task in ARMS), _seeds(results.arms)]
    return "\n\n".join(section for section in sections if section) + "\n"


def _opening(results: Results) -> str:
    lines = [
        "# The quickstart over seeds, against controls at equal sandbox seconds",
        "",
        f"Made by `{results.command}`; {results.finished} of {results.planned} arms are finished. "
        "Scores are on the Final split, read once an arm. Means over seeds with 95 % intervals (Student's t). "
        "What the arms are: [README](../README.md).",
    ]
    if results.sizes:
        sizes = ", ".join(f"{name} {size}" for name, size in results.sizes.items())
        lines += ["", f"**A try, not a benchmark**: smaller than the quickstart ({sizes})."]
    if results.unfinished:
        lines += ["", "No result of:", ""]
        lines += [f"- {one.job}: {one.reason}" for one in results.unfinished]
    lines += [f"- {text}" for text in _capped(results.arms)]
    return "\n".join(lines)


def _capped(arms: Iterable[ArmRecord]) -> list[str]:
    return [
        f"seed {one.seed}, {one.task}, {one.arm}: ended by the bound on rounds with its budget unspent"
        for one in arms
        if one.capped
    ]


def _task(results: Results, task: str) -> str:
    arms = [one for one in results.summaries if one.task == task]
    if not arms:
        return ""
    heading = [f"## Task {task}", ""]
    if task != FIRST_TASK:
        heading += [_unseen(results, task), ""]
    rows = [[f"`{one.arm}`", len(one.seeds), *_cells(one.measures, MEASURES)] for one in arms]
    parts = [*heading, *_table(["arm", "seeds", *(TITLES[name] for name in MEASURES)], rows)]
    found = [one for one in results.differences if one.task == task]
    if found:
        rows = [[_pair(one), len(one.seeds), *_cells(one.measures, QUALITY, signed=True)] for one in found]
        head = ["difference within seeds", "seeds", *(TITLES[name] for name in QUALITY)]
        parts += ["", *_table(head, rows)]
    return "\n".join(parts)


def _unseen(results: Results, task: str) -> str:
    searched = [one for one in results.unseen if one.task == task]
    if not searched:
        return "Whether its name and columns occur in training texts was not looked at."
    words = ", ".join(f"`{word}`" for word in searched[0].words)
    total = sum(one.examples for one in searched)
    return (
        f"Its name and columns ({words}) occur in none of {total:,} training texts of {len(searched)} seeds."
    )


def _pair(difference: PairedDifference) -> str:
    return f"`{difference.first}` - `{difference.second}`"


def _seeds(arms: Sequence[ArmRecord]) -> str:
    if not arms:
        return ""
    head = ["seed", "task", "arm", *TITLES.values(), "rounds", "scripts", "best family"]
    rows = [
        [
            one.seed,
            one.task,
            f"`{one.arm}`",
            *(_number(measure(one), name) for name, measure in MEASURES.items()),
            one.rounds,
            one.scripts,
            one.best.family if one.best else "-",
        ]
        for one in arms
    ]
    return "\n".join(["## Every seed", "", *_table(head, rows)])


def _cells(
    measures: Mapping[str, Estimate | None], names: Iterable[str], *, signed: bool = False
) -> list[str]:
    return [_estimate(measures[name], name, signed=signed) for name in names]


def _estimate(estimate: Estimate | None, name: str, *, signed: bool) -> str:
    if estimate is None:
        return "-"
    mean = _number(estimate.mean, name, signed=signed)
    if estimate.interval is None:
        return mean
    low, high = (_number(end, name, signed=signed) for end in estimate.interval)
    return f"{mean} [{low}, {high}]"


def _number(value: float | None, name: str, *, signed: bool = False) -> str:
    if value is None:
        return "-"
    digits = 0 if name.endswith("Seconds") else 3
    return f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [list(head), ["---"] * len(head), *rows]
    return [f"| {' | '.join(map(str, line))} |" for line in lines]
