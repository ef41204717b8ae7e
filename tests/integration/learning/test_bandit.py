"""Learning that can be seen: a bandit whose best arm is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from mlwright_api.rollout import Outcome
from mlwright_trainer.exchange import Batch, TrainingRow
from mlwright_trainer.learning.experience import forward
from mlwright_trainer.learning.learner import initial_state
from mlwright_trainer.learning.networks import CausalPolicy
from mlwright_trainer.learning.parallel import Alone
from mlwright_trainer.learning.update import update

pytestmark = pytest.mark.torch
PROMPT, ARMS, BEST = (5, 6), (10, 11, 12, 13), 12


@torch.no_grad()
def pull(policy: CausalPolicy, *, count: int, seed: int) -> tuple[TrainingRow, ...]:
    """Arms drawn from the policy; only token BEST pays."""
    logits = policy.model(torch.tensor([PROMPT])).logits[0, -1]
    log_p = torch.log_softmax(logits, dim=-1)
    generator = torch.Generator().manual_seed(seed)
    arms = torch.multinomial(log_p.exp(), count, replacement=True, generator=generator).tolist()
    return tuple(
        TrainingRow(
            id=str(i),
            task="bandit",
            prompt_kind="draft",
            prompt_tokens=PROMPT,
            response_tokens=(arm,),
            logprobs=(float(log_p[arm]),),
            policy_version=0,
            outcome=Outcome.SCORED,
            reward=float(arm % 4 == 0),
            execution_seconds=None,
        )
        for i, arm in enumerate(arms)
    )


def paid(rows: tuple[TrainingRow, ...]) -> float:
    return sum(row.reward for row in rows) / len(rows)


BANDIT: dict[str, Any] = {"kl": {"coefficient": 0}, "minibatchSize": 32, "learningRate": 2e-3}


@pytest.mark.parametrize("extra", [{}, {"detachCritic": True, "kl": {"coefficient": 0.02}}])
def test_ppo_finds_the_paying_arms_within_seconds(initial, spec, extra):
    settings = spec({**BANDIT, **extra})
    state = initial_state(settings, initial, workers=Alone(torch.device("cpu")))
    before = paid(pull(state.policy, count=512, seed=1000))
    for number in range(25):
        update(state, Batch(number, pull(state.policy, count=64, seed=number)), settings)
    after = paid(pull(state.policy, count=512, seed=1000))
    assert before < 0.45
    assert after > 0.9


def test_shuffled_rewards_teach_nothing(initial, spec):
    settings = spec(BANDIT)
    state = initial_state(settings, initial, workers=Alone(torch.device("cpu")))
    before = paid(pull(state.policy, count=512, seed=1000))
    generator = torch.Generator().manual_seed(7)
    for number in range(25):
        rows = pull(state.policy, count=64, seed=number)
        order = torch.randperm(len(rows), generator=generator).tolist()
        mixed = tuple(replace(row, reward=rows[k].reward) for row, k in zip(rows, order, strict=True))
        update(state, Batch(number, mixed), settings)
    assert paid(pull(state.policy, count=512, seed=1000)) < before + 0.3


def test_stale_samples_still_teach_through_the_decoupled_ratio(initial, spec):
    """All rows come from version 0; the importance weight keeps the direction right."""
    settings = spec({**BANDIT, "epochs": 1})
    state = initial_state(settings, initial, workers=Alone(torch.device("cpu")))
    rows = pull(state.policy, count=256, seed=3)
    before = paid(pull(state.policy, count=512, seed=1000))
    for number in range(12):
        update(state, Batch(number, rows), settings)
    assert paid(pull(state.policy, count=512, seed=1000)) > before + 0.3


def test_the_critic_tells_prompts_apart(initial, spec):
    settings = spec({**BANDIT, "learningRate": 1e-9, "epochs": 30})
    state = initial_state(settings, initial, workers=Alone(torch.device("cpu")))
    base = pull(state.policy, count=1, seed=0)[0]
    good = [replace(base, id=f"g{i}", prompt_tokens=(5, 6), reward=1.0) for i in range(8)]
    bad = [replace(base, id=f"b{i}", prompt_tokens=(7, 8), reward=0.0) for i in range(8)]
    update(state, Batch(0, (*good, *bad)), settings)
    networks = {"policy": state.policy, "critic": state.critic, "reference": None, "workers": state.workers}
    seen = forward([good[0], bad[0]], settings, **networks)
    assert seen.values[0, 0] > 0.8
    assert seen.values[1, 0] < 0.2
