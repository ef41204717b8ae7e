"""What a reader must know before believing the rest of a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlwright_api.rollout import Outcome

from mlwright_trainer.ledger import RolloutRow
from mlwright_trainer.report.folder import RunRecord
from mlwright_trainer.report.model import BestScript, ReasonReport, RolloutCounts, RunState
from mlwright_trainer.report.words import one_line, plural

_MANY_LOST = 0.02
"""Share of rollouts lost by the infrastructure above which it is worth a note."""


def run_notes(record: RunRecord, bests: Sequence[BestScript]) -> list[str]:
    """Every caveat that holds, the graver ones first."""
    return [
        *_isolation(record),
        *_tampering(record),
        *_losses(record),
        *_files(record, bests),
        *_knowledge(record),
    ]


def no_valid_script(state: RunState, counts: RolloutCounts, reasons: Sequence[ReasonReport]) -> Iterator[str]:
    """One sentence if scripts have ended and none was valid; reasons come most frequent first."""
    judged = {outcome: count for outcome, count in counts.by_outcome.items() if outcome.trained}
    if not judged or any(outcome.valid for outcome in judged):
        return
    among = f"among {plural(sum(judged.values()), 'rollout')}"
    so_far = "" if state in (RunState.SEALED, RunState.FINISHED) else " so far"
    yield f"No valid script{so_far} {among}: the most frequent reason was {_most_frequent(judged, reasons)}."


def _most_frequent(judged: Mapping[Outcome, int], reasons: Sequence[ReasonReport]) -> str:
    found = next((each for each in reasons if each.outcome.trained), None)
    if found is not None:
        return f"{one_line(found.reason)} ({found.outcome}, {plural(found.count, 'time')})"
    outcome = max(judged, key=lambda each: judged[each])
    return f"{outcome} ({plural(judged[outcome], 'time')})"


def _ran(record: RunRecord) -> list[RolloutRow]:
    return [row for row in record.rollouts if row.outcome is not None and row.outcome.executed]


def _isolation(record: RunRecord) -> Iterator[str]:
    ran = _ran(record)
    plain = sum(row.status.isolation is not None and row.status.isolation.backend == "Plain" for row in ran)
    bare = sum(row.status.isolation is None for row in ran)
    open_ = sum(row.status.isolation is not None and not row.status.isolation.isolated for row in ran) - plain
    if plain:
        yield f"{plural(plain, 'script')} ran as plain processes without isolation: their scores can be forged."
    if bare:
        yield f"{plural(bare, 'script')} ran without a receipt of isolation."
    if open_ > 0:
        yield f"{plural(open_, 'script')} ran where at least one check of the isolation receipt did not hold."


def _tampering(record: RunRecord) -> Iterator[str]:
    count = sum(row.outcome is Outcome.TAMPERED for row in record.rollouts)
    if count:
        yield f"{plural(count, 'rollout')} tampered with the sandbox's evidence; none of them was scored."


def _losses(record: RunRecord) -> Iterator[str]:
    lost = sum(row.outcome is Outcome.INFRASTRUCTURE_FAILED for row in record.rollouts)
    if lost > _MANY_LOST * len(record.rollouts):
        yield (
            f"{plural(lost, 'rollout')} of {len(record.rollouts):,} were lost by the infrastructure after all "
            "retries; they were never trained."
        )
    killed = sum(end is None for _, end, _ in record.sessions[:-1])
    if killed:
        yield f"{plural(killed, 'process', 'processes')} of this run ended without saying so and the run was resumed."


def _files(record: RunRecord, bests: Sequence[BestScript]) -> Iterator[str]:
    if record.best_file is None or len(bests) != 1:
        return
    if record.best_file.strip() != bests[0].source.strip():
        yield "best/script.py differs from the best script in the ledger; the ledger's is shown."


def _knowledge(record: RunRecord) -> Iterator[str]:
    unknown = [name for name, scale in record.scale.tasks.items() if scale.spec is None]
    if unknown:
        yield (
            f"run.yaml does not hold the task {', '.join(unknown)}: metric, direction and references are unknown, "
            "and no best script can be told."
        )
