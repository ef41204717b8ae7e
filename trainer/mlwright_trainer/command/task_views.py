"""What `mlwright task` shows to a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlwright_api.metric_catalog import MetricInfo
from mlwright_api.mltask import MLTaskSpec, Split
from mlwright_api.results import GraderResult, Receipt, Verdict
from mlwright_api.rollout import RolloutStatus
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mlwright_trainer.tasks.checks import Check, Status
from mlwright_trainer.tasks.folder import TaskFolder
from mlwright_trainer.tasks.listing import ListedTask

_COLORS = {Status.PASS: "green", Status.WARN: "yellow", Status.FAIL: "red"}


def show_check(check: Check, console: Console) -> None:
    """One line."""
    color = _COLORS[check.status]
    name = f"{check.name:<25}"
    console.print(f"[{color}]{check.status.value}[/] {name} {escape(check.line)}", highlight=False)


def show_tasks(tasks: Sequence[ListedTask], console: Console) -> None:
    """A table, and below it what is wrong with folders that are no tasks."""
    if not tasks:
        console.print(
            "no tasks here; make one with: mlwright task new DIR --metric NAME --from CSV --target COLUMN"
        )
        return
    table = Table(box=None, header_style="bold")
    for name in (
        "task",
        "metric",
        "Reward/Selection/Final",
        "seconds",
        "memory",
        "baseline",
        "best",
        "title",
    ):
        right = name in ("seconds", "memory", "baseline", "best")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "title")
    for each in tasks:
        if each.task is not None:
            table.add_row(*(escape(cell) for cell in _cells(each, each.task)))
    console.print(table)
    for each in tasks:
        if each.problem:
            console.print(f"{each.folder}: {each.problem}", markup=False, highlight=False, style="yellow")


def _cells(each: ListedTask, task: TaskFolder) -> list[str]:
    spec = task.spec
    rows = "not prepared"
    if each.rows is not None:
        rows = "/".join(f"{each.rows.get(split, 0):,}" for split in Split)
    return [
        str(each.folder),
        spec.metric.name,
        rows,
        f"{spec.limits.timeout_seconds:g}",
        spec.limits.memory,
        f"{spec.reference.baseline:.4g}",
        "" if spec.reference.best is None else f"{spec.reference.best:.4g}",
        spec.title,
    ]


def show_graded(graded: GraderResult, console: Console) -> None:
    """Scores, and what is to be said of them."""
    for split, score in graded.scores.items():
        console.print(f"{split.value}: {score:.6g}", highlight=False)
    if graded.verdict is Verdict.TRIVIAL:
        console.print(f"Trivial: {graded.reason}", markup=False, highlight=False, style="yellow")


def show_run(status: RolloutStatus, spec: MLTaskSpec, console: Console) -> None:
    """How one script ended."""
    outcome = status.outcome.value if status.outcome is not None else "unknown"
    lines = [f"outcome     {outcome}"]
    if status.reason:
        lines.append(f"reason      {status.reason}")
    reference = spec.reference
    known = f"baseline {reference.baseline:.5g}" + (
        "" if reference.best is None else f", best {reference.best:.5g}"
    )
    lines += [f"{split.value:<11} {score:.6g} ({known})" for split, score in status.scores.items()]
    seconds = status.seconds
    lines.append(
        f"seconds     {seconds.execution:.2f} of {spec.limits.timeout_seconds:g} "
        f"(cpu {seconds.cpu:.2f}, starting {seconds.starting:.2f}, grading {seconds.grading:.2f})"
    )
    lines.append(f"milestones  {', '.join(status.milestones) or 'none'}")
    if status.isolation is not None:
        lines.append(f"isolation   {_isolation(status.isolation)}")
    if status.output_tail:
        lines += ["output", *(f"  {line}" for line in status.output_tail.splitlines())]
    console.print("\n".join(lines), markup=False, highlight=False)


def _isolation(receipt: Receipt) -> str:
    held = sum(check.locked for check in receipt.checks)
    leaky = [check.name for check in receipt.checks if not check.locked]
    said = f"{receipt.backend}: {held} of {len(receipt.checks)} checks held"
    return said + (f"; not {', '.join(leaky)}" if leaky else "")


def show_metrics(metrics: Iterable[MetricInfo], console: Console) -> None:
    """The catalogue."""
    table = Table(box=None, header_style="bold")
    for name in ("name", "better", "range", "submission", "what it is"):
        table.add_column(name, no_wrap=name == "name")
    for info in metrics:
        bounds = [
            f"{bound:g}" if bound is not None else symbol
            for bound, symbol in ((info.lower, "-∞"), (info.upper, "∞"))
        ]
        better = "more" if info.sign > 0 else "less"
        table.add_row(info.name, better, " to ".join(bounds), ", ".join(sorted(info.kinds)), info.title)
    console.print(table)
