"""Rounds: committed whole, the same for the same seed, and what is decided before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mlwright_api.mltask import Direction, Split
from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_api.trainingrun import TrainingRunSpec
from mlwright_trainer.collection.prompts import TaskPrompt
from mlwright_trainer.collection.sampling import Sampler, judge
from mlwright_trainer.collection.syntax import tree_digest
from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.engine import Generation, GenerationRequest, VersionSpan
from mlwright_trainer.ledger import Ledger, Result

SCRIPT = "print(1)\n"


class WordCodec:
    """A token a character, so that tests can read prompts."""

    def encode(self, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
        return tuple(ord(character) for message in messages for character in message["content"])

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(map(chr, tokens))


@dataclass
class ScriptedEngine:
    """Answers each request with what `answer` makes of it."""

    answer: Callable[[GenerationRequest], str] = lambda _: SCRIPT
    finish: Any = "stop"
    version: int = 0
    asked: list[GenerationRequest] = field(default_factory=list)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        self.asked += requests
        return [self._answer(request) for request in requests]

    def _answer(self, request: GenerationRequest) -> Generation:
        tokens = tuple(map(ord, self.answer(request)))
        spans = (VersionSpan(self.version, 0, len(tokens)),)
        return Generation(request.id, tokens, (-0.5,) * len(tokens), self.finish, spans)

    def load(self, version: int, folder: Path) -> None:
        self.version = version


def spec(**changes: Any) -> TrainingRunSpec:
    return TrainingRunSpec.model_validate(
        {
            "seed": 7,
            "tasks": [{"name": "churn"}],
            "model": {"source": {"path": "model"}},
            "prompts": {"improveFraction": 1.0, "maxPromptTokens": 4000, **changes.pop("prompts", {})},
            **changes,
        }
    )


def task(name: str = "churn") -> TaskPrompt:
    return TaskPrompt(
        name=name,
        title=f"Title of {name}",
        description=f"Description of {name}.",
        metric="ROC AUC",
        direction=Direction.MAXIMIZE,
        submission_file="submission.csv",
        id_column="id",
        target_columns=("churn",),
        submission_kind="probabilities",
        timeout_seconds=20,
        cpu="1",
        memory="2Gi",
    )


def sampler(ledger: Ledger, engine: ScriptedEngine, run: TrainingRunSpec | None = None) -> Sampler:
    run = run or spec()
    return Sampler(
        spec=run,
        tasks={one.name: task(one.name) for one in run.tasks},
        ledger=ledger,
        engine=engine,
        codec=WordCodec(),
        reward=lambda _task, status: -0.5 if status.outcome is not Outcome.UNCHANGED else 0.0,
    )


def close(ledger: Ledger, name: str, *, score: float = 0.8, outcome: Outcome = Outcome.SCORED) -> None:
    scores = {Split.REWARD: score, Split.SELECTION: score - 0.0123} if outcome is Outcome.SCORED else {}
    status = RolloutStatus(outcome=outcome, scores=scores, output_tail="valid auc 0.81")
    ledger.close_rollout(name, Result(status, 1.0))


def test_a_round_is_committed_whole_with_tokens_logprobs_and_version(ledger: Ledger) -> None:
    sampler(ledger, ScriptedEngine(version=3)).ensure("Train", 0, 5)
    rows = ledger.rollouts("Train")
    assert [row.position for row in rows] == [0, 1, 2, 3, 4]
    committed = ledger.sample(rows[2].id)
    assert committed.response_tokens == tuple(map(ord, SCRIPT))
    assert committed.logprobs == (-0.5,) * len(SCRIPT)
    assert committed.policy_version == 3
    assert committed.script == "print(1)\n"


def test_a_committed_round_is_not_sampled_again(ledger: Ledger) -> None:
    engine = ScriptedEngine()
    for _ in range(2):
        sampler(ledger, engine).ensure("Train", 0, 4)
    assert len(engine.asked) == 4


def test_an_engine_that_fails_leaves_nothing_of_the_round(ledger: Ledger) -> None:
    def fail(_: GenerationRequest) -> str:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        sampler(ledger, ScriptedEngine(fail)).ensure("Train", 0, 4)
    assert ledger.rollouts() == []
    assert ledger.rounds("Train") == 0


def test_seeds_differ_between_rows_and_are_the_same_in_another_process(
    ledger: Ledger, tmp_path: Path
) -> None:
    first, second = ScriptedEngine(), ScriptedEngine()
    sampler(ledger, first).ensure("Train", 0, 8)
    other = Ledger.create(tmp_path / "other.sqlite", {})
    sampler(other, second).ensure("Train", 0, 8)
    seeds = [request.seed for request in first.asked]
    assert len(set(seeds)) == 8
    assert seeds == [request.seed for request in second.asked]


def test_seeds_differ_between_purposes_and_rounds(ledger: Ledger) -> None:
    engine = ScriptedEngine()
    one = sampler(ledger, engine)
    one.ensure("Before", 0, 3)
    one.ensure("Train", 0, 3)
    one.ensure("Train", 1, 3)
    assert len({request.seed for request in engine.asked}) == 9


def test_the_first_round_has_nothing_to_improve(ledger: Ledger) -> None:
    sampler(ledger, ScriptedEngine()).ensure("Train", 0, 6)
    assert {row.prompt_kind for row in ledger.rollouts("Train")} == {"draft"}


def test_a_later_round_improves_scored_scripts_of_the_rounds_before(ledger: Ledger) -> None:
    engine = ScriptedEngine()
    one = sampler(ledger, engine)
    one.ensure("Train", 0, 2)
    close(ledger, "train-00000-0000", score=0.8125)
    close(ledger, "train-00000-0001", outcome=Outcome.ERROR)
    engine.answer = lambda _: "print(2)\n"
    one.ensure("Train", 1, 4)
    rows = ledger.rollouts("Train", round=1)
    assert {row.parent for row in rows} == {"train-00000-0000"}
    prompt = WordCodec().decode(engine.asked[-1].prompt_tokens)
    assert "print(1)" in prompt
    assert "valid auc 0.81" in prompt
    assert "0.8125" in prompt


def test_selection_never_enters_a_prompt(ledger: Ledger) -> None:
    engine = ScriptedEngine()
    one = sampler(ledger, engine)
    one.ensure("Train", 0, 1)
    close(ledger, "train-00000-0000", score=0.8125)
    one.ensure("Train", 1, 4)
    assert not any("0.8002" in WordCodec().decode(asked.prompt_tokens) for asked in engine.asked)


def test_fresh_samples_are_drafts_even_when_there_are_parents(ledger: Ledger) -> None:
    one = sampler(ledger, ScriptedEngine())
    one.ensure("Train", 0, 2)
    close(ledger, "train-00000-0000")
    close(ledger, "train-00000-0001")
    one.ensure("After", 0, 4)
    assert {row.prompt_kind for row in ledger.rollouts("After")} == {"draft"}


def test_a_child_with_its_parents_syntax_tree_is_labelled_and_not_run(ledger: Ledger) -> None:
    engine = ScriptedEngine()
    one = sampler(ledger, engine)
    one.ensure("Train", 0, 1)
    close(ledger, "train-00000-0000")
    engine.answer = lambda _: "print( 1 )  # better\n"
    one.ensure("Train", 1, 1)
    (child,) = ledger.rollouts("Train", round=1)
    assert child.outcome is Outcome.UNCHANGED
    assert child.reward == 0.0


def test_a_parent_that_does_not_fit_gives_way_to_a_draft(ledger: Ledger) -> None:
    engine = ScriptedEngine(lambda _: "print(1)\n" * 600)
    one = sampler(ledger, engine)
    one.ensure("Train", 0, 1)
    close(ledger, "train-00000-0000")
    one.ensure("Train", 1, 3)
    assert {row.prompt_kind for row in ledger.rollouts("Train", round=1)} == {"draft"}


def test_a_description_that_does_not_fit_is_the_users_to_mend(ledger: Ledger) -> None:
    run = spec(prompts={"maxPromptTokens": 40})
    with pytest.raises(UserError, match="maxPromptTokens"):
        sampler(ledger, ScriptedEngine(), run).ensure("Train", 0, 1)


def test_tasks_are_drawn_in_the_share_of_their_weights(ledger: Ledger) -> None:
    run = spec(tasks=[{"name": "churn", "weight": 3}, {"name": "leaf"}])
    sampler(ledger, ScriptedEngine(), run).ensure("Train", 0, 400)
    churn = sum(row.task == "churn" for row in ledger.rollouts("Train"))
    assert 270 < churn < 330


@pytest.mark.parametrize(
    ("response", "stopped", "outcome"),
    [
        ("print(1)", True, None),
        ("```python\nprint(1)\n```", True, None),
        ("print(1)", False, Outcome.TRUNCATED),
        ("I am sorry, I cannot.", True, Outcome.UNPARSED),
        ("", True, Outcome.UNPARSED),
        ("```python\nprint(\n```", True, Outcome.REFUSED),
        ("```python\nprint('\0')\n```", True, Outcome.REFUSED),
    ],
)
def test_what_is_decided_without_a_sandbox(response: str, stopped: bool, outcome: Outcome | None) -> None:
    assert judge(response, stopped=stopped, parent_tree=None).outcome is outcome


def test_only_a_script_that_runs_has_a_tree_and_no_outcome() -> None:
    verdict = judge("print(1)", stopped=True, parent_tree=tree_digest("print(2)"))
    assert verdict.tree == tree_digest("print(1)")
    assert verdict.outcome is None
