"""Sandbox pods from the outside: built by pure functions, proven hardened, and compared with what comes back."""

from mlwright_operator.sandbox.job import NotBuildable, sandbox_job, task_check_job, template
from mlwright_operator.sandbox.limits import limits_of, over
from mlwright_operator.sandbox.names import job_name, label_value
from mlwright_operator.sandbox.policy import network_policy
from mlwright_operator.sandbox.requests import sandbox_requests, task_check_requests, too_large
from mlwright_operator.sandbox.sameness import lacks_user_namespace, weakened

__all__ = [
    "NotBuildable",
    "job_name",
    "label_value",
    "lacks_user_namespace",
    "limits_of",
    "network_policy",
    "over",
    "sandbox_job",
    "sandbox_requests",
    "task_check_job",
    "task_check_requests",
    "template",
    "too_large",
    "weakened",
]
