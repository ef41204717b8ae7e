"""Sampling in this process with a transformers model: batched, KV-cached, tokens in and tokens out."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch

from mlwright_trainer.errors import InternalError
from mlwright_trainer.inference.batching import BatchBudget, micro_batches, room_for_answer
from mlwright_trainer.inference.decoding import Answer, DecodingBatch
from mlwright_trainer.inference.engine import Generation, GenerationRequest, VersionSpan
from mlwright_trainer.inference.model_folder import context_length, end_tokens, load_model, swap_weights


class TransformersEngine:
    """Samples from a Hugging Face folder (design section 8).

    What a request gets depends on weights, prompt, temperature and seed alone, as far as floating-point
    sums of differently shaped batches agree. `load` waits for a `generate` that is running, and the other way
    round, so a generation never mixes versions. Raises UserError for a folder that holds no model and for
    prompts that do not fit, InternalError when logits stop being finite.
    """

    def __init__(
        self, folder: Path, version: int, *, device: str = "cpu", budget: BatchBudget | None = None
    ) -> None:
        self._device = torch.device(device)
        self._budget = budget or BatchBudget()
        self._lock = threading.Lock()
        self._model: Any = load_model(folder).to(self._device)
        self._ends = end_tokens(folder, self._model)
        self._context = context_length(self._model)
        self._version = version

    @property
    def version(self) -> int:
        """The version that the next token comes from."""
        return self._version

    def load(self, version: int, folder: Path) -> None:
        """Put the folder's weights into the model in place; the shapes must be those of the first folder."""
        with self._lock:
            swap_weights(self._model, folder)
            self._version = version

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """One generation a request, in order."""
        rooms = [room_for_answer(request, self._context) for request in requests]
        answers: dict[int, Answer] = {}
        with self._lock, torch.inference_mode():
            for indices in micro_batches(requests, rooms, self._budget):
                batch = [requests[i] for i in indices]
                decoded = self._decode(batch, [rooms[i] for i in indices])
                answers.update(zip(indices, decoded, strict=True))
            version = self._version
        return [self._generation(request, answers[i], version) for i, request in enumerate(requests)]

    def _decode(self, requests: Sequence[GenerationRequest], rooms: Sequence[int]) -> list[Answer]:
        batch = DecodingBatch(self._model, requests, rooms, self._ends)
        while batch.unfinished:
            if not batch.step():
                raise InternalError(
                    f"the logits of policy version {self._version} are not finite: these weights are broken"
                )
        return batch.answers

    def _generation(self, request: GenerationRequest, answer: Answer, version: int) -> Generation:
        stopped = answer.tokens[-1] in self._ends
        finish: Literal["stop", "length"] = "stop" if stopped else "length"
        return Generation(
            id=request.id,
            tokens=tuple(answer.tokens),
            logprobs=tuple(answer.logprobs),
            finish=finish,
            spans=(VersionSpan(version=version, start=0, end=len(answer.tokens)),),
        )
