"""LoRA by PEFT: what learns, what is published, what the reference is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.exchange import Batch
from mlwright_trainer.learning.learner import Learner, initial_state
from mlwright_trainer.learning.networks import merged_state
from mlwright_trainer.learning.parallel import Alone
from mlwright_trainer.learning.replay import replay
from mlwright_trainer.learning.update import prepare, update

pytestmark = pytest.mark.torch
LORA = {"lora": {"rank": 4, "alpha": 8}}
CPU = torch.device("cpu")


def test_only_adapters_learn_and_they_start_as_nothing(initial, batch_rows, spec):
    state = initial_state(spec(model=LORA), initial, workers=Alone(CPU))
    names = [n for n, p in state.policy.model.named_parameters() if p.requires_grad]
    assert names
    assert all(".lora_" in name for name in names)
    seen = prepare(state, Batch(0, batch_rows), spec(model=LORA)).forward
    torch.testing.assert_close(seen.prox, seen.behaviour, rtol=0, atol=1e-5)


def test_the_reference_is_the_same_network_without_its_adapter(initial, batch_rows, spec):
    settings = spec(model=LORA)
    state = initial_state(settings, initial, workers=Alone(CPU))
    first = prepare(state, Batch(0, batch_rows), settings).forward
    update(state, Batch(0, batch_rows), settings)
    second = prepare(state, Batch(1, batch_rows), settings).forward
    assert first.reference is not None
    assert second.reference is not None
    assert torch.equal(first.reference, second.reference)
    assert not torch.equal(first.prox, second.prox)


def test_published_weights_are_merged_into_an_ordinary_model(tmp_path, weights, spec, exchange):
    from transformers import AutoModelForCausalLM

    settings = spec({"learningRate": 1e-2}, LORA)
    learner = Learner(spec=settings, weights=weights, checkpoints=tmp_path / "checkpoints", exchange=exchange)
    learner.run(2)
    measured = exchange.published[2].metrics
    # Rows of batch 1 were sampled from the merged version 1 by plain transformers.
    assert measured["logprobDifference"] < 1e-5
    plain = AutoModelForCausalLM.from_pretrained(weights / "2").state_dict()
    start = AutoModelForCausalLM.from_pretrained(weights / "0").state_dict()
    assert plain.keys() == start.keys()
    changed = {name for name in plain if not torch.equal(plain[name], start[name])}
    assert "model.layers.0.self_attn.q_proj.weight" in changed
    assert not any("embed" in name or "norm" in name or name.endswith("bias") for name in changed)


def test_merging_leaves_the_live_weights_alone(initial, batch_rows, spec):
    settings = spec({"learningRate": 1e-2}, LORA)
    state = initial_state(settings, initial, workers=Alone(CPU))
    update(state, Batch(0, batch_rows), settings)
    before = {n: p.clone() for n, p in state.policy.model.named_parameters()}
    merged_state(state.policy.model)
    assert all(torch.equal(before[n], p) for n, p in state.policy.model.named_parameters())


@pytest.mark.parametrize("detach", [True, False])
def test_a_restart_with_adapters_gives_the_same_bits(
    tmp_path: Path, weights: Path, spec: Any, exchange: Any, initial: Path, detach: bool
):
    settings = spec({"detachCritic": detach}, LORA)
    for updates in (1, 2, 3):
        Learner(spec=settings, weights=weights, checkpoints=tmp_path / "checkpoints", exchange=exchange).run(
            updates
        )
    again = replay(
        spec=settings,
        initial=initial,
        batches=exchange.stored.__getitem__,
        updates=3,
        scratch=tmp_path / "again",
    )
    assert list(again.digests) == exchange.digests


def test_target_modules_can_be_named(initial, spec):
    settings = spec(model={"lora": {"rank": 2, "targetModules": ["q_proj"]}})
    state = initial_state(settings, initial, workers=Alone(CPU))
    names = {n for n, p in state.policy.model.named_parameters() if p.requires_grad}
    assert all(".q_proj.lora_" in name for name in names)
    assert len(names) == 2 * 2


def test_bfloat16_keeps_float32_masters_and_publishes_bfloat16(tmp_path, weights, spec, exchange):
    from safetensors.torch import load_file

    settings = spec(model={"dtype": "bfloat16"})
    Learner(spec=settings, weights=weights, checkpoints=tmp_path / "checkpoints", exchange=exchange).run(2)
    tensors = load_file(weights / "2" / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    assert 1e-6 < exchange.published[1].metrics["logprobDifference"] < 0.02
    state = torch.load(tmp_path / "checkpoints" / "2" / "tensors.pt", weights_only=True)
    assert {tensor.dtype for tensor in state["policy"].values()} == {torch.float32}
