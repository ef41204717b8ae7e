"""What the benchmark consists of: seeds, tasks, arms, and the order in which they are carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RUN_FILE = REPOSITORY / "examples/quickstart/run.yaml"
TASKS = REPOSITORY / "examples/tasks"
STATE = REPOSITORY / "runs/bench-quickstart"
RESULTS = REPOSITORY / "benchmarks/results"

SEEDS = (1, 2, 3, 4, 5)
FIRST_TASK, SECOND_TASK = "churn", "credit"
SECOND_TASK_SEEDS = 3


class Arm(StrEnum):
    """A way to spend sandbox seconds."""

    RL = "rl"
    BEST_OF_N = "best-of-n"
    REJECTION_SAMPLING = "rejection-sampling"
    SHUFFLED = "shuffled"


ARMS: Mapping[str, tuple[Arm, ...]] = {FIRST_TASK: tuple(Arm), SECOND_TASK: (Arm.RL, Arm.BEST_OF_N)}
"""By task; Arm.RL comes first, because what it spends is what the others may spend."""


@dataclass(frozen=True)
class Sizes:
    """Counts in place of the quickstart's own (None: as they are), for a try; a whole benchmark has none."""

    updates: int | None = None
    batch: int | None = None
    samples: int | None = None
    examples: int | None = None

    @property
    def whole(self) -> bool:
        return self == Sizes()


@dataclass(frozen=True)
class Job:
    """One arm on one task with one seed."""

    seed: int
    task: str
    arm: Arm

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.task}, {self.arm}"


@dataclass(frozen=True)
class Settings:
    """Everything that a person may choose."""

    seeds: tuple[int, ...] = SEEDS
    arms: tuple[Arm, ...] = tuple(Arm)
    sizes: Sizes = Sizes()
    rejection_rate: float = 3e-4
    """Learning rate of rejection sampling: the default is that of the RL arm."""
    state: Path = STATE

    def jobs(self) -> list[Job]:
        """Everything to do, a seed after the other, so that what is finished at any time is balanced."""
        return [
            Job(seed, task, arm)
            for number, seed in enumerate(self.seeds)
            for task, arms in ARMS.items()
            if task == FIRST_TASK or number < SECOND_TASK_SEEDS
            for arm in arms
            if arm in self.arms
        ]

    def seed_folder(self, seed: int) -> Path:
        return self.state / f"seed-{seed}"

    def initial_weights(self, seed: int) -> Path:
        """The fine-tuned model that every arm of a seed starts from."""
        return self.seed_folder(seed) / "weights" / "0"

    def folder(self, job: Job) -> Path:
        """The run folder of an arm."""
        return self.seed_folder(job.seed) / job.task / job.arm
