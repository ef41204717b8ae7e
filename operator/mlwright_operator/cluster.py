"""The port to the API server: everything that the operator does to the world goes through it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from mlwright_operator.actions import Action


class Cluster(Protocol):
    """Carries out one action; the real one speaks to an API server, the tests' one keeps objects in memory."""

    async def carry_out(self, action: Action) -> Mapping[str, Any] | None:
        """The object as the API server returned it (None for deletions and events). Errors: ApiFailure."""
        ...
