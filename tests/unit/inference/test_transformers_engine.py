"""Sampling: what comes out depends on the request, not on its company, and log-probabilities are right."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.inference import decoding
from mlwright_trainer.inference.batching import BatchBudget
from mlwright_trainer.inference.decoding import left_padded
from mlwright_trainer.inference.engine import Generation, GenerationRequest, VersionSpan
from mlwright_trainer.inference.model_folder import load_model
from mlwright_trainer.inference.sampling import draw
from mlwright_trainer.inference.transformers_engine import TransformersEngine
from safetensors.torch import load_file, save_file

pytestmark = pytest.mark.torch

Requests = Callable[..., list[GenerationRequest]]


def full_forward_logprobs(model: Any, request: GenerationRequest, tokens: tuple[int, ...]) -> torch.Tensor:
    """Log-probabilities of an answer by one pass over the whole text, without cache or padding."""
    ids = torch.tensor([[*request.prompt_tokens, *tokens]])
    with torch.no_grad():
        logits = model(input_ids=ids, use_cache=False).logits[0].float() / request.temperature
    start = len(request.prompt_tokens) - 1
    picked = torch.log_softmax(logits[start:-1], dim=-1)
    return picked.gather(1, torch.tensor(tokens).unsqueeze(1)).squeeze(1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_log_probabilities_agree_with_a_full_forward_pass_under_padding(
    tiny: Path, ragged: Requests, temperature: float
) -> None:
    requests = ragged(20, temperature=temperature)
    generations = TransformersEngine(tiny, 0).generate(requests)
    model = load_model(tiny)
    for request, generation in zip(requests, generations, strict=True):
        expected = full_forward_logprobs(model, request, generation.tokens)
        difference = (torch.tensor(generation.logprobs) - expected).abs()
        assert float(difference.mean()) < 1e-4
        assert float(difference.max()) < 1e-3


def test_a_request_gets_the_same_alone_and_in_a_ragged_batch(ending: Path, ragged: Requests) -> None:
    requests = ragged(24)
    engine = TransformersEngine(ending, 0)
    together = engine.generate(requests)
    alone = [engine.generate([request])[0] for request in requests]
    assert [generation.tokens for generation in together] == [generation.tokens for generation in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_order_and_batch_size_change_nothing(ending: Path, ragged: Requests) -> None:
    requests = ragged(24)
    large = TransformersEngine(ending, 0).generate(requests)
    small = TransformersEngine(ending, 0, budget=BatchBudget(rows=5)).generate(requests[::-1])
    assert [g.tokens for g in large] == [g.tokens for g in small[::-1]]
    assert [g.id for g in small[::-1]] == [request.id for request in requests]


def test_the_same_batch_gives_the_same_bits(ending: Path, ragged: Requests) -> None:
    engine = TransformersEngine(ending, 0)
    assert engine.generate(ragged(24)) == engine.generate(ragged(24))


def test_another_seed_gives_another_text(tiny: Path, ragged: Requests) -> None:
    request = ragged(1)[0]
    one, other = TransformersEngine(tiny, 0).generate([request, replace(request, seed=request.seed + 1)])
    assert one.tokens != other.tokens


def test_requests_that_share_a_prompt_get_texts_of_their_own(tiny: Path, ragged: Requests) -> None:
    requests = [replace(ragged(1)[0], seed=seed) for seed in range(30)]
    engine = TransformersEngine(tiny, 0)
    generations = engine.generate(requests)
    assert len({g.tokens for g in generations}) == 30
    assert generations[17].tokens == engine.generate([requests[17]])[0].tokens


def test_the_models_distribution_is_what_is_sampled(tiny: Path, ragged: Requests) -> None:
    request = replace(ragged(1)[0], max_tokens=1)
    count = 4000
    generations = TransformersEngine(tiny, 0, budget=BatchBudget(rows=count)).generate(
        [replace(request, seed=seed) for seed in range(count)]
    )
    model = load_model(tiny)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([request.prompt_tokens])).logits[0, -1]
    shares = torch.bincount(torch.tensor([g.tokens[0] for g in generations]), minlength=len(logits)) / count
    assert float((shares - torch.softmax(logits, dim=0)).abs().max()) < 5 * 0.5 / count**0.5


def test_a_text_ends_with_the_end_token_and_says_so(ending: Path, ragged: Requests) -> None:
    ends = {2, *range(3, 60)}
    generations = TransformersEngine(ending, 0).generate(ragged(40))
    stopped = [g for g in generations if g.finish == "stop"]
    assert len(stopped) > 20
    for generation in stopped:
        assert generation.tokens[-1] in ends
        assert not ends & set(generation.tokens[:-1])
    assert len({len(g.tokens) for g in stopped}) > 3


def test_a_text_cut_by_the_limit_has_all_its_tokens_and_no_end(tiny: Path, ragged: Requests) -> None:
    requests = [replace(request, max_tokens=3 + i) for i, request in enumerate(ragged(6))]
    for i, generation in enumerate(TransformersEngine(tiny, 0).generate(requests)):
        assert (len(generation.tokens), generation.finish) == (3 + i, "length")


def test_an_end_token_as_the_last_allowed_token_is_a_stop(ending: Path, ragged: Requests) -> None:
    engine = TransformersEngine(ending, 0)
    free = next(g for g in engine.generate(ragged(40)) if g.finish == "stop")
    request = next(request for request in ragged(40) if request.id == free.id)
    tight = engine.generate([replace(request, max_tokens=len(free.tokens))])[0]
    assert (tight.tokens, tight.finish) == (free.tokens, "stop")


def test_every_token_has_a_log_probability_and_a_version(ending: Path, ragged: Requests) -> None:
    for generation in TransformersEngine(ending, 7).generate(ragged(12)):
        assert len(generation.logprobs) == len(generation.tokens) > 0
        assert all(logprob <= 0 for logprob in generation.logprobs)
        assert generation.spans == (VersionSpan(version=7, start=0, end=len(generation.tokens)),)


def test_an_answer_stops_where_the_models_context_ends(tiny: Path) -> None:
    request = GenerationRequest("long", tuple(range(5, 125)), seed=0, temperature=1.0, max_tokens=50)
    generation = TransformersEngine(tiny, 0).generate([request])[0]
    assert len(request.prompt_tokens) + len(generation.tokens) <= 128


def test_a_prompt_longer_than_the_context_is_the_users_mistake(tiny: Path) -> None:
    request = GenerationRequest("long", (5,) * 128, seed=0, temperature=1.0, max_tokens=5)
    with pytest.raises(UserError, match="context ends at 128"):
        TransformersEngine(tiny, 0).generate([request])


def test_no_requests_give_no_generations(tiny: Path) -> None:
    assert TransformersEngine(tiny, 0).generate([]) == []


def test_finished_rows_leave_the_batch(
    ending: Path, ragged: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths: list[int] = []

    def recording(logits: torch.Tensor, *noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        widths.append(len(logits))
        return draw(logits, *noise)

    monkeypatch.setattr(decoding, "draw", recording)
    TransformersEngine(ending, 0).generate(ragged(40))
    assert widths[0] == 40
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 8


# Weights


def _other(folder: Path, target: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> Path:
    """The model of `folder` with its tensors changed."""
    target.mkdir()
    for path in folder.iterdir():
        if path.suffix == ".safetensors":
            tensors = {name: change(tensor) for name, tensor in load_file(path).items()}
            save_file(tensors, target / path.name, metadata={"format": "pt"})
        else:
            (target / path.name).write_bytes(path.read_bytes())
    return target


def _texts(generations: list[Generation]) -> list[tuple[int, ...]]:
    return [generation.tokens for generation in generations]


def test_loaded_weights_sample_like_an_engine_that_started_with_them(
    tiny: Path, tmp_path: Path, ragged: Requests
) -> None:
    changed = _other(tiny, tmp_path / "1", lambda tensor: tensor * 1.1)
    engine = TransformersEngine(tiny, 0)
    before = engine.generate(ragged(8))
    engine.load(1, changed)
    after = engine.generate(ragged(8))
    assert after == [
        replace(g, spans=(VersionSpan(1, 0, len(g.tokens)),))
        for g in TransformersEngine(changed, 0).generate(ragged(8))
    ]
    assert _texts(after) != _texts(before)
    assert engine.version == 1


def test_loading_the_first_weights_again_restores_them(tiny: Path, tmp_path: Path, ragged: Requests) -> None:
    changed = _other(tiny, tmp_path / "1", lambda tensor: tensor * 1.1)
    engine = TransformersEngine(tiny, 0)
    before = engine.generate(ragged(8))
    engine.load(1, changed)
    engine.load(0, tiny)
    assert engine.generate(ragged(8)) == before


def test_weights_of_another_shape_are_refused_and_change_nothing(
    tiny: Path, tmp_path: Path, ragged: Requests
) -> None:
    changed = _other(tiny, tmp_path / "1", lambda tensor: torch.cat([tensor, tensor]))
    engine = TransformersEngine(tiny, 0)
    before = engine.generate(ragged(4))
    with pytest.raises(InternalError, match=r"another model: .*(model\.|lm_head)"):
        engine.load(1, changed)
    assert engine.version == 0
    assert engine.generate(ragged(4)) == before


def test_a_folder_without_weights_is_refused(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(InternalError, match="no safetensors"):
        TransformersEngine(tiny, 0).load(1, tmp_path)


def test_torn_weights_are_refused(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes((tiny / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(InternalError, match="cannot be read"):
        TransformersEngine(tiny, 0).load(1, tmp_path)


def test_weights_that_are_not_finite_stop_the_sampling(tiny: Path, tmp_path: Path, ragged: Requests) -> None:
    broken = _other(tiny, tmp_path / "3", lambda tensor: tensor * float("nan"))
    engine = TransformersEngine(tiny, 0)
    engine.load(3, broken)
    with pytest.raises(InternalError, match="version 3 are not finite"):
        engine.generate(ragged(2))


def test_a_load_waits_for_the_generation_that_is_running(
    tiny: Path, tmp_path: Path, ragged: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = _other(tiny, tmp_path / "1", lambda tensor: tensor * 1.1)
    engine = TransformersEngine(tiny, 0)
    undisturbed = engine.generate(ragged(4))
    loader = threading.Thread(target=engine.load, args=(1, changed))

    def starting_the_load(*values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if loader.ident is None:
            loader.start()
        return draw(*values)

    monkeypatch.setattr(decoding, "draw", starting_the_load)
    assert engine.generate(ragged(4)) == undisturbed
    loader.join(timeout=30)
    assert engine.version == 1


def test_a_folder_that_holds_no_model_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no config\.json"):
        TransformersEngine(tmp_path, 0)


def test_prompts_are_padded_on_the_left() -> None:
    ids, mask = left_padded([(5, 6, 7), (8,)], torch.device("cpu"))
    assert ids.tolist() == [[5, 6, 7], [0, 0, 8]]
    assert mask.tolist() == [[1, 1, 1], [0, 0, 1]]
