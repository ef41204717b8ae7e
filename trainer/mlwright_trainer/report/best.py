"""The best script of each task: chosen by Selection among the top few by Reward, judged once on Final."""

from __future__ import annotations

from collections.abc import Mapping

from mlwright_api.mltask import Split

from mlwright_trainer.ledger import RolloutRow, SealedScore
from mlwright_trainer.report.folder import RunRecord
from mlwright_trainer.report.model import BestScript, ParentScript, Scores
from mlwright_trainer.report.scale import TaskScale
from mlwright_trainer.report.scripts import Families
from mlwright_trainer.runs.best import BEST, best_rollout


def best_reports(record: RunRecord, family: Families) -> list[BestScript]:
    """The best script of every task that has one: what the sealed grading read, else what would be chosen now."""
    by_id = {row.id: row for row in record.rollouts}
    sealed = {
        by_id[score.rollout].task: score
        for score in record.sealed
        if score.subject.split("/")[0] == BEST and score.rollout in by_id
    }
    found = []
    for name, scale in record.scale.tasks.items():
        row = by_id[sealed[name].rollout] if name in sealed else _chosen(record, scale)
        if row is not None:
            found.append(_best_script(row, sealed.get(name), by_id, family))
    return found


def _chosen(record: RunRecord, scale: TaskScale) -> RolloutRow | None:
    if scale.info is None:
        return None
    return best_rollout((row for row in record.rollouts if row.task == scale.name), scale.info)


def _best_script(
    row: RolloutRow, sealed: SealedScore | None, by_id: Mapping[str, RolloutRow], family: Families
) -> BestScript:
    scores = dict(row.status.scores)
    if sealed is not None and sealed.score is not None:
        scores[Split.FINAL] = sealed.score
    return BestScript(
        rollout=row.id,
        task=row.task,
        purpose=row.purpose,
        update=row.batch,
        policy_version=row.policy_version,
        family=family(row),
        source=row.script or "",
        scores=scores,
        final_interval=sealed.interval if sealed is not None else None,
        execution_seconds=row.status.seconds.execution,
        parent=_parent(row, by_id),
    )


def _parent(row: RolloutRow, by_id: Mapping[str, RolloutRow]) -> ParentScript | None:
    parent = by_id.get(row.parent or "")
    if parent is None or parent.script is None:
        return None
    return ParentScript(rollout=parent.id, source=parent.script, scores=dict(parent.status.scores))


def scores_report(scale: TaskScale | None, best: BestScript | None) -> Scores:
    """A best script's scores beside its task's references."""
    return Scores(
        task=scale.name if scale else None,
        metric=scale.info.name if scale and scale.info else None,
        direction=scale.direction if scale else None,
        baseline=scale.baseline if scale else None,
        reference=scale.reference if scale else None,
        best=best.scores if best else {},
        best_interval=best.final_interval if best else None,
    )
