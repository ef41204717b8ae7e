"""The learner: batch n in, update, weights n+1 on disk, checkpoint, published.

The order makes a kill at any moment harmless. Weights are complete before the checkpoint that knows of
them, and the checkpoint before anybody is told; a restart publishes its version again (which does nothing
the second time) and asks for the same batch again. What was not checkpointed is computed again, to the same
bits.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from mlwright_api.trainingrun import TrainingRunSpec

from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.exchange import Batch, Exchange, Publication
from mlwright_trainer.learning.checkpoints import Checkpoints
from mlwright_trainer.learning.disk import Disk, Fence, sweep
from mlwright_trainer.learning.experience import Experience, wants_reference
from mlwright_trainer.learning.guards import logprob_difference, require_agreement
from mlwright_trainer.learning.measures import metrics
from mlwright_trainer.learning.networks import dtype_of, load_critic, load_policy, load_reference
from mlwright_trainer.learning.parallel import Workers, workers
from mlwright_trainer.learning.update import Learning, learn, prepare, start
from mlwright_trainer.learning.weights import WeightsFolder, require_initial
from mlwright_trainer.progress import Progress, Silence


class Learner:
    """Turns batches into versions of the policy; one instance is one process start."""

    def __init__(
        self,
        *,
        spec: TrainingRunSpec,
        weights: Path,
        checkpoints: Path,
        exchange: Exchange,
        device: str = "cpu",
        progress: Progress | None = None,
        restart: int | None = None,
        disk: Disk | None = None,
    ) -> None:
        """`weights`/0 exists. `restart` numbers this process start (default: one more than the last)."""
        require_learnable(spec)
        require_initial(weights)
        self._spec, self._exchange, self._workers = spec, exchange, workers(device)
        self._progress = progress or Silence()
        self._disk = disk or Disk()
        fence = self._workers.told(lambda: Fence(checkpoints, disk=self._disk, restart=restart))
        self._weights = WeightsFolder(weights, fence=fence, disk=self._disk)
        self._checkpoints = Checkpoints(checkpoints, fence=fence, disk=self._disk)
        self._state: Learning | None = None
        self._version = 0
        self._agreed = False

    @property
    def version(self) -> int:
        """Newest version that is complete; before `run`, that of nothing restored yet: 0."""
        return self._version

    def run(self, updates: int) -> None:
        """Go on from the newest checkpoint until version `updates` is published.

        After an error or an interrupt the next call starts from the newest checkpoint again.
        """
        try:
            state = self._state or self._resume()
            self._state = None
            for number in range(self._version, updates):
                batch = self._workers.told(partial(self._exchange.batch, number))
                self._advance(state, batch, last=number + 1 == updates)
            self._state = state
        finally:
            if self._state is None:
                self._agreed = False

    def close(self) -> None:
        """Part from the other processes; the learner is of no use afterwards."""
        self._workers.leave()

    def _resume(self) -> Learning:
        """Networks and optimizers as the newest checkpoint left them, or at version 0; published."""
        make_deterministic()
        self._workers.told(self._sweep)
        state = initial_state(self._spec, self._weights.path(0), workers=self._workers)
        restored = self._checkpoints.restore(state, warn=self._progress.say)
        self._version = restored.version if restored else 0
        if restored and restored.threads != torch.get_num_threads():
            self._progress.say(f"using {restored.threads} threads, as the run began with")
            torch.set_num_threads(restored.threads)
        self._publish(self._digest(state), restored.metrics if restored else {})
        return state

    def _sweep(self) -> None:
        sweep(self._weights.folder, disk=self._disk)
        sweep(self._checkpoints.folder, disk=self._disk)

    def _digest(self, state: Learning) -> str:
        """Of the version restored; should its weights be damaged or gone, they are written again."""
        if self._version and not self._workers.told(lambda: self._weights.intact(self._version)):
            return self._save(state, self._version)
        return self._workers.told(lambda: self._weights.digest(self._version))

    def _save(self, state: Learning, version: int) -> str:
        dtype = dtype_of(self._spec.model)
        return self._weights.save(version, state.policy.model, dtype=dtype, workers=self._workers)

    def _advance(self, state: Learning, batch: Batch, *, last: bool) -> None:
        """One update, from batch n to the publication of version n+1."""
        began = time.monotonic()
        measured = self._update(state, batch)
        version = self._version + 1
        digest = self._save(state, version)
        measured["seconds"] = time.monotonic() - began
        self._version = version
        if last or version % self._spec.checkpoint.every_updates == 0:
            self._checkpoints.save(state, version=version, metrics=measured)
        self._publish(digest, measured)
        if self._workers.first:
            self._prune()

    def _update(self, state: Learning, batch: Batch) -> dict[str, float]:
        """The numbers of the update; the state moves on. A batch without rows changes nothing."""
        if batch.number != self._version:
            raise InternalError(f"asked for batch {self._version}, was given batch {batch.number}")
        measured = {"threads": float(torch.get_num_threads())}
        if not batch.rows:
            return {**measured, "rows": 0.0}
        data = prepare(state, batch, self._spec)
        self._require_agreement(data)
        trace = learn(state, data, self._spec, number=batch.number)
        return {**measured, **metrics(data, trace, state, version=self._version)}

    def _require_agreement(self, data: Experience) -> None:
        """Once a process start, on the first batch with rows of the current version."""
        if self._agreed:
            return
        seen = data.forward
        difference = logprob_difference(
            seen.prox, seen.behaviour, seen.mask, rows=data.rows, version=self._version
        )
        if difference is not None:
            require_agreement(difference, dtype=dtype_of(self._spec.model), version=self._version)
            self._agreed = True

    def _publish(self, digest: str, measured: Mapping[str, float]) -> None:
        if self._workers.first:
            folder = self._weights.path(self._version)
            self._exchange.publish(Publication(self._version, folder, digest, dict(measured)))

    def _prune(self) -> None:
        """Old checkpoints, and the weights that neither a checkpoint nor a sampler needs any more."""
        keep = self._spec.checkpoint.keep
        checkpoints = self._checkpoints.prune(keep)
        newest = range(self._version - keep + 1, self._version + 1)
        self._weights.prune({*checkpoints, *newest})


def require_learnable(spec: TrainingRunSpec) -> None:
    """UserError for settings that cannot learn what they seem to ask for."""
    dtype_of(spec.model)
    kl = spec.algorithm.kl
    if kl.coefficient > 0 and kl.placement == "Loss" and kl.estimator == "K1":
        raise UserError(
            "algorithm.kl: estimator K1 with placement Loss has a gradient of zero expectation; "
            "use K2 or K3, or placement Reward"
        )


def initial_state(spec: TrainingRunSpec, initial: Path, *, workers: Workers) -> Learning:
    """Networks at the initial weights, fresh optimizers."""
    policy = load_policy(spec, initial, workers=workers)
    critic = load_critic(spec, initial, workers=workers)
    reference = load_reference(spec, initial, policy, workers=workers) if wants_reference(spec) else None
    return start(spec, policy=policy, critic=critic, reference=reference, workers=workers)


def make_deterministic() -> None:
    """The same inputs give the same bits: on this machine, with this number of threads."""
    from transformers.utils.logging import disable_progress_bar

    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    # The bars of loading and saving would end up between the lines of the command's own view.
    disable_progress_bar()
