"""One update: what moves, what does not, and what does not depend on how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from mlwright_trainer.exchange import Batch, TrainingRow
from mlwright_trainer.learning.learner import initial_state
from mlwright_trainer.learning.measures import metrics
from mlwright_trainer.learning.parallel import Alone
from mlwright_trainer.learning.update import Learning, Trace, accumulate, learn, prepare, update
from torch import Tensor

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")


def gradients(state: Learning) -> list[Tensor]:
    parameters = [*state.policy.parameters(), *state.critic.parameters()]
    found = [p.grad.clone() for p in parameters if p.grad is not None]
    for parameter in parameters:
        parameter.grad = None
    return found


def gradient(initial: Path, spec: Any, rows: tuple[TrainingRow, ...]) -> list[Tensor]:
    state = initial_state(spec, initial, workers=Alone(CPU))
    data = prepare(state, Batch(0, rows), spec)
    zeros = torch.zeros(len(rows))
    trace = Trace(zeros.clone(), zeros.clone(), zeros)
    accumulate(state, data, spec, indices=range(len(rows)), trace=trace)
    return gradients(state)


def assert_close(one: list[Tensor], other: list[Tensor]) -> None:
    assert len(one) == len(other) > 10
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, rtol=2e-4, atol=1e-6)


SETTINGS: list[dict[str, Any]] = [
    {},
    {"lossAggregation": "SequenceMean", "detachCritic": True},
    {"lossAggregation": "ConstantLength", "entropyCoefficient": 0.1},
    {"kl": {"coefficient": 0.3, "placement": "Reward", "estimator": "K1"}, "valueClipRange": 0.1},
    {"durationWeighting": {"mode": "DurationAware", "force": True}, "dualClip": 3},
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_micro_batches_change_nothing_but_the_last_bits(initial, batch_rows, spec, settings):
    off_policy = tuple(replace(r, logprobs=tuple(x - 0.2 for x in r.logprobs)) for r in batch_rows)
    whole = gradient(initial, spec({**settings, "microbatchTokens": 16_384}), off_policy)
    parts = gradient(initial, spec({**settings, "microbatchTokens": 64}), off_policy)
    assert_close(whole, parts)


def test_the_order_of_rows_changes_nothing_but_the_last_bits(initial, batch_rows, spec):
    settings = spec({"durationWeighting": {"mode": "DurationAware", "force": True}})
    assert_close(
        gradient(initial, settings, batch_rows), gradient(initial, settings, tuple(reversed(batch_rows)))
    )


def test_padding_does_not_leak_into_the_gradient(initial, batch_rows, spec):
    """Each row alone, weighted by its tokens, against all of them padded together."""
    settings = spec({"advantageNormalization": "None"})
    whole = gradient(initial, settings, batch_rows)
    tokens = sum(len(row.response_tokens) for row in batch_rows)
    total: list[Tensor] = [torch.zeros_like(g) for g in whole]
    for row in batch_rows:
        share = len(row.response_tokens) / tokens
        total = [t + share * g for t, g in zip(total, gradient(initial, settings, (row,)), strict=True)]
    assert_close(whole, total)


def test_the_first_gradient_is_that_of_weighted_log_likelihood(initial, batch_rows, spec):
    """At pi = pi_prox the loss's gradient is -mean(A grad log pi), computed here from scratch with transformers."""
    from transformers import AutoModelForCausalLM

    settings = spec({"kl": {"coefficient": 0}})
    state = initial_state(settings, initial, workers=Alone(CPU))
    data = prepare(state, Batch(0, batch_rows), settings)
    model = AutoModelForCausalLM.from_pretrained(initial, dtype=torch.float32).eval()
    tokens = sum(len(row.response_tokens) for row in batch_rows)
    for i, row in enumerate(batch_rows):
        sequence = torch.tensor([row.prompt_tokens + row.response_tokens])
        log_p = torch.log_softmax(model(sequence).logits[0, len(row.prompt_tokens) - 1 : -1], dim=-1)
        chosen = log_p[torch.arange(len(row.response_tokens)), torch.tensor(row.response_tokens)]
        (-(data.advantages[i, : len(chosen)] * chosen).sum() / tokens).backward()
    expected = [p.grad for p in model.parameters()]
    actual = gradient(initial, settings, batch_rows)[: len(expected)]
    assert_close(actual, expected)


def test_values_and_log_probabilities_are_those_of_the_initial_networks(initial, batch_rows, spec):
    state = initial_state(spec(), initial, workers=Alone(CPU))
    seen = prepare(state, Batch(0, batch_rows), spec()).forward
    assert torch.equal(seen.values, torch.zeros_like(seen.values))
    torch.testing.assert_close(seen.prox, seen.behaviour, rtol=0, atol=1e-5)
    torch.testing.assert_close(seen.prox, seen.reference, rtol=0, atol=0)


def test_end_of_text_is_a_trained_token(initial, batch_rows, spec):
    """A row that is nothing but the end token moves the end token's probability."""
    row = replace(batch_rows[0], response_tokens=(1,), logprobs=(-4.0,), reward=1.0)
    other = replace(batch_rows[1], reward=0.0)
    settings = spec({"kl": {"coefficient": 0}, "minibatchSize": 8, "advantageNormalization": "Batch"})
    state = initial_state(settings, initial, workers=Alone(CPU))
    before = prepare(state, Batch(0, (row, other)), settings).forward.prox[0, 0]
    update(state, Batch(0, (row, other)), settings)
    after = prepare(state, Batch(0, (row, other)), settings).forward.prox[0, 0]
    assert after > before


def test_the_kl_penalty_in_the_reward_lands_on_each_token_of_the_returns(initial, batch_rows, spec):
    kl = {"placement": "Reward", "estimator": "K1", "coefficient": 0.5}
    settings = spec({"kl": kl, "advantageNormalization": "None"})
    state = initial_state(settings, initial, workers=Alone(CPU))
    with torch.no_grad():
        state.policy.parameters()[0].add_(0.05)
    data = prepare(state, Batch(0, batch_rows), settings)
    assert data.kl is not None
    tail = data.kl.double().flip(1).cumsum(1).flip(1)
    rewards = torch.tensor([row.reward for row in batch_rows])[:, None]
    expected = (rewards - 0.5 * tail) * data.forward.mask
    torch.testing.assert_close(data.returns.double(), expected.double(), rtol=1e-5, atol=1e-6)


def test_kl_in_the_loss_pulls_a_drifted_policy_back(initial, batch_rows, spec):
    """Equal rewards, so nothing but the penalty acts."""
    flat = tuple(replace(row, reward=0.0) for row in batch_rows)
    settings = spec({"kl": {"coefficient": 1.0, "estimator": "K2"}, "epochs": 20, "clipRange": 1})
    state = initial_state(settings, initial, workers=Alone(CPU))
    with torch.no_grad():
        for parameter in state.policy.parameters():
            parameter.mul_(1.2)
    first, _ = update(state, Batch(0, flat), settings)
    second = prepare(state, Batch(1, flat), settings)
    assert first.kl is not None
    assert second.kl is not None
    assert 0 < second.kl.sum() < 0.5 * first.kl.sum()


@pytest.mark.parametrize("detach", [True, False])
def test_the_critic_learns_the_mean_reward_during_warmup_while_the_policy_stands_still(
    initial, batch_rows, spec, detach
):
    settings = spec({"criticWarmupUpdates": 1, "detachCritic": detach, "epochs": 40})
    state = initial_state(settings, initial, workers=Alone(CPU))
    before = [p.clone() for p in state.policy.parameters()]
    data, trace = update(state, Batch(0, batch_rows), settings)
    assert all(torch.equal(a, b) for a, b in zip(before, state.policy.parameters(), strict=True))
    assert trace.policy_losses == trace.gradient_norms == []
    assert trace.value_losses[-1] < 0.5 * trace.value_losses[0]
    learn(state, data, settings, number=1)
    assert not all(torch.equal(a, b) for a, b in zip(before, state.policy.parameters(), strict=True))


def test_a_detached_critic_sends_nothing_into_the_policy(initial, batch_rows, spec):
    flat = tuple(replace(row, reward=1.0) for row in batch_rows)
    settings = spec({"detachCritic": True, "kl": {"coefficient": 0}, "advantageNormalization": "Batch"})
    state = initial_state(settings, initial, workers=Alone(CPU))
    data = prepare(state, Batch(0, flat), settings)
    data.advantages.zero_()
    zeros = torch.zeros(8)
    accumulate(state, data, settings, indices=range(8), trace=Trace(zeros.clone(), zeros.clone(), zeros))
    assert all(p.grad is None or not p.grad.any() for p in state.policy.parameters())
    assert all(p.grad is not None and p.grad.any() for p in state.critic.parameters())


def test_duration_weights_scale_policy_and_value_loss_but_not_kl_or_entropy(initial, batch_rows, spec):
    """With zero advantages and values that fit, weights have nothing left to act on."""
    settings = {"kl": {"coefficient": 0.5}, "entropyCoefficient": 0.1, "advantageNormalization": "None"}
    weighted = {**settings, "durationWeighting": {"mode": "DurationAware", "force": True}}
    flat = tuple(replace(row, reward=0.0) for row in batch_rows)
    assert_close(gradient(initial, spec(settings), flat), gradient(initial, spec(weighted), flat))
    plain, scaled = (gradient(initial, spec(s), batch_rows) for s in (settings, weighted))
    assert any(not torch.allclose(a, b, rtol=1e-2) for a, b in zip(plain, scaled, strict=True))


def test_metrics_are_flat_finite_numbers_under_documented_names(initial, batch_rows, spec):
    settings = spec({"kl": {"coefficient": 0.1, "target": 1.0}})
    state = initial_state(settings, initial, workers=Alone(CPU))
    data, trace = update(state, Batch(0, batch_rows), settings)
    measured = metrics(data, trace, state, version=0)
    assert measured.keys() == {
        "rows", "tokens", "rewardMean", "loss/policy", "loss/value", "gradientNorm", "criticGradientNorm",
        "learningRate", "kl", "klCoefficient", "entropy", "logprobDifference", "advantageMean",
        "advantageDeviation", "effectiveSampleSize", "weightMax", "weightsClipped", "explainedVariance",
        "stalenessMean", "stalenessMax", "clipFraction", "clipFraction/short", "clipFraction/middle",
        "clipFraction/long", "truncationFraction", "truncationFraction/short", "truncationFraction/middle",
        "truncationFraction/long",
    }  # fmt: skip
    assert all(isinstance(value, float) and abs(value) < 1e6 for value in measured.values())
    assert measured["tokens"] == sum(len(row.response_tokens) for row in batch_rows)
    assert measured["rewardMean"] == pytest.approx(sum(row.reward for row in batch_rows) / 8)
    assert measured["klCoefficient"] == pytest.approx(0.098)
    assert measured["truncationFraction"] == 0


def test_stale_rows_show_up_as_truncated_in_their_duration_bucket(initial, batch_rows, spec):
    slow = max(batch_rows, key=lambda row: row.execution_seconds or 0)
    rows = tuple(
        replace(row, logprobs=tuple(x - 5 for x in row.logprobs)) if row is slow else row
        for row in batch_rows
    )
    state = initial_state(spec(), initial, workers=Alone(CPU))
    data, trace = update(state, Batch(0, rows), spec())
    measured = metrics(data, trace, state, version=0)
    assert measured["truncationFraction/long"] > 0.2
    assert measured["truncationFraction/short"] == measured["truncationFraction/middle"] == 0


def test_the_learning_rate_follows_the_schedule(initial, batch_rows, spec):
    settings = spec({"scheduler": {"kind": "Linear"}, "updates": 4, "epochs": 1})
    state = initial_state(settings, initial, workers=Alone(CPU))
    rates = []
    for number in range(4):
        update(state, Batch(number, batch_rows), settings)
        rates.append(
            [o.param_groups[0]["lr"] / 1e-3 for o in (state.policy_optimizer, state.critic_optimizer)]
        )
    assert rates == [pytest.approx([x, 10 * x]) for x in (1, 0.75, 0.5, 0.25)]


def test_the_gradient_is_clipped_to_the_asked_norm_and_the_whole_norm_is_reported(initial, batch_rows, spec):
    settings = spec({"maxGradientNorm": 1e-9, "epochs": 1, "learningRate": 1.0, "weightDecay": 0})
    state = initial_state(settings, initial, workers=Alone(CPU))
    seen: list[float] = []
    step: Callable[..., Any] = state.policy_optimizer.step

    def watching() -> None:
        seen.append(
            sum(float(p.grad.square().sum()) for p in state.policy.parameters() if p.grad is not None)
        )
        step()

    state.policy_optimizer.step = watching  # type: ignore[method-assign,assignment]  # watches the real one
    _, trace = update(state, Batch(0, batch_rows), settings)
    assert all(square**0.5 <= 1.01e-9 for square in seen)
    assert all(norm > 1e-4 for norm in trace.gradient_norms)
