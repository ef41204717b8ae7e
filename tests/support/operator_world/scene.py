"""A cluster in which the test is the operator: it sees plans, and carries them out when it wants to."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from mlwright_operator.actions import Action, Emit, Kind, WriteStatus
from mlwright_operator.config import OperatorConfig
from mlwright_operator.failures import Failures
from mlwright_operator.observing import observed
from mlwright_operator.planning.chain import Chain
from mlwright_operator.planning.plan import Plan, plan

from operator_world.api import ApiServer
from operator_world.controllers import Controllers, Fate
from operator_world.objects import config, rollout, task

Raw = dict[str, Any]


@dataclass
class Scene:
    """Objects, controllers, and a clock that only moves when told to."""

    config: OperatorConfig = field(default_factory=config)
    api: ApiServer = field(default_factory=ApiServer)
    failures: Failures = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.controllers = Controllers(self.api)

    def plan(self) -> Plan:
        return plan(
            observed(self.api.objects.values()), self.config, now=self.api.now, failures=self.failures
        )

    def chain(self, name: str = "r") -> Chain | None:
        """What is planned for one object."""
        return next((each for each in self.plan().chains if each.about.name == name), None)

    def carry_out(self) -> int:
        """One pass; the number of writes."""
        planned = self.plan()
        actions = [action for chain in (*planned.policies, *planned.chains) for action in chain.actions]
        for action in actions:
            self.api.carry_out(action)
        return len(actions)

    def wait(self, seconds: int = 1) -> None:
        self.controllers.move()
        self.api.now += timedelta(seconds=seconds)

    def go_on(self, seconds: int) -> None:
        """Passes, controllers and time."""
        for _ in range(seconds):
            self.carry_out()
            self.wait()

    def go_until(self, action: type[Action], name: str = "r") -> Chain:
        """Until such an action is planned for an object; that plan is not carried out."""
        for _ in range(60):
            chain = self.chain(name)
            if chain is not None and any(isinstance(each, action) for each in chain.actions):
                return chain
            self.carry_out()
            self.wait()
        raise AssertionError(f"no {action.__name__} in a minute")

    def status(self, name: str = "r", kind: Kind = Kind.ROLLOUT) -> Raw:
        raw = self.api.get(kind, name)
        assert raw is not None
        found: Raw = raw.get("status", {})
        return found

    def condition(self, type: str, name: str = "r", kind: Kind = Kind.ROLLOUT) -> Raw:
        """Empty where it is not there."""
        conditions = self.status(name, kind).get("conditions", [])
        return next((each for each in conditions if each["type"] == type), {})

    def reason(self, type: str, name: str = "r", kind: Kind = Kind.ROLLOUT) -> str | None:
        return self.condition(type, name, kind).get("reason")

    def events(self, name: str = "r") -> list[tuple[str, str]]:
        return [(each.type, each.reason) for each in self.api.events if each.about.name == name]


def run_one(*fates: Fate, seconds: int = 12, platform: OperatorConfig | None = None, **spec: Any) -> Scene:
    """One Rollout `r` of a ready task, whose pods have these fates, left to itself for some seconds."""
    scene = Scene(platform or config())
    scene.api.create(task())
    scene.api.create(rollout("r", **spec))
    scene.controllers.fates["r"] = list(fates)
    scene.go_on(seconds)
    return scene


def kinds(chain: Chain | None) -> list[str]:
    """The actions of a chain, by name."""
    return [type(action).__name__ for action in chain.actions] if chain is not None else []


def told(chain: Chain) -> list[str]:
    """Reasons of its Events."""
    return [action.reason for action in chain.actions if isinstance(action, Emit)]


def written(chain: Chain) -> Raw:
    """The status that it writes."""
    (status,) = [action.status for action in chain.actions if isinstance(action, WriteStatus)]
    return dict(status)
