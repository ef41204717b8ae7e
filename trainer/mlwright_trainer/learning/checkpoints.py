"""Checkpoints: everything a learner needs to go on as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mlwright_trainer.learning.advantages import RunningMoments
from mlwright_trainer.learning.disk import Disk, Fence, commit_folder, discard_folder, numbered, torn
from mlwright_trainer.learning.update import Learning

_TENSORS, _NUMBERS = "tensors.pt", "numbers.json"


@dataclass(frozen=True)
class Restored:
    """What a checkpoint says besides the tensors that were put back: metrics are those of the update that
    made it."""

    version: int
    metrics: Mapping[str, float]
    threads: int


class Checkpoints:
    """Folders checkpoints/<version>; the newest complete one counts."""

    def __init__(self, folder: Path, *, fence: Fence, disk: Disk) -> None:
        self.folder, self._fence, self._disk = folder, fence, disk

    def save(self, state: Learning, *, version: int, metrics: Mapping[str, float]) -> None:
        """Model, critic, optimizers, moments, KL coefficient, random state, thread count."""
        self._fence.check()
        numbers = {
            "version": version,
            "metrics": dict(metrics),
            "threads": torch.get_num_threads(),
            "klCoefficient": state.kl_coefficient,
            "moments": state.running.state(),
            "torch": torch.__version__,
        }

        def write(folder: Path) -> None:
            torch.save(_tensors(state), folder / _TENSORS)
            (folder / _NUMBERS).write_text(json.dumps(numbers, indent=1), encoding="utf-8")

        facts = {"version": version, "restart": self._fence.restart}
        commit_folder(self.folder / str(version), write, facts=facts, disk=self._disk)

    def restore(self, state: Learning, *, warn: Callable[[str], None]) -> Restored | None:
        """Put the newest complete checkpoint into `state`; None if there is none. Torn ones are named to
        `warn`."""
        for version in reversed(numbered(self.folder)):
            folder = self.folder / str(version)
            problem = torn(folder)
            if not problem:
                return _restore(state, folder)
            warn(f"checkpoint {folder} is skipped: {problem}")
        return None

    def prune(self, keep: int) -> list[int]:
        """Delete all but the newest `keep`; the versions that are left."""
        versions = numbered(self.folder)
        for version in versions[:-keep]:
            discard_folder(self.folder / str(version), disk=self._disk)
        return versions[-keep:]


def _tensors(state: Learning) -> dict[str, Any]:
    return {
        "policy": state.policy.state(),
        "critic": state.critic.state_dict(),
        "policyOptimizer": state.policy_optimizer.state_dict(),
        "criticOptimizer": state.critic_optimizer.state_dict(),
        "random": torch.get_rng_state(),
        "cudaRandom": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def _restore(state: Learning, folder: Path) -> Restored:
    tensors = torch.load(folder / _TENSORS, map_location="cpu", weights_only=True)
    numbers = json.loads((folder / _NUMBERS).read_text(encoding="utf-8"))
    state.policy.restore(tensors["policy"])
    state.critic.load_state_dict(tensors["critic"])
    state.policy_optimizer.load_state_dict(tensors["policyOptimizer"])
    state.critic_optimizer.load_state_dict(tensors["criticOptimizer"])
    torch.set_rng_state(tensors["random"])
    if tensors["cudaRandom"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(tensors["cudaRandom"])
    state.kl_coefficient = float(numbers["klCoefficient"])
    state.running = RunningMoments.restored(numbers["moments"])
    return Restored(int(numbers["version"]), numbers["metrics"], int(numbers["threads"]))
