"""Slots in use: one for each object that has a Job, or a pod that has not ended, whatever else is true of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from mlwright_operator.observed import Observed, SeenJob, SeenPod, SeenRollout, SeenTask
from mlwright_operator.planning.admission import Group
from mlwright_operator.sandbox import label_value


@dataclass(frozen=True)
class Slots:
    """By whom they are held: pods that are terminating and Jobs of Rollouts that are gone hold theirs, too."""

    holders: frozenset[str]
    """Uids of the owners."""
    by_group: Mapping[Group, int]


def slots_in_use(observed: Observed) -> Slots:
    """Counted from Jobs and pods alone."""
    holding: dict[str, SeenJob | SeenPod] = {
        uid: pod for uid, pods in observed.pods.items() for pod in pods if pod.job_uid and not pod.over
    }
    holding |= {uid: jobs[-1] for uid, jobs in observed.jobs.items() if jobs}
    return Slots(frozenset(holding), Counter(map(group_of_child, holding.values())))


def group_of_child(child: SeenJob | SeenPod) -> Group:
    """As group_of its owner, from the labels."""
    if child.part == "task-check":
        return Group("checks", child.ref.namespace)
    return _group(child.ref.namespace, child.run_uid)


def group_of(owner: SeenRollout | SeenTask) -> Group:
    """With whom an object shares its slots."""
    if isinstance(owner, SeenTask):
        return Group("checks", owner.ref.namespace)
    return _group(owner.ref.namespace, label_value(owner.run_uid) if owner.run_uid else "")


def _group(namespace: str, run_uid: str) -> Group:
    return Group("run", f"{namespace}/{run_uid}") if run_uid else Group("namespace", namespace)
