"""The collector: samples, runs and rewards; forms batches; hands them to the learner and takes its weights."""

from __future__ import annotations

import time
from collections.abc import Sequence

from mlwright_api.trainingrun import Evaluation

from mlwright_trainer.collection.modes import Mode, Synchronous
from mlwright_trainer.errors import InternalError
from mlwright_trainer.exchange import Batch, Publication
from mlwright_trainer.inference.engine import Engine
from mlwright_trainer.ledger import Ledger, Purpose, RolloutRow, UpdateRow
from mlwright_trainer.progress import Progress


class Collector:
    """The exchange of one run (`mlwright_trainer.exchange.Exchange`), in the learner's process."""

    def __init__(
        self,
        *,
        ledger: Ledger,
        engine: Engine,
        mode: Mode,
        fresh: Synchronous,
        progress: Progress,
        evaluation: Evaluation,
    ) -> None:
        self._ledger, self._engine = ledger, engine
        self._mode, self._fresh, self._progress = mode, fresh, progress
        self._evaluation = evaluation
        self._handed_over: tuple[int, float, float] | None = None

    def version(self) -> int:
        """The newest published version; -1 before version 0."""
        updates = self._ledger.updates()
        return updates[-1].version if updates else -1

    def batch(self, number: int) -> Batch:
        """Batch `number`: assigned now, in one transaction, or as it was.

        Raises InternalError where the batch before it is missing or not one row can be trained.
        """
        assigned = self._ledger.batch(number)
        if assigned is None:
            self._assign(number)
            assigned = self._ledger.batch(number)
        assert assigned is not None
        self._progress.stage(f"update {number}: learning")
        self._handed_over = (number, time.time(), time.monotonic())
        return assigned

    def _assign(self, number: int) -> None:
        if number != self._ledger.batches():
            raise InternalError(
                f"batch {number} was asked for, but batch {self._ledger.batches()} comes next"
            )
        self._evaluate(number)
        self._progress.stage(f"update {number}: collecting", self._mode.goal)
        ids = self._mode.collect(number)
        if not ids:
            raise InternalError(
                f"batch {number} is empty: no rollout came to an end of its own; "
                "see `mlwright ledger list` for the reasons"
            )
        self._ledger.assign_batch(number, ids)

    def _evaluate(self, number: int) -> None:
        """Fresh samples of the current version, every so many updates; round k is the k-th such evaluation."""
        every, samples = self._evaluation.every_updates, self._evaluation.samples
        if every and samples and number and number % every == 0:
            self._progress.stage(f"update {number}: {samples} fresh samples", samples)
            self.await_fresh("Evaluation", number // every - 1, samples)

    def publish(self, publication: Publication) -> None:
        """Take over new weights; the same version again with the same digest changes nothing."""
        self._account_learning(publication.version)
        self._ledger.record_update(
            UpdateRow(publication.version, publication.digest, publication.metrics, published_at=time.time())
        )
        if self._engine.version != publication.version:
            self._engine.load(publication.version, publication.folder)

    def _account_learning(self, version: int) -> None:
        if self._handed_over is not None and self._handed_over[0] == version - 1:
            number, started_at, start = self._handed_over
            seconds = time.monotonic() - start
            self._ledger.record_phase("learning", started_at=started_at, seconds=seconds, round=number)
            self._progress.say(describe_batch(number, self._ledger.batch_rollouts(number)))
        self._handed_over = None

    def await_fresh(self, purpose: Purpose, number: int, count: int) -> list[RolloutRow]:
        """`count` fresh draft samples of the current version, launched and awaited whole; never trained."""
        return self._fresh.await_round(purpose, number, count)


def describe_batch(number: int, rows: Sequence[RolloutRow]) -> str:
    """A batch in one line: mean reward, valid fraction, mean score of the valid ones, mean execution seconds."""
    rewards = [row.reward for row in rows if row.reward is not None]
    valid = [row for row in rows if row.outcome is not None and row.outcome.valid]
    scores = [score for row in rows if (score := row.score()) is not None]
    ran = [row.status.seconds.execution for row in rows if row.outcome is not None and row.outcome.executed]
    parts = [f"update {number:>3}", f"reward {_mean(rewards)}", f"valid {len(valid) / len(rows):.2f}"]
    return "  ".join([*parts, f"score {_mean(scores)}", f"{_mean(ran)} s a script"])


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else "-"
