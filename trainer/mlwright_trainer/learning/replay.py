"""The learner again, from the initial weights and the ledger's batches: no sandbox, no engine.

Gives the run's own digests, or, with another weighting, what the updates would have been on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from mlwright_api.trainingrun import DurationWeighting, TrainingRunSpec

from mlwright_trainer.exchange import Batch, Publication
from mlwright_trainer.learning.learner import Learner
from mlwright_trainer.progress import Progress


@dataclass(frozen=True)
class ReplayResult:
    """Digest and metrics of every version; index 0 is the initial weights."""

    digests: tuple[str, ...]
    metrics: tuple[dict[str, float], ...]


@dataclass
class _Recorder:
    """An exchange whose batches are known already."""

    batches: Callable[[int], Batch]
    publications: list[Publication] = field(default_factory=list)

    def version(self) -> int:
        return len(self.publications) - 1

    def batch(self, number: int) -> Batch:
        return self.batches(number)

    def publish(self, publication: Publication) -> None:
        self.publications.append(publication)


def replay(
    *,
    spec: TrainingRunSpec,
    initial: Path,
    batches: Callable[[int], Batch],
    updates: int,
    scratch: Path,
    weighting: DurationWeighting | None = None,
    threads: int | None = None,
    device: str = "cpu",
    progress: Progress | None = None,
) -> ReplayResult:
    """Learn `updates` batches from `initial` (weights/0) in the empty folder `scratch`.

    `threads` is the run's (metric `threads` of any version): with another number the bits may differ. With
    another `weighting` the sampler's rows are no longer those of the policy, which is what the importance
    weights are for.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    recorder = _Recorder(batches)
    weights = scratch / "weights"
    weights.mkdir(parents=True)
    (weights / "0").symlink_to(initial.resolve(), target_is_directory=True)
    learner = Learner(
        spec=_with_weighting(spec, weighting),
        weights=weights,
        checkpoints=scratch / "checkpoints",
        exchange=recorder,
        device=device,
        progress=progress,
    )
    learner.run(updates)
    return ReplayResult(
        tuple(p.digest for p in recorder.publications), tuple(dict(p.metrics) for p in recorder.publications)
    )


def _with_weighting(spec: TrainingRunSpec, weighting: DurationWeighting | None) -> TrainingRunSpec:
    """No checkpoints on the way: a replay that is stopped starts again."""
    checkpoint = spec.checkpoint.model_copy(update={"every_updates": 1_000_000, "keep": 1})
    algorithm = spec.algorithm
    if weighting is not None:
        algorithm = algorithm.model_copy(update={"duration_weighting": weighting})
    return spec.model_copy(update={"algorithm": algorithm, "checkpoint": checkpoint})
