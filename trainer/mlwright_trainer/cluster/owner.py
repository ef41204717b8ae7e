"""Whose rollouts these are, and the names and labels that follow from it: the same after every restart."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass

from mlwright_api.base import GROUP
from mlwright_api.rollout import RunReference

RUN_LABEL = f"{GROUP}/run-uid"
"""On Rollouts of a TrainingRun."""
SESSION_LABEL = f"{GROUP}/session"
"""On Rollouts of one call of a command."""
_PREFIX_CHARACTERS = 24
_ROLLOUT_CHARACTERS = 24
_DIGEST_CHARACTERS = 10


@dataclass(frozen=True)
class Owner:
    """A TrainingRun (then `uid` is its own), or one call of a command (then `uid` is made up for it)."""

    name: str
    uid: str
    is_run: bool = True

    @property
    def run_ref(self) -> RunReference | None:
        """As the spec of its rollouts has it."""
        return RunReference(name=self.name, uid=self.uid) if self.is_run else None

    @property
    def label(self) -> str:
        """The key of the label that all its rollouts carry; the value is `uid`."""
        return RUN_LABEL if self.is_run else SESSION_LABEL

    @property
    def selector(self) -> str:
        """The label selector that finds its rollouts."""
        return f"{self.label}={self.uid}"

    def object_name(self, rollout: str) -> str:
        """The name of a rollout's object, a DNS label of at most 60 characters: readable, and one of its own.

        Derived from the owner's uid and the rollout's id alone: whoever creates it again after a crash meets it.
        """
        digest = hashlib.sha256(f"{self.uid}/{rollout}".encode()).hexdigest()[:_DIGEST_CHARACTERS]
        parts = (_readable(self.name, _PREFIX_CHARACTERS), _readable(rollout, _ROLLOUT_CHARACTERS), digest)
        return "-".join(part for part in parts if part)


def one_call(name: str) -> Owner:
    """The owner of what one call of a command starts; never the same twice."""
    return Owner(name=name, uid=secrets.token_hex(8), is_run=False)


def _readable(text: str, most: int) -> str:
    """`text` as a part of a DNS label; may be empty."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower())[:most].strip("-")
