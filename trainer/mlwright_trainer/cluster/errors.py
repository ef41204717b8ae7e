"""What the cluster backend raises, in the trainer's one hierarchy.

MlwrightError
├── UserError
│   └── ClusterRefused       the user can mend it: rights, a missing CRD, a task that is not ready, a taken name
└── InternalError
    └── ClusterUnavailable   nobody answers, or what answers cannot be understood

ApiFailure is what the port to the API server raises; nobody outside of this package sees it.
"""

from __future__ import annotations

from mlwright_trainer.errors import InternalError, UserError


class ClusterRefused(UserError):
    """The cluster said no, and will until somebody changes something."""


class ClusterUnavailable(InternalError):
    """The cluster does not answer, or not so that it can be understood."""


class ApiFailure(Exception):
    """The API server did not do what it was asked.

    `status` is the HTTP code, 0 where nobody answered; `reason` is the API's word (AlreadyExists, Expired, ...);
    `retry_after` is in seconds, where the server said so.
    """

    def __init__(
        self, message: str, *, status: int, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def passing(self) -> bool:
        """Whether the same request may well succeed later: nobody answered, overload, a quota that is used up."""
        if self.status == 403:
            return "exceeded quota" in str(self)
        return self.status in (0, 408, 429) or self.status >= 500

    @property
    def gone(self) -> bool:
        """There is no such object."""
        return self.status == 404

    @property
    def expired(self) -> bool:
        """The resourceVersion is too old to watch from."""
        return self.status == 410

    @property
    def conflict(self) -> bool:
        """The name is taken, or the object is not the one that was meant."""
        return self.status == 409
