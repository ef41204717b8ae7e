"""What can go wrong in the operator, in one hierarchy.

OperatorError
├── ConfigError      our own configuration cannot be used
├── ApiFailure       the API server refused, or did not answer
├── WritesClosed     this process may not write (any more, or yet)
└── LeaseLost        another process leads
"""

from __future__ import annotations


class OperatorError(Exception):
    """Any failure that the operator names; one line, for a person."""


class ConfigError(OperatorError):
    """The operator's own configuration cannot be used."""


class WritesClosed(OperatorError):
    """A write was asked for while this process does not hold the lease, or is stopping: nothing was sent."""


class LeaseLost(OperatorError):
    """Another process leads by now: this one must end, since what it knows may be old."""


class ApiFailure(OperatorError):
    """The API server did not do what it was asked; `status` is its HTTP code, 0 where it did not answer."""

    def __init__(
        self, message: str, *, status: int, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        """Of the Status object (`Conflict`, `AlreadyExists`, ...), or of its first cause where there is one that says
        more (`NamespaceTerminating`)."""
        self.retry_after = retry_after
        """Seconds that the API server asked us to wait."""

    @property
    def gone(self) -> bool:
        """The object (or its namespace) does not exist."""
        return self.status == 404

    @property
    def conflict(self) -> bool:
        """We planned from a stale read, or the name belongs to another object by now."""
        return self.status == 409

    @property
    def refused(self) -> bool:
        """Asking again will not help until somebody changes something: quota, policy, validation, rights."""
        return self.status in (400, 403, 422)

    @property
    def unavailable(self) -> bool:
        """Nothing is wrong with the request: the API server is away, overloaded or failing."""
        return self.status == 0 or self.status == 429 or self.status >= 500
