"""The report: everything that a run's ledger says, as data and as one self-contained page."""

from mlwright_trainer.report.data import load_report
from mlwright_trainer.report.model import Report, RunReport, SeveralRuns
from mlwright_trainer.report.page import render_page, write_report

__all__ = ["Report", "RunReport", "SeveralRuns", "load_report", "render_page", "write_report"]
