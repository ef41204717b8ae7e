"""`mlwright run`: the whole loop in one process, from the initial weights to the sealed grading and the report."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from mlwright_sandbox.backend import SandboxBackend
from mlwright_sandbox.grading_server import LocalGrader
from mlwright_sandbox.local import BackendKind, open_backend

from mlwright_trainer.collection.collector import Collector
from mlwright_trainer.collection.execution import timed
from mlwright_trainer.exchange import Exchange
from mlwright_trainer.inference.codec import TransformersCodec
from mlwright_trainer.inference.devices import require_device
from mlwright_trainer.inference.transformers_engine import TransformersEngine
from mlwright_trainer.learning.initial import make_initial_weights
from mlwright_trainer.learning.learner import Learner, require_learnable
from mlwright_trainer.ledger import Ledger, Purpose, RolloutRow, UpdateRow
from mlwright_trainer.progress import Progress
from mlwright_trainer.report import write_report
from mlwright_trainer.runs.best import BEST, best_rollout
from mlwright_trainer.runs.folder import RunFolder, write_whole
from mlwright_trainer.runs.plan import RunPlan
from mlwright_trainer.runs.sealed import BestScript, exams, grade_sealed
from mlwright_trainer.runs.sessions import opened_ledger
from mlwright_trainer.runs.wiring import Wiring
from mlwright_trainer.tasks.final_reads import log_final_read


@dataclass(frozen=True)
class LocalOptions:
    """What a person may choose beside the run file."""

    resume: bool = False
    backend: BackendKind = "auto"
    slots: int | None = None
    device: str = "cpu"


def run_locally(plan: RunPlan, folder: RunFolder, options: LocalOptions, progress: Progress) -> None:
    """Carry a run to its end in `folder`, from wherever it was; raises UserError and InternalError."""
    require_device(options.device)
    require_learnable(plan.spec)
    with folder.locked(), opened_ledger(plan, folder, resume=options.resume) as ledger:
        LocalRun(plan, folder, options, ledger, progress).carry_out()


class LocalRun:
    """One process's work on a run; every step first looks at what is done already.

    Other ways of learning from the same parts override `_learn`, and `_candidates` (benchmarks/quickstart does).
    """

    def __init__(
        self, plan: RunPlan, folder: RunFolder, options: LocalOptions, ledger: Ledger, progress: Progress
    ) -> None:
        self._plan, self._folder, self._options = plan, folder, options
        self._ledger, self._progress = ledger, progress
        self._wiring = Wiring(plan, ledger, progress)

    def carry_out(self) -> None:
        """Initial weights, fresh samples, the updates, fresh samples again, the sealed grading, the report."""
        if not self._ledger.closed:
            self._make_initial_weights()
            with open_backend(self._options.backend, slots=self._options.slots) as backend:
                self._learn(backend)
                self._seal(backend)
        self._progress.stage("report")
        write_report([self._folder.path], self._folder.report)

    def _make_initial_weights(self) -> None:
        self._progress.stage("initial weights", 100)
        with timed(self._ledger, "fineTuning"):
            digest = make_initial_weights(
                self._plan.spec,
                self._folder.initial_weights,
                base=self._folder.path,
                progress=lambda note, share: self._progress.advance(100 * share, note),
                device=self._options.device,
            )
        self._ledger.record_update(UpdateRow(0, digest, {}, published_at=time.time()))

    def _learn(self, backend: SandboxBackend) -> None:
        collector = self._collector(backend)
        self._await_fresh(collector, "Before", due=not self._ledger.batches())
        self._learner(collector).run(self._plan.updates)
        self._await_fresh(collector, "After", due=True)

    def _learner(self, exchange: Exchange) -> Learner:
        return Learner(
            spec=self._plan.spec,
            weights=self._folder.weights,
            checkpoints=self._folder.checkpoints,
            exchange=exchange,
            device=self._options.device,
            progress=self._progress,
        )

    def _collector(self, backend: SandboxBackend) -> Collector:
        version = self._ledger.updates()[-1].version
        engine = TransformersEngine(self._folder.weights / str(version), version, device=self._options.device)
        codec = TransformersCodec(self._folder.initial_weights)
        return self._wiring.collector(engine=engine, codec=codec, backend=backend)

    def _await_fresh(self, collector: Collector, purpose: Purpose, *, due: bool) -> None:
        samples = self._plan.spec.evaluation.samples
        if samples and due:
            self._progress.stage(f"{samples} fresh samples {purpose.lower()} learning", samples)
            collector.await_fresh(purpose, 0, samples)

    def _seal(self, backend: SandboxBackend) -> None:
        """Run the best scripts once more for their submissions, then read Final, once, and close the run."""
        self._progress.stage("sealed grading")
        with timed(self._ledger, "sealed"), LocalGrader() as grader:
            best = [self._run_again(backend, row, subject) for subject, row in self._best_rows().items()]
            papers = list(exams(self._ledger, tasks=self._wiring.mounts, best=best))
            scores = grade_sealed(papers, grader=grader, log_read=self._log_read)
        self._ledger.record_sealed(scores)

    def _log_read(self, sealed: Path, digest: str) -> None:
        log_final_read(sealed, purpose=f"sealed grading of the run {self._plan.name}", digest=digest)

    def _best_rows(self) -> dict[str, RolloutRow]:
        """The best rollout of each task that has one; the subject is "best", or "best/<task>" with several."""
        rows = self._candidates()
        found: dict[str, RolloutRow] = {}
        for name, task in self._plan.tasks.items():
            row = best_rollout((row for row in rows if row.task == name), task.metric)
            if row is not None:
                found[BEST if len(self._plan.tasks) == 1 else f"{BEST}/{name}"] = row
        return found

    def _candidates(self) -> list[RolloutRow]:
        """The rollouts that the best script is chosen among."""
        return self._ledger.rollouts()

    def _run_again(self, backend: SandboxBackend, row: RolloutRow, subject: str) -> BestScript:
        backend.submit(self._wiring.request(row, keep_submission=True))
        submission = backend.collect()[0].submission
        folder = self._folder.path / subject
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "script.py", (row.script or "").encode())
        if submission is not None:
            write_whole(folder / self._plan.tasks[row.task].spec.submission.file_name, submission)
        return BestScript(subject, row, submission)
