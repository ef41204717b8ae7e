"""The control that must not learn: every batch with its rewards dealt out anew."""

from __future__ import annotations

import random
from dataclasses import replace

from mlwright_trainer.collection.draws import draw_seed
from mlwright_trainer.exchange import Batch, Exchange, Publication


def shuffled(batch: Batch, *, seed: int) -> Batch:
    """The batch with its rewards permuted among its rows, the same for the same seed; nothing else changes."""
    order = list(range(len(batch.rows)))
    random.Random(draw_seed("shuffled rewards", seed, batch.number)).shuffle(order)
    rows = tuple(
        replace(row, reward=batch.rows[other].reward) for row, other in zip(batch.rows, order, strict=True)
    )
    return replace(batch, rows=rows)


class ShuffledRewards:
    """An exchange whose batches carry shuffled rewards; the ledger behind it keeps the true ones."""

    def __init__(self, exchange: Exchange, *, seed: int) -> None:
        self._exchange, self._seed = exchange, seed

    def version(self) -> int:
        return self._exchange.version()

    def batch(self, number: int) -> Batch:
        return shuffled(self._exchange.batch(number), seed=self._seed)

    def publish(self, publication: Publication) -> None:
        self._exchange.publish(publication)
