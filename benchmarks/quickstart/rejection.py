"""Rejection-sampling fine-tuning: keep the better half of what is valid, fine-tune on it, sample again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from mlwright_api.trainingrun import FineTuning, TrainingRunSpec
from mlwright_trainer.collection.draws import draw_seed
from mlwright_trainer.exchange import Publication
from mlwright_trainer.generators import Example
from mlwright_trainer.inference.model_folder import load_model, load_tokenizer
from mlwright_trainer.learning.disk import Disk, Fence
from mlwright_trainer.learning.fine_tuning import fine_tune
from mlwright_trainer.learning.learner import make_deterministic
from mlwright_trainer.learning.networks import dtype_of
from mlwright_trainer.learning.weights import WeightsFolder
from mlwright_trainer.ledger import RolloutRow
from mlwright_trainer.runs.folder import RunFolder

STEP_EXAMPLES = 6
"""Scripts an optimizer step: up to 24 kept ones make 4 steps, as many as the RL arm takes in an update."""


def better_half(rows: Sequence[RolloutRow]) -> list[RolloutRow]:
    """The better half (rounded up) of the valid rows by reward, in their own order; ties go to the earlier."""
    valid = [(place, row) for place, row in enumerate(rows) if row.outcome is not None and row.outcome.valid]
    ranked = sorted(valid, key=lambda pair: (-_reward(pair[1]), pair[0]))
    return [row for _, row in sorted(ranked[: (len(valid) + 1) // 2], key=lambda pair: pair[0])]


def _reward(row: RolloutRow) -> float:
    assert row.reward is not None, "valid rows have a reward"
    return row.reward


class RejectionSteps:
    """Makes version n + 1 of the weights from version n and the scripts that were kept."""

    def __init__(self, spec: TrainingRunSpec, folder: RunFolder, *, rate: float, seed: int) -> None:
        make_deterministic()
        disk = Disk()
        self._spec, self._seed = spec, seed
        self._weights = WeightsFolder(folder.weights, fence=Fence(folder.checkpoints, disk=disk), disk=disk)
        self._tuning = _one_pass(spec, rate)

    def advance(self, version: int, kept: Sequence[Example]) -> Publication:
        """One supervised pass over `kept`; without any the weights stay as they are."""
        source = self._weights.path(version)
        model = load_model(source).requires_grad_(True)
        metrics = {"examples": float(len(kept))}
        if kept:
            seed = draw_seed("rejection sampling", self._seed, version) % 2**31
            tuned = fine_tune(
                model,
                load_tokenizer(source),
                kept,
                self._tuning,
                seed=seed,
                progress=lambda _note, _share: None,
            )
            metrics |= {"steps": float(tuned.steps), "loss": tuned.last_loss}
        digest = self._weights.save(
            version + 1, model, dtype=dtype_of(self._spec.model), threads=torch.get_num_threads()
        )
        self._weights.prune({version, version + 1})
        return Publication(version + 1, self._weights.path(version + 1), digest, metrics)


def _one_pass(spec: TrainingRunSpec, rate: float) -> FineTuning:
    assert spec.fine_tuning is not None
    changes = {"learning_rate": rate, "batch_size": STEP_EXAMPLES, "scheduler": "Constant", "epochs": 1}
    return spec.fine_tuning.model_copy(update=changes)
