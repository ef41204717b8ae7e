"""Putting the parts of a run together: engine, sampler, executor, mode, collector."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from mlwright_api.mltask import Split
from mlwright_api.rollout import RolloutStatus
from mlwright_api.trainingrun import CollectionMode
from mlwright_sandbox.backend import SandboxBackend, SandboxRequest, TaskMounts

from mlwright_trainer.collection.collector import Collector
from mlwright_trainer.collection.draws import draw_seed
from mlwright_trainer.collection.execution import Executor
from mlwright_trainer.collection.modes import Continuous, Mode, Synchronous, Window
from mlwright_trainer.collection.prompts import HEAD_LINES, DataFile, TaskPrompt, task_prompt
from mlwright_trainer.collection.sampling import Sampler
from mlwright_trainer.inference.engine import Codec, Engine
from mlwright_trainer.ledger import Ledger, RolloutRow
from mlwright_trainer.progress import Progress
from mlwright_trainer.rewards.reward import reward_of
from mlwright_trainer.runs.plan import RunPlan
from mlwright_trainer.tasks.folder import TaskFolder

SANDBOX_SEEDS = 2**32
"""numpy.random takes seeds below this."""


class Wiring:
    """Builds what one process of a run needs; holds nothing but the plan and the ledger."""

    def __init__(self, plan: RunPlan, ledger: Ledger, progress: Progress) -> None:
        self._plan, self._ledger, self._progress = plan, ledger, progress
        self.mounts: dict[str, TaskMounts] = {name: task.mounts() for name, task in plan.tasks.items()}

    def collector(self, *, engine: Engine, codec: Codec, backend: SandboxBackend) -> Collector:
        sampler = Sampler(
            spec=self._plan.spec,
            tasks={name: prompt_facts(task) for name, task in self._plan.tasks.items()},
            ledger=self._ledger,
            engine=engine,
            codec=codec,
            reward=self.reward,
        )
        executor = Executor(
            ledger=self._ledger,
            backend=backend,
            request=self.request,
            reward=lambda row, status: self.reward(row.task, status),
            limit=self._plan.spec.collection.max_in_flight or backend.slots,
        )
        return Collector(
            ledger=self._ledger,
            engine=engine,
            mode=self._mode(sampler, executor),
            fresh=self._synchronous(sampler, executor),
            progress=self._progress,
            evaluation=self._plan.spec.evaluation,
        )

    def request(self, row: RolloutRow, *, keep_submission: bool = False) -> SandboxRequest:
        """The request that runs a row's script; its seed depends on the run's seed and the row alone."""
        assert row.script is not None
        spec = self._plan.spec
        return SandboxRequest(
            rollout=row.id,
            task=self.mounts[row.task],
            script=row.script,
            seed=draw_seed("sandbox", spec.seed, row.id) % SANDBOX_SEEDS,
            instrument=spec.environment.instrumentation == "Static",
            grade_partial=spec.reward.grade_partial,
            keep_submission=keep_submission or row.purpose in ("Before", "After"),
            retries=spec.collection.infrastructure_retries,
        )

    def reward(self, task: str, status: RolloutStatus) -> float | None:
        """The reward of a rollout of `task` that ended with `status`."""
        assert status.outcome is not None
        folder = self._plan.tasks[task]
        return reward_of(
            outcome=status.outcome,
            score=status.scores.get(Split.REWARD),
            milestones=status.milestones,
            reward=self._plan.spec.reward,
            info=folder.metric,
            reference=folder.spec.reference,
        )

    def _mode(self, sampler: Sampler, executor: Executor) -> Mode:
        collection, size = self._plan.spec.collection, self._plan.batch_size
        if collection.mode is CollectionMode.SYNCHRONOUS:
            return self._synchronous(sampler, executor)
        ahead = max(executor.free, size)
        if collection.mode is CollectionMode.CONTINUOUS:
            return Continuous(
                ledger=self._ledger,
                rounds=sampler,
                executor=executor,
                size=size,
                ahead=ahead,
                progress=self._progress,
            )
        assert collection.window_seconds is not None
        return Window(
            ledger=self._ledger,
            rounds=sampler,
            executor=executor,
            seconds=collection.window_seconds,
            ahead=ahead,
            progress=self._progress,
        )

    def _synchronous(self, sampler: Sampler, executor: Executor) -> Synchronous:
        return Synchronous(
            ledger=self._ledger,
            rounds=sampler,
            executor=executor,
            size=self._plan.batch_size,
            progress=self._progress,
        )


def prompt_facts(task: TaskFolder) -> TaskPrompt:
    """What a prompt says of a task, its public files included."""
    files = [_data_file(path, task.public) for path in sorted(task.public.rglob("*")) if path.is_file()]
    return task_prompt(task.name, task.spec, task.metric, files)


def _data_file(path: Path, public: Path) -> DataFile:
    return DataFile(path=path.relative_to(public).as_posix(), size=path.stat().st_size, head=_head(path))


def _head(path: Path) -> tuple[str, ...]:
    if path.suffix != ".csv":
        return ()
    with path.open(encoding="utf-8", errors="replace") as file:
        return tuple(line.rstrip("\n") for line in islice(file, HEAD_LINES))
