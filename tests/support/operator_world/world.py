"""The whole: time passes, users act, operators come and go, and at every moment what must never be is looked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil

from mlwright_operator import labels
from mlwright_operator.actions import Kind
from mlwright_operator.config import OperatorConfig
from mlwright_operator.sandbox import network_policy

from operator_world.api import ApiServer, Raw
from operator_world.controllers import Controllers
from operator_world.operators import Killed, Operator

Deed = Callable[["World"], None]
LONGEST_SECONDS = 4000
SOON = timedelta(minutes=5)
"""What is still to come within this time is waited for."""
SOON = timedelta(minutes=5)
"""What is still to come within this time is waited for."""


@dataclass
class World:
    """An API server with everything around it; `deeds` are what users do, by second."""

    config: OperatorConfig
    api: ApiServer = field(default_factory=ApiServer)
    deeds: dict[int, list[Deed]] = field(default_factory=dict)
    strict: bool = True
    """Limits, and one sandbox a Rollout, hold at every moment: true of one operator."""
    violations: list[str] = field(default_factory=list)
    second: int = 0

    def __post_init__(self) -> None:
        self.controllers = Controllers(self.api)
        self.api.watchers.append(self._look)

    def at(self, second: int, deed: Deed) -> None:
        self.deeds.setdefault(second, []).append(deed)

    def make(self, *bodies: Raw) -> None:
        """As `kubectl create`."""
        for body in bodies:
            self.api.create(body)

    # Time.

    def tick(self, *, seconds: int = 1) -> None:
        """Users act, controllers move, the clock goes on."""
        for deed in self.deeds.pop(self.second, ()):
            deed(self)
        self.controllers.move()
        self.second += seconds
        self.api.now += timedelta(seconds=seconds)

    def settle(self, operator: Operator, *, resync_every: int = 20) -> Operator:
        """Until nothing happens any more; an operator that dies is replaced by a new process."""
        still, listed = 0, -resync_every
        while still < 3:
            assert self.second < LONGEST_SECONDS, "it never comes to rest"
            version = self.api.version
            if self.second >= listed + resync_every:
                operator.resync()
                listed = self.second
            operator.hear()
            try:
                report = operator.one_pass()
            except Killed:
                operator, still = Operator(self.api, self.config), 0
                continue
            self.tick()
            if self.api.version != version or report.writes or self.deeds or self._unheard(operator):
                still = 0
            elif (wait := self._seconds_until(report.look_again)) is not None:
                still = 0
                self.tick(seconds=wait)
            else:
                still += 1
        return operator

    def _seconds_until(self, moment: datetime | None) -> int | None:
        """To the next thing that comes with time alone, if that is soon."""
        if moment is None or moment - self.api.now > SOON:
            return None
        return max(ceil((moment - self.api.now).total_seconds()), 1)

    def _unheard(self, operator: Operator) -> bool:
        """What a lossy watch has not told is only found at the next resync."""
        lossy = operator.watch is not None
        return lossy and any(not raw.get("status", {}).get("outcome") for raw in self.api.live(Kind.ROLLOUT))

    # What must never be, and what must be in the end.

    def _look(self) -> None:
        self._look_for_open_sandboxes()
        if self.strict:
            self._look_at_limits()
        for uid, outcomes in self.api.results.items():
            if len(set(outcomes)) > 1:
                self._violated(f"{uid} had several results: {outcomes}")

    def _look_for_open_sandboxes(self) -> None:
        for kind in (Kind.JOB, Kind.POD):
            for raw in self.api.live(kind):
                namespace = raw["metadata"]["namespace"]
                policy = self.api.get(Kind.NETWORK_POLICY, labels.POLICY_NAME, namespace)
                doomed = self.api.get(Kind.NAMESPACE, namespace)
                if policy is None and not (doomed and doomed["metadata"].get("deletionTimestamp")):
                    self._violated(f"{raw['metadata']['name']} exists without its policy")
                elif policy is not None and policy["spec"] != network_policy(namespace)["spec"]:
                    self._violated(f"{raw['metadata']['name']} has another policy")

    def _look_at_limits(self) -> None:
        limits = self.config.admission
        holders = {
            (_owner(raw), raw["metadata"]["labels"].get(labels.RUN_UID, "")) for raw in self._sandboxes()
        }
        if len(holders) > limits.sandboxes:
            self._violated(f"{len(holders)} sandboxes")
        for run in {run for _, run in holders}:
            if sum(each == run for _, each in holders) > limits.sandboxes_per_run:
                self._violated(f"too many sandboxes of {run}")
        running = [_owner(pod) for pod in self.api.live(Kind.POD) if pod["status"].get("phase") == "Running"]
        if len(running) != len(set(running)):
            self._violated("two sandboxes of one Rollout run at once")

    def _sandboxes(self) -> Iterator[Raw]:
        yield from self.api.live(Kind.JOB)
        for pod in self.api.live(Kind.POD):
            if pod["status"].get("phase") not in ("Succeeded", "Failed"):
                yield pod

    def _violated(self, what: str) -> None:
        self.violations.append(f"{what} (second {self.second})")

    def outcomes(self) -> dict[str, str | None]:
        """By name of the Rollout."""
        return {
            raw["metadata"]["name"]: raw.get("status", {}).get("outcome")
            for raw in self.api.live(Kind.ROLLOUT)
        }

    def attempts(self) -> dict[str, int]:
        return {
            raw["metadata"]["name"]: raw.get("status", {}).get("attempt", 0)
            for raw in self.api.live(Kind.ROLLOUT)
        }

    def assert_sound(self, operator: Operator) -> None:
        """Once it is quiet: nothing was ever wrong, nothing is left over, and another pass has nothing to do."""
        assert self.violations == []
        uids = self.api.uids()
        for kind in (Kind.JOB, Kind.POD):
            for child in self.api.live(kind):
                assert any(each["uid"] in uids for each in child["metadata"]["ownerReferences"])
        for raw in self.api.live(Kind.ROLLOUT):
            if raw.get("status", {}).get("outcome"):
                assert list(self.api.owned(raw["metadata"]["uid"], Kind.JOB)) == []
        again = Operator(self.api, self.config)
        assert again.one_pass().writes == 0
        assert operator.one_pass().writes == 0


def _owner(raw: Raw) -> str:
    found = raw["metadata"]["labels"]
    return str(found.get(labels.ROLLOUT_UID) or found.get(labels.TASK_UID))
