"""Versions of the policy as ordinary Hugging Face folders: weights/0, weights/1, ..."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mlwright_trainer.errors import UserError
from mlwright_trainer.learning.digest import weights_digest
from mlwright_trainer.learning.disk import MARKER, Disk, Fence, commit_folder, discard_folder, numbered, torn
from mlwright_trainer.learning.networks import merged_state
from mlwright_trainer.learning.parallel import Workers

_TENSOR_FILES = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.pt", MARKER)


class WeightsFolder:
    """Writes versions; version 0 is there already and is never touched."""

    def __init__(self, folder: Path, *, fence: Fence, disk: Disk) -> None:
        self.folder, self._fence, self._disk = folder, fence, disk

    def path(self, version: int) -> Path:
        """Where a version is or would be."""
        return self.folder / str(version)

    def digest(self, version: int) -> str:
        """Of the tensors of a version."""
        return weights_digest(self.path(version))

    def save(self, version: int, model: Any, *, dtype: torch.dtype, workers: Workers) -> str:
        """All processes together write a version; its digest.

        LoRA is merged, floats are in `dtype`, what is not tensors is that of version 0.

        One that is there, complete and equal stays; one that differs (an earlier process died before its
        checkpoint, on another machine or thread count) is replaced. A learner with a lower restart number
        is refused.
        """
        state = _cast(merged_state(model), dtype)
        plain = model.get_base_model() if hasattr(model, "get_base_model") else model

        def write(folder: Path) -> None:
            plain.save_pretrained(folder, state_dict=state)
            _copy_rest(self.path(0), folder)

        return workers.told(lambda: self._replace(version, write))

    def intact(self, version: int) -> bool:
        """Whether a version that this class wrote is complete."""
        return not torn(self.path(version))

    def _replace(self, version: int, write: Callable[[Path], None]) -> str:
        self._fence.check()
        target = self.path(version)
        partial = target.parent / f".{target.name}.candidate"
        facts = {"version": version, "restart": self._fence.restart, "threads": torch.get_num_threads()}
        commit_folder(partial, write, facts=facts, disk=self._disk)
        digest = weights_digest(partial)
        if target.exists() and not torn(target) and weights_digest(target) == digest:
            self._disk.remove(partial)
            return digest
        if target.exists():
            discard_folder(target, disk=self._disk)
        self._fence.check()
        self._disk.rename(partial, target)
        return digest

    def prune(self, keep: Iterable[int]) -> None:
        """Delete all versions but `keep` and 0."""
        kept = {0, *keep}
        for version in numbered(self.folder):
            if version not in kept:
                discard_folder(self.path(version), disk=self._disk)


def require_initial(folder: Path) -> None:
    """UserError where version 0 is missing."""
    initial = folder / "0"
    if not (initial / "config.json").is_file():
        raise UserError(f"{initial}: no initial weights (a Hugging Face folder) to start from")


def _copy_rest(source: Path, target: Path) -> None:
    """Tokenizer, chat template, configuration: what is not tensors is that of version 0, byte for byte."""
    tensors = {path for pattern in _TENSOR_FILES for path in source.glob(pattern)}
    for path in sorted(source.iterdir()):
        if path.is_file() and path not in tensors:
            shutil.copyfile(path, target / path.name)


def _cast(state: dict[str, Tensor], dtype: torch.dtype) -> dict[str, Tensor]:
    """Floating tensors in `dtype`; tensors that share memory (tied weights) still do afterwards."""
    seen: dict[tuple[int, torch.Size], Tensor] = {}

    def cast(tensor: Tensor) -> Tensor:
        key = (tensor.data_ptr(), tensor.shape)
        if key not in seen:
            seen[key] = (
                tensor.detach().to("cpu", dtype) if tensor.is_floating_point() else tensor.detach().cpu()
            )
        return seen[key]

    return {name: cast(tensor) for name, tensor in state.items()}
