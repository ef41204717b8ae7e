"""Carrying out a job from wherever it is: initial weights of the seed, the arm's run, nothing twice."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.initial import make_initial_weights
from mlwright_trainer.progress import Progress
from mlwright_trainer.runs.folder import RunFolder, write_whole
from mlwright_trainer.runs.local import LocalOptions, LocalRun
from mlwright_trainer.runs.plan import RunPlan
from mlwright_trainer.runs.sessions import opened_ledger

from benchmarks.quickstart.arms import CONTROLS, ReinforcementLearning, Terms
from benchmarks.quickstart.plans import plan_of
from benchmarks.quickstart.settings import Arm, Job, Settings
from benchmarks.quickstart.state import budget_of, fine_tuning_file, not_reopened


def carry_out(settings: Settings, job: Job, progress: Progress) -> None:
    """Bring `job` to its end. Raises UserError where the arm that sets its budget is not finished."""
    plan, folder = plan_of(settings, job), RunFolder(settings.folder(job))
    terms = None if job.arm is Arm.RL else Terms(budget_of(settings, job), settings.rejection_rate)
    _fine_tune(settings, job, plan, progress)
    with folder.locked(), opened_ledger(not_reopened(plan, folder), folder, resume=True) as ledger:
        share_weights(settings.initial_weights(job.seed), folder.initial_weights)
        run: LocalRun
        if terms is None:
            run = ReinforcementLearning(plan, folder, LocalOptions(resume=True), ledger, progress)
        else:
            run = CONTROLS[job.arm](plan, folder, ledger, progress, terms=terms)
        run.carry_out()


def _fine_tune(settings: Settings, job: Job, plan: RunPlan, progress: Progress) -> None:
    """The seed's fine-tuned model, made by its first arm (the task plays no part in it)."""
    weights = settings.initial_weights(job.seed)
    if weights.exists():
        return
    progress.stage(f"seed {job.seed}: fine-tuning", 100)
    start = time.monotonic()
    make_initial_weights(
        plan.spec,
        weights,
        base=settings.state,
        progress=lambda note, share: progress.advance(100 * share, note),
    )
    facts = {"seconds": time.monotonic() - start, "digest": weights_digest(weights)}
    write_whole(fine_tuning_file(settings, job.seed), json.dumps(facts, indent=2).encode())


def share_weights(source: Path, target: Path) -> None:
    """A copy of `source` at `target`, whole or not at all; one that is there stays."""
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.shared")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(source, unfinished)
    unfinished.rename(target)
