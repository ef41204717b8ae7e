"""The report: everything that a run's ledger says, as data and as one self-contained page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlwright_trainer.errors import UserError
from mlwright_trainer.report.data import load_report
from mlwright_trainer.report.model import Report, RunReport, SeveralRuns
from mlwright_trainer.report.summary import closing_sentence
from mlwright_trainer.runs.folder import write_whole

__all__ = [
    "Report",
    "RunReport",
    "SeveralRuns",
    "closing_sentence",
    "load_report",
    "render_page",
    "write_report",
]

# What draws the page is imported when a page is asked for: it needs the [report] extra, data does not.


def render_page(report: Report) -> str:
    """The page as text; the same report gives the same page. Raises UserError without the [report] extra."""
    try:
        from mlwright_trainer.report import page
    except ImportError as error:
        raise UserError(
            f"the page needs {error.name}: pip install 'mlwright[report]', or use --json"
        ) from error
    return page.render_page(report)


def write_report(folders: Sequence[Path], out: Path) -> None:
    """Write the page of one run folder, or of several, to `out`: at any moment it is as it was, or whole.

    Raises UserError where a folder holds no run, `out` cannot be written, or the [report] extra is missing.
    """
    text = render_page(load_report(folders))
    try:
        write_whole(out, text.encode())
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror})") from error
