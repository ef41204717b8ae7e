"""One pass over what the store knows, and what is counted of it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from mlwright_operator.cluster import Cluster
from mlwright_operator.config import OperatorConfig
from mlwright_operator.edge.loop import Passed
from mlwright_operator.edge.metrics import Metrics
from mlwright_operator.edge.store import Store
from mlwright_operator.failures import Failure, Failures
from mlwright_operator.observed import AnySeen
from mlwright_operator.observing import gather
from mlwright_operator.reconcile import NO_FAILURES, PassReport, reconcile

log = logging.getLogger(__name__)


class Passes:
    """Observes, reconciles, counts; what failed is remembered from one pass to the next, and nothing else."""

    def __init__(
        self,
        store: Store[AnySeen | None],
        cluster: Cluster,
        config: OperatorConfig,
        *,
        metrics: Metrics,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._config = config
        self._metrics = metrics
        self._now = now
        self._failures: Failures = NO_FAILURES

    async def one(self) -> Passed:
        """One pass. Raises WritesClosed where the lease ran out, and whatever is wrong with our own code."""
        now = self._now()
        with self._metrics.reconcile_seconds.time():
            report = await reconcile(
                gather(self._store.values()), self._cluster, self._config, now=now, failures=self._failures
            )
        self._failures = report.failures
        self._count(report)
        wrote = report.writes > len(report.failed)
        return Passed(wrote=wrote, due=self._seconds_until(report.look_again))

    def _seconds_until(self, moment: datetime | None) -> float | None:
        return None if moment is None else max(0.0, (moment - self._now()).total_seconds())

    def _count(self, report: PassReport) -> None:
        self._metrics.pass_succeeded()
        for failure in report.failed:
            self._metrics.failure("write")
            _log_failure(failure)
        for status in report.finished:
            self._metrics.rollout_finished(status)
        if report.finished:
            log.info("rollouts finished", extra={"count": len(report.finished)})


def _log_failure(failure: Failure) -> None:
    """A conflict is everyday life, and is planned anew at once."""
    level = logging.DEBUG if failure.status == 409 else logging.WARNING
    log.log(
        level, "write failed: %s", failure.message, extra={"status": failure.status, "tries": failure.tries}
    )
