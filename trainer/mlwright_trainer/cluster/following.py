"""The one watch: every change of an owner's Rollouts, through lost connections and forgotten versions.

List, then watch from the list's version; a watch that the server ends is followed by a new list, which heals what
events were lost; a watch that breaks goes on from the last version it has seen; a version that is too old (410)
means a new list. What is known and no longer listed has been deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from mlwright_trainer.cluster.errors import ApiFailure
from mlwright_trainer.cluster.port import Object, RolloutApi
from mlwright_trainer.cluster.reading import name_of, uid_of, version_of
from mlwright_trainer.cluster.retrying import Pause, Sleep

WATCH_SECONDS = 240.0
"""Then everything is listed once more."""


class Audience(Protocol):
    """Who hears of changes; the same change may be told twice."""

    def saw(self, live: Object) -> None:
        """An object as it is, or recently was."""
        ...

    def lost(self, name: str, uid: str, last: Object | None) -> None:
        """An object has been deleted; `last` is its last state, where that is known."""
        ...


class Follower:
    """Tells an audience what becomes of the objects of a selector."""

    def __init__(
        self,
        api: RolloutApi,
        selector: str,
        audience: Audience,
        *,
        sleep: Sleep,
        trouble: Callable[[ApiFailure], None],
    ) -> None:
        self._api, self._selector, self._audience = api, selector, audience
        self._sleep, self._trouble = sleep, trouble
        self._pause = Pause()
        self._known: dict[str, str] = {}
        self._version: str | None = None

    def expect(self, live: Object) -> None:
        """An object that must be there: if no list has it, it has been deleted."""
        self._known[uid_of(live)] = name_of(live)

    async def run(self) -> None:
        """For ever. Errors: ApiFailure that asking again will not mend."""
        while True:
            try:
                if self._version is None:
                    self._version = await self._list()
                await self._watch(self._version)
                self._version = None
            except ApiFailure as failure:
                await self._recover(failure)

    async def _recover(self, failure: ApiFailure) -> None:
        if failure.expired:
            self._version = None
        elif failure.passing:
            self._trouble(failure)
        else:
            raise failure
        await self._sleep(self._pause.after(failure))

    async def _list(self) -> str:
        # Only what was known before is missed: what is created meanwhile may or may not be in the answer.
        before = dict(self._known)
        listed = await self._api.list(self._selector)
        there = {uid_of(live) for live in listed.objects}
        for uid, name in before.items():
            if uid not in there:
                self._forget(uid, name, None)
        for live in listed.objects:
            self._tell(live)
        return listed.version

    async def _watch(self, version: str) -> None:
        async for event in self._api.watch(self._selector, version=version, seconds=WATCH_SECONDS):
            self._version = version_of(event.object)
            self._pause.reset()
            if event.type == "DELETED":
                self._forget(uid_of(event.object), name_of(event.object), event.object)
            elif event.type != "BOOKMARK":
                self._tell(event.object)
        self._pause.reset()

    def _tell(self, live: Object) -> None:
        self._known[uid_of(live)] = name_of(live)
        self._audience.saw(live)

    def _forget(self, uid: str, name: str, last: Object | None) -> None:
        self._known.pop(uid, None)
        self._audience.lost(name, uid, last)
