"""The arms as runs: the same folder, ledger, sandbox, sealed grading and report; another way of learning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlwright_sandbox.backend import SandboxBackend
from mlwright_trainer.collection.execution import timed
from mlwright_trainer.generators import Example
from mlwright_trainer.inference.codec import TransformersCodec
from mlwright_trainer.ledger import Ledger, RolloutRow
from mlwright_trainer.progress import Progress
from mlwright_trainer.runs.folder import RunFolder
from mlwright_trainer.runs.local import LocalOptions, LocalRun
from mlwright_trainer.runs.plan import RunPlan

from benchmarks.quickstart.budget import Budget, sandbox_seconds
from benchmarks.quickstart.keeping import better_half
from benchmarks.quickstart.rejection import RejectionSteps
from benchmarks.quickstart.settings import Arm
from benchmarks.quickstart.shuffling import ShuffledRewards


class ReinforcementLearning(LocalRun):
    """`rl`: the quickstart as it is."""

    def _candidates(self) -> list[RolloutRow]:
        """Only what the budget paid for: arms have different numbers of fresh samples, which only measure."""
        return self._ledger.rollouts("Train")


@dataclass(frozen=True)
class Terms:
    """What a control is given."""

    budget: Budget
    rejection_rate: float


class Control(ReinforcementLearning):
    """Rounds of drafts of the current version until the budget is spent; resumes from the ledger alone."""

    def __init__(
        self, plan: RunPlan, folder: RunFolder, ledger: Ledger, progress: Progress, *, terms: Terms
    ) -> None:
        super().__init__(plan, folder, LocalOptions(resume=True), ledger, progress)
        self._terms = terms

    def _rounds(self) -> Iterator[int]:
        """Every round from the first: those that are committed (an interrupted one is finished first), then more."""
        number = 0
        while number < self._ledger.rounds("Train") or self._another():
            yield number
            number += 1

    def _another(self) -> bool:
        spent = sandbox_seconds(self._ledger.rollouts("Train"))
        rounds = self._ledger.rounds("Train")
        self._progress.say(
            f"{spent:.0f} of {self._terms.budget.seconds:.0f} sandbox seconds, {rounds} rounds"
        )
        return self._terms.budget.another(spent, rounds)


class BestOfN(Control):
    """`best-of-n`: drafts of version 0 and nothing else; its fresh samples are those the RL arm took before."""

    def _learn(self, backend: SandboxBackend) -> None:
        collector = self._collector(backend)
        for number in self._rounds():
            self._progress.stage(f"round {number}", self._plan.batch_size)
            collector.await_fresh("Train", number, self._plan.batch_size)


class RejectionSampling(Control):
    """`rejection-sampling`: after each round one supervised pass over the better half of its valid scripts."""

    def _learn(self, backend: SandboxBackend) -> None:
        collector = self._collector(backend)
        codec = TransformersCodec(self._folder.initial_weights)
        steps = RejectionSteps(self._plan.spec, self._folder.weights, rate=self._terms.rejection_rate)
        for number in self._rounds():
            self._progress.stage(f"round {number}", self._plan.batch_size)
            rows = collector.await_fresh("Train", number, self._plan.batch_size)
            if number == self._ledger.batches():
                self._ledger.assign_batch(number, [row.id for row in rows if row.reward is not None])
            if number == collector.version():
                kept = better_half(rows)
                with timed(self._ledger, "learning", number):
                    publication = steps.advance(number, [self._example(codec, row) for row in kept])
                collector.publish(publication)
        self._await_fresh(collector, "After", due=True)

    def _example(self, codec: TransformersCodec, row: RolloutRow) -> Example:
        prompt = codec.decode(self._ledger.sample(row.id).prompt_tokens)
        return Example(prompt=prompt, completion=row.response)


class Shuffled(Control):
    """`shuffled`: the RL arm's learner on rewards without meaning.

    It may make more or fewer updates than the RL arm; the quickstart's learning rate is constant, so that its number
    of updates changes none of them.
    """

    def _learn(self, backend: SandboxBackend) -> None:
        collector = self._collector(backend)
        learner = self._learner(ShuffledRewards(collector, seed=self._plan.spec.seed))
        for number in self._rounds():
            learner.run(number + 1)
        self._await_fresh(collector, "After", due=True)


CONTROLS: dict[Arm, type[Control]] = {
    Arm.BEST_OF_N: BestOfN,
    Arm.REJECTION_SAMPLING: RejectionSampling,
    Arm.SHUFFLED: Shuffled,
}
