"""What can go wrong in the operator, in one hierarchy."""

from __future__ import annotations


class OperatorError(Exception):
    """Any failure that the operator names; one line, for a person."""


class ConfigError(OperatorError):
    """The operator's own configuration cannot be used."""


class ApiFailure(OperatorError):
    """The API server did not do what it was asked; `status` is its HTTP code, 0 where it did not answer."""

    def __init__(self, message: str, *, status: int, reason: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason

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
