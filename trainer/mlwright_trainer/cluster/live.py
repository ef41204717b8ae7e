"""All rollouts of one owner, inside of the event loop: one coroutine takes each from its creation to its end.

What holds at every moment, also after a crash between any two requests:
- an object is created under a derived name, so a second creation meets the first and takes it over;
- it is deleted only by uid, and, before it has ended, only in the state that was looked at;
- nobody else's object is ever touched.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mlwright_sandbox.backend import Finished

from mlwright_trainer.cluster import reading
from mlwright_trainer.cluster.errors import ApiFailure, ClusterRefused
from mlwright_trainer.cluster.explaining import explained, no_answer
from mlwright_trainer.cluster.following import Follower
from mlwright_trainer.cluster.manifest import differences
from mlwright_trainer.cluster.owner import Owner
from mlwright_trainer.cluster.port import Object, RolloutApi
from mlwright_trainer.cluster.reading import name_of, uid_of
from mlwright_trainer.cluster.retrying import Sleep, persist
from mlwright_trainer.errors import InternalError, MlwrightError

GRACE_SECONDS = 10.0
"""An operator that has not yet seen a task refuses its rollouts for a moment."""
WRITES_AT_A_TIME = 16
Told = Callable[[str, str], None]
"""Hears (rollout, line) whenever a rollout waits for something else than before; "" for all of them."""


class _Withdrawn(Exception):
    """The rollout was cancelled before its creation was known to have succeeded."""


@dataclass(eq=False)
class Ticket:
    """A rollout in flight. `turn` resolves once: with its result, or with None when it is to be cancelled."""

    rollout: str
    body: dict[str, Any]
    turn: asyncio.Future[Finished | None]
    uid: str | None = None
    """Of its object, as soon as that is known."""
    sent: bool = False
    """Whether an object of it might exist."""
    early: list[Callable[[], None]] = field(default_factory=list)
    """What was told of its name before the uid was known."""
    line: str = ""
    refused: str | None = None
    grace: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return name_of(self.body)

    def settle(self, finished: Finished | None) -> None:
        """Only the first settlement counts."""
        if not self.turn.done():
            self.turn.set_result(finished)

    def fail(self, error: MlwrightError) -> None:
        if not self.turn.done():
            self.turn.set_exception(error)


class LiveRollouts:
    """Creates, follows and deletes the Rollouts of `owner`; gives back each result once."""

    def __init__(
        self,
        api: RolloutApi,
        owner: Owner,
        *,
        give: Callable[[Finished | MlwrightError], None],
        told: Told,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._owner = api, owner
        self._give, self._told = give, told
        self._sleep, self._now = sleep, now
        self._tickets: dict[str, Ticket] = {}
        self._kept: dict[str, tuple[str, str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._writes = asyncio.Semaphore(WRITES_AT_A_TIME)
        self._trouble = ""
        self._follower = Follower(api, owner.selector, self, sleep=sleep, trouble=self._hear)

    @property
    def kept(self) -> list[str]:
        """The names of objects that exist for us, as far as is known."""
        return sorted(name for name, _ in self._kept.values())

    async def follow(self) -> None:
        """Watch for ever; what cannot be mended is given to whoever collects."""
        try:
            await self._follower.run()
        except ApiFailure as failure:
            self._give(self._explained(failure, "watch Rollouts"))
        except Exception as error:  # nothing would ever be heard of again
            self._give(InternalError(f"the watch of Rollouts broke: {error!r}"))

    def start(self, rollout: str, body: dict[str, Any]) -> None:
        """Take one rollout from its creation to its result, in the background."""
        ticket = Ticket(rollout, body, asyncio.get_running_loop().create_future())
        self._tickets[ticket.name] = ticket
        task = asyncio.ensure_future(self._carry(ticket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def ended(self) -> None:
        """Wait until nothing is in flight."""
        await asyncio.gather(*self._tasks)

    async def _carry(self, ticket: Ticket) -> None:
        try:
            result: Finished | MlwrightError = await self._life(ticket)
        except MlwrightError as error:
            result = error
        except ApiFailure as failure:
            result = self._explained(failure, f"create or end Rollout {ticket.name}")
        except Exception as error:  # a fault of ours must not leave the caller waiting for ever
            result = InternalError(f"Rollout {ticket.name}: {error!r}")
        finally:
            del self._tickets[ticket.name]
            if ticket.grace is not None:
                ticket.grace.cancel()
        self._give(result)

    def cancel(self, rollout: str) -> None:
        """End a rollout; unknown ones have ended."""
        ticket = self._tickets.get(self._owner.object_name(rollout))
        if ticket is not None:
            ticket.settle(None)

    def cancel_all(self) -> None:
        for ticket in list(self._tickets.values()):
            ticket.settle(None)

    async def release(self, rollout: str) -> None:
        """Delete the object of a rollout whose result is safe elsewhere."""
        if (kept := self._kept.get(rollout)) is not None:
            await self._remove(*kept)
            self._kept.pop(rollout, None)

    async def release_all(self) -> None:
        await asyncio.gather(*(self.release(rollout) for rollout in list(self._kept)))

    async def adopt(self, rollouts: Collection[str]) -> list[str]:
        """Which of these an earlier process has left; whatever else it has left of this owner's is deleted."""
        wanted = {self._owner.object_name(rollout): rollout for rollout in rollouts}
        try:
            listed = await self._persist(lambda: self._api.list(self._owner.selector))
        except ApiFailure as failure:
            raise self._explained(failure, "list Rollouts") from failure
        strays = [each for each in listed.objects if name_of(each) not in wanted and self._owns(each)]
        await asyncio.gather(*(self._remove(name_of(each), uid_of(each)) for each in strays))
        return sorted(wanted[name_of(each)] for each in listed.objects if name_of(each) in wanted)

    # What the follower tells.

    def saw(self, live: Object) -> None:
        """An object as it is, or recently was."""
        ticket = self._tickets.get(name_of(live))
        if ticket is None:
            return
        if ticket.uid is None:
            ticket.early.append(partial(self.saw, live))
        elif ticket.uid == uid_of(live):
            self._advance(ticket, live)

    def lost(self, name: str, uid: str, last: Object | None) -> None:
        """An object has been deleted."""
        ticket = self._tickets.get(name)
        if ticket is None:
            return
        if ticket.uid is None:
            ticket.early.append(partial(self.lost, name, uid, last))
        elif ticket.uid == uid:
            if last is not None and reading.ended(last):
                self._advance(ticket, last)
            ticket.settle(reading.gone(ticket.rollout, now=self._now()))
            self._kept.pop(ticket.rollout, None)

    def _advance(self, ticket: Ticket, live: Object) -> None:
        if reading.ended(live):
            try:
                ticket.settle(reading.finished(ticket.rollout, live))
            except MlwrightError as error:
                ticket.fail(error)
            return
        line = reading.waits_for(live)
        if line != ticket.line:
            ticket.line = line
            self._told(ticket.rollout, line)
        ticket.refused = reading.refusal(live)
        if ticket.refused and ticket.grace is None:
            ticket.grace = asyncio.ensure_future(self._give_up(ticket))

    async def _give_up(self, ticket: Ticket) -> None:
        """A refusal that lasts is the user's to mend."""
        await self._sleep(GRACE_SECONDS)
        ticket.grace = None
        if ticket.refused:
            ticket.fail(ClusterRefused(f"Rollout {ticket.name} is not accepted: {ticket.refused}"))

    # The life of one rollout.

    async def _life(self, ticket: Ticket) -> Finished:
        try:
            live = await persist(
                partial(self._create, ticket), sleep=partial(self._rest, ticket), trouble=self._hear
            )
        except _Withdrawn:
            return await self._withdraw(ticket)
        self._bind(ticket, live)
        finished = await ticket.turn
        return finished if finished is not None else await self._withdraw(ticket)

    async def _create(self, ticket: Ticket) -> Object:
        """The object, made now or by an earlier process."""
        async with self._writes:
            if ticket.turn.done():
                raise _Withdrawn
            ticket.sent = True
            try:
                return await self._api.create(ticket.body)
            except ApiFailure as failure:
                if not failure.conflict:
                    raise
                if failure.reason != "AlreadyExists":
                    raise _passing(str(failure)) from failure
                return self._same(ticket, await self._api.get(ticket.name))

    def _same(self, ticket: Ticket, live: Object) -> Object:
        """The object that has the name, if it is ours. Errors: ClusterRefused."""
        if different := differences(ticket.body, live):
            raise ClusterRefused(
                f"{self._api.place}: Rollout {ticket.name} exists already and is another one ({', '.join(different)} "
                f"differ): delete it (kubectl delete rollout {ticket.name}) if it is none of yours"
            )
        if reading.going(live):
            raise _passing(f"an earlier Rollout {ticket.name} is still being deleted")
        return live

    async def _rest(self, ticket: Ticket, seconds: float) -> None:
        """Sleep, but not beyond a cancellation."""
        sleeping: asyncio.Future[Any] = asyncio.ensure_future(self._sleep(seconds))
        waited_for: set[asyncio.Future[Any]] = {sleeping, ticket.turn}
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()

    def _bind(self, ticket: Ticket, live: Object) -> None:
        ticket.uid = uid_of(live)
        self._kept[ticket.rollout] = (ticket.name, ticket.uid)
        self._follower.expect(live)
        self.saw(live)
        for tell in ticket.early:
            tell()
        ticket.early.clear()

    async def _withdraw(self, ticket: Ticket) -> Finished:
        """Delete the object, unless it has ended: then it is what it was."""
        while ticket.sent:
            live = await self._look(ticket)
            if live is None:
                break
            if reading.ended(live):
                self._kept[ticket.rollout] = (ticket.name, uid_of(live))
                return reading.finished(ticket.rollout, live)
            if await self._deleted(ticket.name, uid_of(live), version=reading.version_of(live)):
                self._kept.pop(ticket.rollout, None)
                return reading.cancelled(ticket.rollout, now=reading.running_since(live) or self._now())
        self._kept.pop(ticket.rollout, None)
        return reading.cancelled(ticket.rollout, now=self._now())

    async def _look(self, ticket: Ticket) -> Object | None:
        """The ticket's object as it is; None if there is none (another one under its name is none)."""
        try:
            live = await self._persist(lambda: self._api.get(ticket.name))
        except ApiFailure as failure:
            if failure.gone:
                return None
            raise
        ours = ticket.uid in (None, uid_of(live)) and not differences(ticket.body, live)
        return live if ours else None

    async def _deleted(self, name: str, uid: str, *, version: str | None = None) -> bool:
        """Whether exactly that object is gone now; False: it is another one, or in another state."""

        async def delete() -> None:
            async with self._writes:
                await self._api.delete(name, uid=uid, version=version)

        try:
            await self._persist(delete)
        except ApiFailure as failure:
            if failure.conflict:
                return False
            if not failure.gone:
                raise
        return True

    async def _remove(self, name: str, uid: str) -> None:
        try:
            await self._deleted(name, uid)
        except ApiFailure as failure:
            self._give(self._explained(failure, f"delete Rollout {name}"))

    def _owns(self, live: Object) -> bool:
        """The label alone proves nothing of a run's rollout: its spec does."""
        run = self._owner.run_ref
        reference = live.get("spec", {}).get("runRef") or {}
        return run is None or (reference.get("uid") == run.uid and reference.get("name") == run.name)

    async def _persist(self, request: Callable[[], Any]) -> Any:
        return await persist(request, sleep=self._sleep, trouble=self._hear)

    def _hear(self, failure: ApiFailure) -> None:
        line = no_answer(failure)
        if line != self._trouble:
            self._trouble = line
            self._told("", line)

    def _explained(self, failure: ApiFailure, doing: str) -> MlwrightError:
        return explained(failure, doing=doing, place=self._api.place)


def _passing(message: str) -> ApiFailure:
    """Something to try again."""
    return ApiFailure(message, status=0)
