"""Which earlier scripts a model may be asked to improve."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Parent:
    """A valid script of the same task, with what its author saw when it ran.

    `score` is on the Reward split (never Selection); `digest` is `syntax.tree_digest` of the script;
    `update` is the one that the script was sampled for.
    """

    id: str
    script: str
    score: float
    output_tail: str
    digest: str
    update: int


def parent_pool(candidates: Iterable[Parent], *, update: int, parent_updates: int) -> tuple[Parent, ...]:
    """What update number `update` may draw from: distinct scripts of the `parent_updates` before it.

    `candidates` are valid scripts of one task. Of scripts with the same syntax tree the latest is kept.
    The order depends on the scripts alone, not on the order in which a database gave them.
    """
    recent = (parent for parent in candidates if update - parent_updates <= parent.update < update)
    distinct = {parent.digest: parent for parent in sorted(recent, key=lambda each: (each.update, each.id))}
    return tuple(distinct[digest] for digest in sorted(distinct))
