"""One process or many: who computes which rows, and how the parts are put together.

`Alone` is the laptop; `Sharded` is torchrun with FSDP2: parameters, gradients and optimizer states are split over
the processes, every process computes a share of each mini-batch's micro-batches, and only the first one touches
files and the exchange. The update above reads the same in both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Protocol, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

T = TypeVar("T")

PATIENCE = timedelta(days=7)
"""How long the other processes wait while the first one waits for a batch."""


class Share(list[int]):
    """Indices of one micro-batch; an idle one is computed only because the others need company, and counts 0."""

    idle = False


class Workers(Protocol):
    """The processes that learn together."""

    size: int
    first: bool
    device: torch.device

    def shares(self, groups: Sequence[Sequence[int]]) -> list[Share]:
        """This process's part of the micro-batches: equally many for everybody."""
        ...

    def total(self, *tensors: Tensor) -> None:
        """Sum each tensor over the processes, in place."""
        ...

    def told(self, ask: Callable[[], T]) -> T:
        """What the first process gets from `ask`, for everybody."""
        ...

    def split(self, module: nn.Module, layers: Sequence[str] = ()) -> None:
        """Divide a module's parameters over the processes, layer by layer (class names)."""
        ...

    def leave(self) -> None:
        """Part from the others, at the end: a group left to the interpreter's exit may abort the process."""
        ...


class Alone:
    """The only process."""

    size, first = 1, True

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def shares(self, groups: Sequence[Sequence[int]]) -> list[Share]:
        return [Share(group) for group in groups]

    def total(self, *tensors: Tensor) -> None: ...

    def told(self, ask: Callable[[], T]) -> T:
        return ask()

    def split(self, module: nn.Module, layers: Sequence[str] = ()) -> None: ...

    def leave(self) -> None: ...


class Sharded:
    """One of several processes that torchrun started."""

    def __init__(self, device: torch.device) -> None:
        if device.type == "cuda":
            device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(device)
        if not dist.is_initialized():
            backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
            dist.init_process_group(backend, timeout=PATIENCE)
        self.device, self.size, self.first = device, dist.get_world_size(), dist.get_rank() == 0
        self._mesh = init_device_mesh(device.type, (self.size,))

    def shares(self, groups: Sequence[Sequence[int]]) -> list[Share]:
        """Every size-th group; where the groups do not divide evenly, the first one again, idle."""
        rank, rounds = dist.get_rank(), -(-len(groups) // self.size)
        own = [Share(group) for group in groups[rank :: self.size]]
        while len(own) < rounds:
            own.append(Share(groups[0]))
            own[-1].idle = True
        return own

    def total(self, *tensors: Tensor) -> None:
        for tensor in tensors:
            dist.all_reduce(tensor)

    def told(self, ask: Callable[[], T]) -> T:
        box: list[T | None] = [ask() if self.first else None]
        dist.broadcast_object_list(box, src=0, device=torch.device("cpu"))
        answer: T = box[0]  # type: ignore[assignment]  # the first process has filled it
        return answer

    def split(self, module: nn.Module, layers: Sequence[str] = ()) -> None:
        from torch.distributed.fsdp import fully_shard

        for layer in [m for m in module.modules() if type(m).__name__ in layers]:
            fully_shard(layer, mesh=self._mesh)
        fully_shard(module, mesh=self._mesh)

    def leave(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def workers(device: str) -> Workers:
    """Alone, or with the processes that torchrun started beside this one."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        return Sharded(torch.device(device))
    return Alone(torch.device(device))


def whole(tensor: Tensor) -> Tensor:
    """A tensor with all its parts; every process has to ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
