"""One pass: plan what follows from what was observed, carry it out, tell what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mlwright_api.rollout import RolloutStatus

from mlwright_operator.actions import Kind, Ref, WriteStatus
from mlwright_operator.cluster import Cluster
from mlwright_operator.config import OperatorConfig
from mlwright_operator.errors import ApiFailure, WritesClosed
from mlwright_operator.failures import Failure, Failures, Verb, failed, verb_of
from mlwright_operator.observed import Observed
from mlwright_operator.planning.chain import Chain
from mlwright_operator.planning.plan import Plan, plan

AT_ONCE = 32
"""Chains that are carried out at the same time."""
NO_FAILURES: Final[Failures] = {}


@dataclass(frozen=True)
class PassReport:
    """What came of one pass."""

    failures: Failures
    """To be given to the next pass."""
    writes: int
    """Requests that were sent; 0 where nothing had changed."""
    finished: tuple[RolloutStatus, ...] = ()
    """Results that were written in this pass, each exactly once in the life of a Rollout."""
    look_again: datetime | None = None
    """When another pass may have something to do, though nothing is heard until then."""
    live: Mapping[Kind, int] = field(default_factory=dict)
    """Objects seen, by kind."""
    failed: tuple[Failure, ...] = ()
    """What failed in this pass."""


async def reconcile(
    observed: Observed,
    cluster: Cluster,
    config: OperatorConfig,
    *,
    now: datetime,
    failures: Failures = NO_FAILURES,
) -> PassReport:
    """One pass, from one moment of the cluster. Raises WritesClosed, once everything in flight has been answered."""
    planned = plan(observed, config, now=now, failures=failures)
    carrier = _Carrier(cluster, now, failures)
    protected = await carrier.carry_out(planned.policies)
    await carrier.carry_out(_permitted(planned, protected))
    if carrier.closed is not None:
        raise carrier.closed
    remaining = _still_held(failures, carrier) | carrier.failed
    moments = [planned.look_again, *(each.due_at for each in remaining.values())]
    return PassReport(
        failures=remaining,
        writes=carrier.writes,
        finished=tuple(carrier.finished),
        look_again=min((each for each in moments if each is not None and each > now), default=None),
        live=_live(observed),
        failed=tuple(carrier.failed.values()),
    )


def _permitted(planned: Plan, protected: frozenset[Ref]) -> list[Chain]:
    """No sandbox without its policy."""
    closed = planned.unprotected - {ref.namespace for ref in protected}
    return [each for each in planned.chains if not (each.makes_job and each.about.namespace in closed)]


@dataclass
class _Carrier:
    """Carries out chains and keeps account."""

    cluster: Cluster
    now: datetime
    before: Failures
    writes: int = 0
    finished: list[RolloutStatus] = field(default_factory=list)
    failed: dict[Ref, Failure] = field(default_factory=dict)
    done: dict[Ref, frozenset[Verb]] = field(default_factory=dict)
    """What was done for whom, where all of it succeeded."""
    closed: WritesClosed | None = None

    async def carry_out(self, chains: Iterable[Chain]) -> frozenset[Ref]:
        """On whose behalf everything succeeded."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(chain: Chain) -> None:
            async with turns:
                await self._chain(chain)

        several = list(chains)
        await asyncio.gather(*(one(each) for each in several))
        return frozenset(each.about for each in several if each.about in self.done)

    async def _chain(self, chain: Chain) -> None:
        for action in chain.actions:
            if self.closed is not None:
                return
            try:
                self.writes += 1
                await self.cluster.carry_out(action)
            except WritesClosed as error:
                self.writes -= 1
                self.closed = error
                return
            except ApiFailure as error:
                self.failed[chain.about] = failed(
                    action,
                    error,
                    before=self.before.get(chain.about),
                    resource_version=chain.resource_version,
                    now=self.now,
                )
                return
            if isinstance(action, WriteStatus) and chain.result is not None:
                self.finished.append(chain.result)
        self.done[chain.about] = frozenset(map(verb_of, chain.actions))


def _still_held(before: Failures, carrier: _Carrier) -> dict[Ref, Failure]:
    """Earlier failures that are left alone for now; one that was made good, or is due and was not met again, is not."""
    return {
        ref: failure
        for ref, failure in before.items()
        if failure.at <= carrier.now < failure.due_at and failure.verb not in carrier.done.get(ref, ())
    }


def _live(observed: Observed) -> dict[Kind, int]:
    return {
        Kind.ROLLOUT: len(observed.rollouts),
        Kind.TASK: len(observed.tasks),
        Kind.TRAINING_RUN: len(observed.runs),
        Kind.JOB: sum(map(len, observed.jobs.values())),
        Kind.POD: sum(map(len, observed.pods.values())),
    }
