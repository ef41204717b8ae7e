"""What can go wrong with the test cluster, as one hierarchy.

ClusterError
├── ProgramsMissing   something is not built or not installed: says what to do
├── CommandFailed     a program that was asked for something said no
└── StartFailed       a part of the cluster ended, or was not ready in time: carries the tail of its log
"""

from __future__ import annotations


class ClusterError(Exception):
    """Whatever is wrong with the test cluster."""


class ProgramsMissing(ClusterError):
    """Something is not built or not installed; the message says what to do."""


class CommandFailed(ClusterError):
    """A command ended with another status than 0; the message has its last words."""


class StartFailed(ClusterError):
    """A component ended, or was not ready in time; the message names it and has the tail of its log."""
