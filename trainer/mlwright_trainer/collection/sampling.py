"""Composing rounds: prompts in, scripts out, committed whole before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mlwright_api.mltask import Split
from mlwright_api.rollout import Outcome, RolloutStatus
from mlwright_api.trainingrun import TrainingRunSpec

from mlwright_trainer.collection.draws import draw_fraction, draw_seed
from mlwright_trainer.collection.execution import timed
from mlwright_trainer.collection.extraction import extract_script
from mlwright_trainer.collection.fitting import fit_draft, fit_improve
from mlwright_trainer.collection.parents import Parent, parent_pool
from mlwright_trainer.collection.prompts import PromptChoice, TaskPrompt, choose_prompt
from mlwright_trainer.collection.static_checks import refuse
from mlwright_trainer.collection.syntax import tree_digest
from mlwright_trainer.collection.templating import templates_of
from mlwright_trainer.inference.engine import Codec, Engine, Generation, GenerationRequest
from mlwright_trainer.ledger import Ledger, Purpose, Result, RolloutRow, Sampled

RewardOf = Callable[[str, RolloutStatus], float | None]
"""The reward of a rollout of a task that ended with a status; None where it is never trained."""


@dataclass(frozen=True)
class Verdict:
    """What a response is before anything runs: a script to run, or an outcome without a sandbox."""

    script: str | None = None
    tree: str | None = None
    outcome: Outcome | None = None
    reason: str = ""


@dataclass(frozen=True)
class Asked:
    """A prompt on its way to the engine."""

    task: str
    choice: PromptChoice
    request: GenerationRequest


class Sampler:
    """Where rounds come from (`modes.Rounds`): the same round for the same seed, weights and ledger."""

    def __init__(
        self,
        *,
        spec: TrainingRunSpec,
        tasks: Mapping[str, TaskPrompt],
        ledger: Ledger,
        engine: Engine,
        codec: Codec,
        reward: RewardOf,
    ) -> None:
        self._spec, self._tasks, self._ledger = spec, tasks, ledger
        self._engine, self._codec, self._reward = engine, codec, reward
        self._templates = templates_of(spec.prompts.templates)
        self._drafts: dict[str, tuple[int, ...]] = {}

    def ensure(self, purpose: Purpose, number: int, count: int) -> None:
        """Sample and commit round `number` whole, unless it is committed already.

        Raises UserError where a task's prompt does not fit its budget.
        """
        if number < self._ledger.rounds(purpose):
            return
        with timed(self._ledger, "sampling", number):
            asked = self._ask(purpose, number, count)
            answers = self._engine.generate([one.request for one in asked])
            self._ledger.commit_round(
                [
                    self._sampled(purpose, number, position, one, answer)
                    for position, (one, answer) in enumerate(zip(asked, answers, strict=True))
                ]
            )

    def _ask(self, purpose: Purpose, number: int, count: int) -> list[Asked]:
        pools = self._parents(number) if purpose == "Train" else {}
        return [self._asked(purpose, number, position, pools) for position in range(count)]

    def _parents(self, number: int) -> dict[str, tuple[Parent, ...]]:
        updates = self._spec.prompts.parent_updates
        candidates: dict[str, list[Parent]] = {name: [] for name in self._tasks}
        for earlier in range(max(0, number - updates), number):
            for row in self._ledger.rollouts("Train", round=earlier):
                parent = _parent(row)
                if parent is not None:
                    candidates[row.task].append(parent)
        return {
            name: parent_pool(rows, update=number, parent_updates=updates)
            for name, rows in candidates.items()
        }

    def _asked(
        self, purpose: Purpose, number: int, position: int, pools: Mapping[str, Sequence[Parent]]
    ) -> Asked:
        seed = self._spec.seed
        task = self._draw_task(draw_fraction("task", seed, purpose, number, position))
        choice = choose_prompt(
            seed=seed,
            update=number,
            index=position,
            improve_fraction=self._spec.prompts.improve_fraction,
            parents=pools.get(task, ()),
        )
        choice, tokens = self._prompt(self._tasks[task], choice)
        request = GenerationRequest(
            id=f"{purpose.lower()}-{number:05d}-{position:04d}",
            prompt_tokens=tokens,
            seed=draw_seed("sampling", seed, purpose, number, position),
            temperature=self._spec.sampling.temperature,
            max_tokens=self._spec.sampling.max_tokens,
        )
        return Asked(task, choice, request)

    def _draw_task(self, fraction: float) -> str:
        tasks = self._spec.tasks
        left = fraction * sum(task.weight for task in tasks)
        for task in tasks:
            left -= task.weight
            if left < 0:
                return task.name
        return tasks[-1].name

    def _prompt(self, task: TaskPrompt, choice: PromptChoice) -> tuple[PromptChoice, tuple[int, ...]]:
        """The prompt's tokens; a parent that is too long for the budget gives way to a draft."""
        if choice.parent is not None:
            improve = fit_improve(
                self._codec.encode,
                task,
                choice.parent,
                self._templates,
                max_prompt_tokens=self._spec.prompts.max_prompt_tokens,
            )
            if improve is not None:
                return choice, improve.tokens
        return PromptChoice("draft"), self._draft(task)

    def _draft(self, task: TaskPrompt) -> tuple[int, ...]:
        """A task's draft prompt: always the same."""
        if task.name not in self._drafts:
            budget = self._spec.prompts.max_prompt_tokens
            draft = fit_draft(self._codec.encode, task, self._templates, max_prompt_tokens=budget)
            self._drafts[task.name] = draft.tokens
        return self._drafts[task.name]

    def _sampled(
        self, purpose: Purpose, number: int, position: int, asked: Asked, answer: Generation
    ) -> Sampled:
        response = self._codec.decode(answer.tokens)
        parent = asked.choice.parent
        verdict = judge(
            response, stopped=answer.finish == "stop", parent_tree=parent.digest if parent else None
        )
        return Sampled(
            id=asked.request.id,
            purpose=purpose,
            round=number,
            position=position,
            task=asked.task,
            prompt_kind=asked.choice.kind,
            parent=parent.id if parent else None,
            prompt_tokens=asked.request.prompt_tokens,
            response_tokens=answer.tokens,
            logprobs=answer.logprobs,
            spans=answer.spans,
            response=response,
            script=verdict.script,
            tree=verdict.tree,
            result=self._result(asked.task, verdict),
        )

    def _result(self, task: str, verdict: Verdict) -> Result | None:
        if verdict.outcome is None:
            return None
        status = RolloutStatus(outcome=verdict.outcome, reason=verdict.reason)
        return Result(status=status, reward=self._reward(task, status))


def judge(response: str, *, stopped: bool, parent_tree: str | None) -> Verdict:
    """Find the script in a response and say what is decided without running it.

    `stopped` is False where the model hit maxTokens; `parent_tree` is the digest of the script to be improved.
    """
    if not stopped:
        return Verdict(outcome=Outcome.TRUNCATED, reason="the model hit sampling.maxTokens")
    script = extract_script(response)
    if script is None:
        return Verdict(outcome=Outcome.UNPARSED, reason="no Python script in the response")
    refusal = refuse(script)
    if refusal is not None:
        return Verdict(script, outcome=Outcome.REFUSED, reason=refusal)
    tree = tree_digest(script)
    if tree == parent_tree:
        return Verdict(script, tree, Outcome.UNCHANGED, "the same syntax tree as the script to be improved")
    return Verdict(script, tree)


def _parent(row: RolloutRow) -> Parent | None:
    """A row that may be improved: scored, so that there is something to build on."""
    score = row.score(Split.REWARD)
    if row.outcome is not Outcome.SCORED or score is None or row.script is None or row.tree is None:
        return None
    return Parent(
        id=row.id,
        script=row.script,
        score=score,
        output_tail=row.status.output_tail,
        digest=row.tree,
        update=row.round,
    )
