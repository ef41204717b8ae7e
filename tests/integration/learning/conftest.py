"""A tiny Qwen2-shaped model, rows that it sampled itself, and an exchange in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_api.rollout import Outcome
from mlwright_api.trainingrun import TrainingRunSpec
from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import Batch, Publication, TrainingRow
from mlwright_trainer.learning.digest import weights_digest

VOCABULARY = 64
END = 1


def run_spec(
    algorithm: dict[str, Any] | None = None, model: dict[str, Any] | None = None, **blocks: Any
) -> TrainingRunSpec:
    """A run of the tiny model; `algorithm` and `model` are camelCase fields on top of fast defaults."""
    return TrainingRunSpec.model_validate(
        {
            "tasks": [{"name": "churn"}],
            "model": {"source": {"path": "unused"}, **(model or {})},
            "algorithm": {
                "learningRate": 1e-3,
                "criticLearningRate": 1e-2,
                "updates": 4,
                "minibatchSize": 4,
                "epochs": 2,
                **(algorithm or {}),
            },
            "sampling": {"maxTokens": 12},
            **blocks,
        }
    )


def write_model(folder: Path, *, tied: bool = True, seed: int = 0) -> Path:
    """weights/0: configuration, weights, and a tokenizer's files."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(seed)
    config = Qwen2Config(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=tied,
        eos_token_id=END,
    )
    model = Qwen2ForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3 if parameter.dim() > 1 else 1)
    model.save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(VOCABULARY)}, unk_token="t0"))
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="t1").save_pretrained(folder)
    return folder


@torch.no_grad()
def sampled_rows(
    folder: Path, *, count: int, seed: int, version: int = 0, temperature: float = 1.0
) -> tuple[TrainingRow, ...]:
    """Rows drawn token by token with full forward passes: the plain definition of sampling."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for i in range(count):
        prompt = torch.randint(2, VOCABULARY, (3 + i % 3,), generator=generator).tolist()
        tokens: list[int] = []
        logprobs: list[float] = []
        limit = int(torch.randint(2, 12, (1,), generator=generator))
        while len(tokens) < limit and END not in tokens:
            logits = model(torch.tensor([prompt + tokens])).logits[0, -1] / temperature
            distribution = torch.log_softmax(logits, dim=-1)
            token = int(torch.multinomial(distribution.exp(), 1, generator=generator))
            tokens.append(token)
            logprobs.append(float(distribution[token]))
        rows.append(
            TrainingRow(
                id=f"v{version}-{i}",
                task="churn",
                prompt_kind="draft" if i % 3 else "improve",
                prompt_tokens=tuple(prompt),
                response_tokens=tuple(tokens),
                logprobs=tuple(logprobs),
                policy_version=version,
                outcome=Outcome.SCORED,
                reward=sum(t % 2 for t in tokens) / len(tokens),
                execution_seconds=None if i == 0 else 0.1 * (i + 1),
            )
        )
    return tuple(rows)


@dataclass
class MemoryExchange:
    """Samples batch n from the newest published weights, once; then hands out the same rows."""

    rows: int = 8
    stored: dict[int, Batch] = field(default_factory=dict)
    published: dict[int, Publication] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)

    def version(self) -> int:
        return max(self.published, default=-1)

    def batch(self, number: int) -> Batch:
        self.order.append(f"batch {number}")
        if number not in self.stored:
            folder = self.published[number].folder
            rows = sampled_rows(folder, count=self.rows, seed=number, version=number)
            self.stored[number] = Batch(number, rows)
        return self.stored[number]

    def publish(self, publication: Publication) -> None:
        self.order.append(f"publish {publication.version}")
        assert weights_digest(publication.folder) == publication.digest
        known = self.published.get(publication.version)
        if known is not None and known.digest != publication.digest:
            raise InternalError(f"version {publication.version} was published with another digest")
        self.published[publication.version] = replace(publication)

    @property
    def digests(self) -> list[str]:
        return [self.published[v].digest for v in sorted(self.published)]


@pytest.fixture(scope="session")
def initial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """weights/0, shared: nothing may write to it."""
    return write_model(tmp_path_factory.mktemp("model") / "0")


@pytest.fixture(scope="session")
def batch_rows(initial: Path) -> tuple[TrainingRow, ...]:
    return sampled_rows(initial, count=8, seed=5)


@pytest.fixture
def weights(tmp_path: Path, initial: Path) -> Path:
    """A weights folder whose version 0 is a copy of the tiny model."""
    import shutil

    shutil.copytree(initial, tmp_path / "weights" / "0")
    return tmp_path / "weights"


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def spec() -> Callable[..., TrainingRunSpec]:
    return run_spec


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
def sample() -> Callable[..., Sequence[TrainingRow]]:
    return sampled_rows


@pytest.fixture
def make_model() -> Callable[..., Path]:
    return write_model
