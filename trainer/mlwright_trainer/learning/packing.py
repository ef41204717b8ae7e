"""Rows of tokens to padded tensors: which rows share a forward pass, and which an optimizer step."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from mlwright_trainer.exchange import TrainingRow


@dataclass(frozen=True)
class Packed:
    """Rows that go through the networks together, padded on the right.

    `rows` [B] are indices into the batch; `tokens` [B, L] prompt and response; `positions` [B, T] index L
    where each response token is predicted from (one before it); `mask` [B, T] is 1 on response tokens.
    Causal attention never looks at padding on the right, so no attention mask is needed.
    """

    rows: Tensor
    tokens: Tensor
    positions: Tensor
    mask: Tensor


def pack(rows: Sequence[TrainingRow], indices: Sequence[int], *, device: torch.device) -> Packed:
    """The rows at `indices` as one padded micro-batch on `device`."""
    chosen = [rows[i] for i in indices]
    width = max(len(r.prompt_tokens) + len(r.response_tokens) for r in chosen)
    length = max(len(r.response_tokens) for r in chosen)
    tokens = torch.zeros((len(chosen), width), dtype=torch.long)
    positions = torch.zeros((len(chosen), length), dtype=torch.long)
    mask = torch.zeros((len(chosen), length))
    for i, row in enumerate(chosen):
        start, count = len(row.prompt_tokens), len(row.response_tokens)
        tokens[i, : start + count] = torch.tensor(row.prompt_tokens + row.response_tokens)
        positions[i] = torch.arange(start - 1, start - 1 + length).clamp(max=start + count - 2)
        mask[i, :count] = 1
    index = torch.tensor(indices, dtype=torch.long)
    return Packed(index.to(device), tokens.to(device), positions.to(device), mask.to(device))


def row_tokens(rows: Sequence[TrainingRow]) -> list[int]:
    """Length of each row in tokens, prompt included."""
    return [len(row.prompt_tokens) + len(row.response_tokens) for row in rows]


def microbatches(lengths: Sequence[int], *, budget: int) -> list[list[int]]:
    """Groups of indices whose padded size (rows x longest) fits in `budget` tokens, longest rows first.

    A row longer than the budget is a group of its own. Gradients are summed over the groups of a step with
    weights fixed beforehand, so the grouping changes memory and time, not the update.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    groups: list[list[int]] = []
    for i in order:
        longest = lengths[groups[-1][0]] if groups else 0
        if groups and (len(groups[-1]) + 1) * longest <= budget:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def minibatches(rows: int, *, size: int | None, generator: torch.Generator) -> list[list[int]]:
    """A random partition of range(rows) into even parts of at most `size` rows (None: one part)."""
    parts = 1 if size is None else -(-rows // size)
    order = torch.randperm(rows, generator=generator).tolist()
    bounds = [rows * part // parts for part in range(parts + 1)] if rows else [0]
    return [order[start:end] for start, end in pairwise(bounds)]


def seeded(*key: int | str) -> torch.Generator:
    """A generator whose stream depends on the key alone."""
    digest = hashlib.sha256("/".join(map(str, key)).encode()).digest()
    generator = torch.Generator()
    generator.manual_seed(int.from_bytes(digest[:8], "little") >> 1)
    return generator


def padded(rows: Sequence[Sequence[float]], *, device: torch.device) -> Tensor:
    """Lists of different lengths as [R, T] in float32, zeros on the right."""
    width = max(map(len, rows), default=0)
    return torch.tensor([[*row, *([0.0] * (width - len(row)))] for row in rows], device=device)
