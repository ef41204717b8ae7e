"""The decode loop: one forward pass a token for every row that has not finished."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache

from mlwright_trainer.inference.engine import GenerationRequest
from mlwright_trainer.inference.sampling import draw, request_noise

# Finished rows cost forward passes, dropping them costs a copy of the cache: drop when a fifth is done.
KEPT_FRACTION = 0.8


@dataclass
class Answer:
    """Tokens sampled so far and their log-probabilities after temperature."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)


class DecodingBatch:
    """One micro-batch on its way; `answers` are in the order of the requests.

    Prompts are padded on the left. Each distinct prompt goes through the model once, however many requests
    share it.
    """

    def __init__(
        self, model: Any, requests: Sequence[GenerationRequest], rooms: Sequence[int], ends: frozenset[int]
    ) -> None:
        self.answers = [Answer() for _ in requests]
        self._model, self._ends, self._rooms = model, ends, list(rooms)
        device = model.device
        self._rows = list(range(len(requests)))
        self._done = [False] * len(requests)
        noise = np.zeros((len(requests), max(rooms)))
        for row, (request, room) in enumerate(zip(requests, rooms, strict=True)):
            noise[row, :room] = request_noise(request.seed, room)
        self._noise = torch.from_numpy(noise).to(device)
        temperatures = [request.temperature for request in requests]
        self._temperature = torch.tensor(temperatures, dtype=torch.float64, device=device)
        self._cache: Any = DynamicCache(config=model.config)
        self._cache_argument = _cache_argument(model)
        self._step = 0
        self._prefill([request.prompt_tokens for request in requests])

    @property
    def unfinished(self) -> bool:
        """Whether any row still wants a token."""
        return not all(self._done[row] for row in self._rows)

    def step(self) -> bool:
        """Draw one token a row and move on; False if a row's logits are not finite."""
        if not bool(torch.isfinite(self._logits).all()):
            return False
        tokens, logprobs = draw(self._logits, self._temperature, self._noise[:, self._step])
        self._record(tokens.tolist(), logprobs.tolist())
        self._step += 1
        tokens = self._drop_finished(tokens)
        if self.unfinished:
            self._advance(tokens)
        return True

    def _prefill(self, prompts: Sequence[tuple[int, ...]]) -> None:
        distinct = list(dict.fromkeys(prompts))
        ids, mask = left_padded(distinct, self._model.device)
        # Without padding the mask says nothing, and attention is faster without one.
        self._mask: Tensor | None = None if bool(mask.all()) else mask
        self._positions = mask.sum(dim=1)
        self._logits = self._forward(ids, (mask.cumsum(dim=1) - 1).clamp(min=0))
        places = {prompt: place for place, prompt in enumerate(distinct)}
        self._select(torch.tensor([places[prompt] for prompt in prompts], device=ids.device))

    def _advance(self, tokens: Tensor) -> None:
        if self._mask is not None:
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], dim=1)
        self._logits = self._forward(tokens.unsqueeze(1), self._positions.unsqueeze(1))
        self._positions = self._positions + 1

    def _forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            position_ids=positions,
            use_cache=True,
            logits_to_keep=1,
            **{self._cache_argument: self._cache},
        )
        logits: Tensor = output.logits[:, -1, :]
        return logits

    def _record(self, tokens: list[int], logprobs: list[float]) -> None:
        for row, token, logprob in zip(self._rows, tokens, logprobs, strict=True):
            if self._done[row]:
                continue
            answer = self.answers[row]
            answer.tokens.append(token)
            answer.logprobs.append(logprob)
            self._done[row] = token in self._ends or len(answer.tokens) == self._rooms[row]

    def _drop_finished(self, tokens: Tensor) -> Tensor:
        kept = [place for place, row in enumerate(self._rows) if not self._done[row]]
        if not kept or len(kept) > KEPT_FRACTION * len(self._rows):
            return tokens
        places = torch.tensor(kept, device=tokens.device)
        self._rows = [self._rows[place] for place in kept]
        self._noise, self._temperature = self._noise[places], self._temperature[places]
        self._select(places)
        return tokens[places]

    def _select(self, places: Tensor) -> None:
        self._cache.batch_select_indices(places)
        self._logits, self._positions = self._logits[places], self._positions[places]
        if self._mask is not None:
            self._mask = self._mask[places]


def left_padded(prompts: Sequence[tuple[int, ...]], device: torch.device) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask, (rows, longest) int64 each; padding is on the left with token 0."""
    longest = max(map(len, prompts))
    ids = [[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    return torch.tensor(ids, device=device), torch.tensor(mask, device=device)


def _cache_argument(model: Any) -> str:
    """transformers 5.24 renamed `past_key_values` to `cache` and drops the old name in 5.40."""
    names = inspect.signature(type(model).forward).parameters
    return "cache" if "cache" in names else "past_key_values"
