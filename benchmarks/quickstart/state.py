"""What the state folder says: which arms are finished, and what they have spent."""

from __future__ import annotations

from pathlib import Path

from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import LedgerReader
from mlwright_trainer.runs.folder import RunFolder
from mlwright_trainer.runs.plan import RunPlan

from benchmarks.quickstart.budget import Budget
from benchmarks.quickstart.settings import Arm, Job, Settings


def is_finished(settings: Settings, job: Job) -> bool:
    """Whether the arm's run is closed: its sealed grading is written."""
    folder = RunFolder(settings.folder(job))
    if not folder.ledger.is_file():
        return False
    with LedgerReader(folder.ledger) as ledger:
        return ledger.closed


def budget_of(settings: Settings, job: Job) -> Budget:
    """What the RL arm of the same seed and task has spent on the rows it learned from."""
    model = Job(job.seed, job.task, Arm.RL)
    if not is_finished(settings, model):
        raise UserError(f"{job}: waits for {model}, which sets its budget")
    with LedgerReader(RunFolder(settings.folder(model)).ledger) as ledger:
        return Budget.of(ledger.rollouts("Train"), rounds=ledger.batches())


def not_reopened(plan: RunPlan, folder: RunFolder) -> RunPlan:
    """The plan with as many updates as are made, once final samples are taken: an arm's number is not its plan's."""
    if not folder.ledger.is_file():
        return plan
    with LedgerReader(folder.ledger) as ledger:
        return plan.with_updates(max(1, ledger.batches())) if ledger.rounds("After") else plan


def fine_tuning_file(settings: Settings, seed: int) -> Path:
    """Where it says how long a seed's fine-tuning took."""
    return settings.seed_folder(seed) / "fine-tuning.json"
