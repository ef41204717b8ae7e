"""Rejection-sampling fine-tuning: a supervised pass over the scripts that were kept, and new weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mlwright_api.trainingrun import FineTuning, TrainingRunSpec
from mlwright_trainer.collection.draws import draw_seed
from mlwright_trainer.exchange import Publication
from mlwright_trainer.generators import Example
from mlwright_trainer.inference.model_folder import load_model, load_tokenizer
from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.disk import Disk, commit_folder, discard_folder, numbered
from mlwright_trainer.learning.fine_tuning import fine_tune
from mlwright_trainer.learning.learner import make_deterministic

SEEDS = 2**31
STEP_EXAMPLES = 6
"""Scripts an optimizer step: up to 24 kept ones make 4 steps, as many as the RL arm takes in an update."""


class RejectionSteps:
    """Makes version n + 1 of the weights from version n and the scripts that were kept."""

    def __init__(self, spec: TrainingRunSpec, weights: Path, *, rate: float) -> None:
        """`weights`/0 exists."""
        make_deterministic()
        self._weights, self._seed, self._disk = weights, spec.seed, Disk()
        self._tuning = _one_pass(spec, rate)
        self._tokenizer = load_tokenizer(weights / "0")

    def advance(self, version: int, kept: Sequence[Example]) -> Publication:
        """One supervised pass over `kept`; without any the weights stay as they are."""
        model = load_model(self._weights / str(version)).requires_grad_(True)
        metrics = self._tune(model, kept, draw_seed("rejection sampling", self._seed, version) % SEEDS)
        target = self._weights / str(version + 1)

        def write(folder: Path) -> None:
            model.save_pretrained(folder)
            self._tokenizer.save_pretrained(folder)

        commit_folder(target, write, facts={"version": version + 1}, disk=self._disk)
        self._prune(version)
        return Publication(version + 1, target, weights_digest(target), metrics)

    def _tune(self, model: Any, kept: Sequence[Example], seed: int) -> dict[str, float]:
        if not kept:
            return {"examples": 0.0}
        tuned = fine_tune(model, self._tokenizer, kept, self._tuning, seed=seed, progress=_unheard)
        return {"examples": float(tuned.examples), "steps": float(tuned.steps), "loss": tuned.last_loss}

    def _prune(self, version: int) -> None:
        """Versions before `version`, 0 excepted, are needed no more."""
        for older in numbered(self._weights):
            if 0 < older < version:
                discard_folder(self._weights / str(older), disk=self._disk)


def _unheard(_note: str, _share: float) -> None:
    """A pass takes less than a second."""


def _one_pass(spec: TrainingRunSpec, rate: float) -> FineTuning:
    assert spec.fine_tuning is not None
    changes = {"learning_rate": rate, "batch_size": STEP_EXAMPLES, "scheduler": "Constant", "epochs": 1}
    return spec.fine_tuning.model_copy(update=changes)
