"""What a finished arm amounts to, read from its run folder."""

from __future__ import annotations

import json

from mlwright_api.base import ApiModel
from mlwright_api.mltask import Split
from mlwright_trainer.errors import InternalError
from mlwright_trainer.ledger import LedgerReader, Purpose
from mlwright_trainer.report.data import run_report
from mlwright_trainer.report.folder import RunRecord, read_run
from mlwright_trainer.report.model import FreshSamples, RunReport
from mlwright_trainer.report.tallies import mean, seconds
from mlwright_trainer.runs.folder import RunFolder

from benchmarks.quickstart.budget import sandbox_seconds
from benchmarks.quickstart.settings import Arm, Job, Settings
from benchmarks.quickstart.state import budget_of, fine_tuning_file


class FreshRecord(ApiModel):
    """Fresh, awaited drafts of the arm's final weights; scores on Final."""

    n: int
    valid_fraction: float | None
    score_mean: float | None
    """Over valid samples."""
    score_with_failures: float | None
    """Over all samples, a failure counting as the baseline."""
    distinct_scripts: int
    execution_seconds_mean: float | None


class BestRecord(ApiModel):
    """The best script among those that the budget paid for, chosen by Selection."""

    rollout: str
    family: str
    scores: dict[Split, float]
    final_interval: tuple[float, float] | None
    """Bootstrap over the rows of Final."""


class ArmRecord(ApiModel):
    """One arm, one task, one seed."""

    seed: int
    task: str
    arm: Arm
    fresh: FreshRecord
    best: BestRecord | None
    sandbox_seconds: float
    """Execution seconds of the scripts that the arm learned from or chose among (fresh samples not counted)."""
    budget_seconds: float | None
    """What it was to spend; None for the RL arm, which sets it."""
    capped: bool
    """Ended by the bound on rounds, its budget unspent."""
    rounds: int
    scripts: int
    wall_seconds: float
    """Of all processes of the arm, fresh samples and sealed grading included, fine-tuning not."""
    fine_tuning_seconds: float | None
    """Of the seed's model, which the arms share."""
    initial_digest: str | None
    weights_digest: str | None


def arm_record(settings: Settings, job: Job) -> ArmRecord:
    """Read a finished arm. Raises InternalError where its fresh samples were not graded on Final."""
    record = read_run(settings.folder(job))
    report = run_report(record)
    train = record.of("Train")
    budget = None if job.arm is Arm.RL else budget_of(settings, job)
    spent, rounds = sandbox_seconds(train), max((row.round + 1 for row in train), default=0)
    return ArmRecord(
        seed=job.seed,
        task=job.task,
        arm=job.arm,
        fresh=_fresh(settings, job, record, report),
        best=_best(report),
        sandbox_seconds=spent,
        budget_seconds=budget.seconds if budget else None,
        capped=budget.capped(spent, rounds) if budget else False,
        rounds=rounds,
        scripts=len(train),
        wall_seconds=report.seconds.total,
        fine_tuning_seconds=_fine_tuning_seconds(settings, job.seed),
        initial_digest=report.initial_weights_digest,
        weights_digest=report.weights_digest,
    )


def _fresh(settings: Settings, job: Job, record: RunRecord, report: RunReport) -> FreshRecord:
    """Best-of-N ends with the weights it began with: its samples are those that the RL arm took before learning."""
    if job.arm is not Arm.BEST_OF_N:
        return fresh_record(job, record, report.fresh.after, "After")
    before = read_run(settings.folder(Job(job.seed, job.task, Arm.RL)))
    return fresh_record(job, before, run_report(before).fresh.before, "Before")


def fresh_record(job: Job, record: RunRecord, group: FreshSamples | None, purpose: Purpose) -> FreshRecord:
    """A group of fresh samples, which must have been read on Final (where any of them is valid)."""
    if group is None or (group.valid and group.score_split is not Split.FINAL):
        raise InternalError(f"{job}: its fresh samples were not graded on Final")
    return FreshRecord(
        n=group.n,
        valid_fraction=group.valid_fraction,
        score_mean=group.score_mean,
        score_with_failures=group.score_with_failures,
        distinct_scripts=group.distinct_scripts,
        execution_seconds_mean=mean(seconds(record.of(purpose))),
    )


def _best(report: RunReport) -> BestRecord | None:
    if not report.best_scripts:
        return None
    best = report.best_scripts[0]
    return BestRecord(
        rollout=best.rollout,
        family=best.family,
        scores=dict(best.scores),
        final_interval=best.final_interval,
    )


def _fine_tuning_seconds(settings: Settings, seed: int) -> float | None:
    file = fine_tuning_file(settings, seed)
    return float(json.loads(file.read_text(encoding="utf-8"))["seconds"]) if file.exists() else None


def software(settings: Settings, jobs: list[Job]) -> dict[str, list[str]]:
    """Versions that the finished arms were made with: one each, unless something was updated in between."""
    found: dict[str, list[str]] = {}
    for job in jobs:
        with LedgerReader(RunFolder(settings.folder(job)).ledger) as ledger:
            for key, value in ledger.facts().items():
                if key.startswith("version/") and value not in found.setdefault(
                    key.removeprefix("version/"), []
                ):
                    found[key.removeprefix("version/")].append(value)
    return found
