"""Names, labels and owners of what the operator makes: derived, valid, and never a user's."""

from __future__ import annotations

import hashlib
import re

from mlwright_api.base import API_VERSION, GROUP
from mlwright_api.rollout import RolloutSpec

from mlwright_operator import labels
from mlwright_operator.actions import Kind, Ref

JOB_REQUEST = f"{GROUP}/job"
FILES_REQUEST = f"{GROUP}/files"
TASK_REQUEST = f"{GROUP}/task"

_NAME_CHARACTERS = 40
_LABEL_CHARACTERS = 63
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_OWNER_KINDS = {Kind.ROLLOUT, Kind.TASK}


def job_name(owner: Ref, attempt: int) -> str:
    """The one name of an owner's n-th Job: a DNS label of at most 55 characters, for attempts below 100,000."""
    readable = owner.name[:_NAME_CHARACTERS].replace(".", "-").strip("-")
    return f"{readable}-{hashlib.sha256(owner.uid.encode()).hexdigest()[:8]}-{attempt}"


def label_value(text: str) -> str:
    """`text` where it is a valid label value, as every uid of an API server is; else a digest of it."""
    if len(text) <= _LABEL_CHARACTERS and _LABEL_VALUE.fullmatch(text):
        return text
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:_LABEL_CHARACTERS]


def sandbox_labels(owner: Ref, spec: RolloutSpec, attempt: int) -> dict[str, str]:
    """Of a Rollout's Job and pod."""
    mine = _labels(labels.SANDBOX, attempt) | {labels.ROLLOUT_UID: label_value(owner.uid)}
    if spec.run_ref is not None:
        mine[labels.RUN_UID] = label_value(spec.run_ref.uid)
    return mine


def task_check_labels(owner: Ref, attempt: int) -> dict[str, str]:
    """Of the Job and the pod that grade a task's sample submission."""
    return _labels(labels.TASK_CHECK, attempt) | {labels.TASK_UID: label_value(owner.uid)}


def _labels(part: str, attempt: int) -> dict[str, str]:
    return {labels.MANAGED_BY: labels.MANAGER, labels.PART: part, labels.ATTEMPT: str(attempt)}


def owner_reference(owner: Ref) -> dict[str, object]:
    """Garbage collection follows the owner; its deletion does not wait for us."""
    assert owner.kind in _OWNER_KINDS
    return {
        "apiVersion": API_VERSION,
        "kind": owner.kind.value,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
