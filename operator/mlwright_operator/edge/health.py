"""What the probes say: alive while the loop turns, ready while the last pass (or, in a standby, list) succeeded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlwright_operator.edge.clock import since_boot


@dataclass(frozen=True)
class Verdict:
    """Of a probe: whether it passes, and a line that says why not (or what it goes by)."""

    ok: bool
    why: str


class Health:
    """Remembers how lists and passes went."""

    def __init__(self, *, resync_seconds: float, clock: Callable[[], float] = since_boot) -> None:
        self._clock = clock
        self._patience = 3 * resync_seconds + 30
        """Lists are due every resync_seconds, and each one is followed by a pass: later than this is a hang."""
        self._began: float | None = None
        self._listed: float | None = None
        self._passed: float | None = None
        self._trouble: dict[str, str] = {}

    def listed(self) -> None:
        """Everything has been listed."""
        self._listed = self._clock()
        self._trouble.pop("list", None)

    def began(self) -> None:
        """A pass began."""
        self._began = self._clock()

    def passed(self) -> None:
        """It ended well."""
        self._began, self._passed = None, self._clock()
        self._trouble.pop("pass", None)

    def stood_by(self) -> None:
        """It ended because this process may not write now."""
        self._began = None
        self._trouble.pop("pass", None)

    def failed(self, what: str, why: str) -> None:
        """A list or a pass ("list", "pass") ended badly."""
        if what == "pass":
            self._began = None
        self._trouble[what] = why

    def answered(self, code: int) -> None:
        """The API server answered a request with this HTTP code (0: it did not)."""
        if code and code < 500:
            self._trouble.pop("API server", None)
        else:
            self._trouble["API server"] = f"answers with {code}" if code else "does not answer"

    def alive(self) -> Verdict:
        """Whether the process should go on: False only where a pass hangs."""
        hangs = self._began is not None and self._clock() - self._began > self._patience
        return Verdict(not hangs, "a pass hangs" if hangs else "alive")

    def ready(self, *, leading: bool) -> Verdict:
        """Whether this process does (or, as a standby, could do) its work."""
        if self._trouble:
            return Verdict(False, "; ".join(f"{what}: {why}" for what, why in self._trouble.items()))
        if self._listed is None:
            return Verdict(False, "the cluster has not been listed yet")
        if not leading:
            return self._fresh("standby: last list", self._listed)
        if self._passed is None:
            return Verdict(False, "no pass has succeeded yet")
        return self._fresh("last successful pass", self._passed)

    def _fresh(self, what: str, when: float) -> Verdict:
        age = self._clock() - when
        return Verdict(age <= self._patience, f"{what} {age:.0f} s ago")
