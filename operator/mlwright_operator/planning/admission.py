"""Who gets the next free slot: the group with the fewest sandboxes per weight, within a group the oldest first.

A group is a run; Rollouts without a run are one group a namespace, and so are the checks of a namespace's tasks.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from mlwright_operator.config import AdmissionLimits


@dataclass(frozen=True)
class Group:
    """What shares are counted by."""

    kind: str
    """`run`, `namespace` or `checks`."""
    name: str


@dataclass(frozen=True)
class Candidate:
    """An object that wants its next Job."""

    uid: str
    group: Group
    created_at: datetime
    weight: float = 1.0
    holds: bool = False
    """It has a slot already (a further attempt): its next Job takes the place of the last."""


def admitted(
    candidates: Iterable[Candidate], holding: Mapping[Group, int], limits: AdmissionLimits
) -> frozenset[str]:
    """The uids that may have a Job now. `holding`: slots in use by group, those of `holds` included.

    Limits never admit more, and never take a slot away. O(n log n) in the number of candidates.
    """
    everybody = list(candidates)
    kept = frozenset(each.uid for each in everybody if each.holds)
    queues = _queues(each for each in everybody if not each.holds)
    used = defaultdict(int, holding)
    free = limits.sandboxes - sum(used.values())
    heap = [_turn(queue, used[group]) for group, queue in queues.items()]
    heapq.heapify(heap)
    chosen: list[str] = []
    while heap and len(chosen) < free:
        *_, group = heapq.heappop(heap)
        if used[group] >= limits.sandboxes_per_run:
            continue
        chosen.append(queues[group].pop().uid)
        used[group] += 1
        if queues[group]:
            heapq.heappush(heap, _turn(queues[group], used[group]))
    return kept | frozenset(chosen)


def _queues(waiting: Iterable[Candidate]) -> dict[Group, list[Candidate]]:
    """By group, the next one last."""
    queues: dict[Group, list[Candidate]] = defaultdict(list)
    for each in waiting:
        queues[each.group].append(each)
    for queue in queues.values():
        queue.sort(key=lambda each: (each.created_at, each.uid), reverse=True)
    return queues


def _turn(queue: list[Candidate], used: int) -> tuple[float, datetime, str, Group]:
    """Smallest first; the uid makes it unique."""
    following = queue[-1]
    return used / following.weight, following.created_at, following.uid, following.group
