"""Checkpoints: everything a learner needs to go on as if it had never stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from mlwright_trainer.errors import UserError
from mlwright_trainer.learning.advantages import RunningMoments
from mlwright_trainer.learning.disk import (
    Disk,
    Fence,
    commit_folder,
    discard_folder,
    numbered,
    partial_path,
    torn,
)
from mlwright_trainer.learning.update import Learning

_TENSORS, _SHARDS, _NUMBERS = "tensors.pt", "shards", "numbers.json"


@dataclass(frozen=True)
class Restored:
    """What a checkpoint says besides the tensors; `metrics` are those of the update that made it."""

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
        target = self.folder / str(version)
        numbers = {
            "version": version,
            "metrics": dict(metrics),
            "threads": torch.get_num_threads(),
            "klCoefficient": state.kl_coefficient,
            "moments": state.running.state(),
            "torch": torch.__version__,
        }

        def write(folder: Path) -> None:
            _store(state, folder)
            (folder / _NUMBERS).write_text(json.dumps(numbers, indent=1), encoding="utf-8")

        facts = {"version": version, "restart": self._fence.restart}
        if state.workers.first:
            commit_folder(target, write, facts=facts, disk=self._disk)
        else:
            _store(state, partial_path(target))
        state.workers.told(lambda: None)

    def restore(self, state: Learning, *, warn: Callable[[str], None]) -> Restored | None:
        """Put the newest complete checkpoint into `state`; None if there is none.

        Torn ones are named to `warn`. UserError for several processes at a checkpoint of a single one.
        """
        version = state.workers.told(lambda: self._newest(warn))
        return None if version is None else _restore(state, self.folder / str(version))

    def _newest(self, warn: Callable[[str], None]) -> int | None:
        for version in reversed(numbered(self.folder)):
            problem = torn(self.folder / str(version))
            if not problem:
                return version
            warn(f"checkpoint {self.folder / str(version)} is skipped: {problem}")
        return None

    def prune(self, keep: int) -> list[int]:
        """Delete all but the newest `keep`; the versions that are left."""
        versions = numbered(self.folder)
        for version in versions[:-keep]:
            discard_folder(self.folder / str(version), disk=self._disk)
        return versions[-keep:]


def _store(state: Learning, folder: Path) -> None:
    """One file, or with several processes the shards of each by DCP."""
    if state.workers.size > 1:
        save(_shards(state), checkpoint_id=folder / _SHARDS)
    else:
        torch.save(_tensors(state), folder / _TENSORS)


def _shards(state: Learning) -> dict[str, Any]:
    """What DCP saves and loads in place, readable by any number of processes.

    An update draws nothing from the global generators, so there is no random state to keep.
    """
    trained = StateDictOptions(ignore_frozen_params=True)
    policy, critic = state.policy.model, state.critic
    return {
        "policy": get_model_state_dict(policy, options=trained),
        "critic": get_model_state_dict(critic, options=trained),
        "policyOptimizer": get_optimizer_state_dict(policy, state.policy_optimizer, options=trained),
        "criticOptimizer": get_optimizer_state_dict(critic, state.critic_optimizer, options=trained),
    }


def _load_shards(state: Learning, folder: Path) -> None:
    shards = _shards(state)
    load(shards, checkpoint_id=folder / _SHARDS)
    for name, model, optimizer in (
        ("policy", state.policy.model, state.policy_optimizer),
        ("critic", state.critic, state.critic_optimizer),
    ):
        options = StateDictOptions(strict=False, ignore_frozen_params=True)
        set_model_state_dict(model, shards[name], options=options)
        set_optimizer_state_dict(model, optimizer, shards[f"{name}Optimizer"], options=options)


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
    numbers = json.loads((folder / _NUMBERS).read_text(encoding="utf-8"))
    if (folder / _SHARDS).is_dir():
        _load_shards(state, folder)
    elif state.workers.size > 1:
        raise UserError(f"{folder} was written by a single process: go on with one, or start a new run")
    else:
        _load_tensors(state, folder)
    state.kl_coefficient = float(numbers["klCoefficient"])
    state.running = RunningMoments.restored(numbers["moments"])
    return Restored(int(numbers["version"]), numbers["metrics"], int(numbers["threads"]))


def _load_tensors(state: Learning, folder: Path) -> None:
    tensors = torch.load(folder / _TENSORS, map_location="cpu", weights_only=True)
    state.policy.restore(tensors["policy"])
    state.critic.load_state_dict(tensors["critic"])
    state.policy_optimizer.load_state_dict(tensors["policyOptimizer"])
    state.critic_optimizer.load_state_dict(tensors["criticOptimizer"])
    torch.set_rng_state(tensors["random"])
    if tensors["cudaRandom"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(tensors["cudaRandom"])
