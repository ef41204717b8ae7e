"""From a run's record to its report: the pure layer under JSON and page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mlwright_api.trainingrun import ModelSource

from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import CLOSED
from mlwright_trainer.report.best import best_reports, scores_report
from mlwright_trainer.report.durations import duration_report
from mlwright_trainer.report.folder import RunRecord, command_argument, read_run
from mlwright_trainer.report.fresh import fresh_report
from mlwright_trainer.report.model import (
    BestScript,
    Report,
    RolloutCounts,
    RunReport,
    RunState,
    Scores,
    Seconds,
    SeveralRuns,
    TaskReport,
    Trained,
)
from mlwright_trainer.report.notes import no_valid_script, run_notes
from mlwright_trainer.report.scale import RunScale, TaskScale
from mlwright_trainer.report.scripts import (
    Families,
    milestone_reaches,
    prompt_kind_reports,
    reason_reports,
    scripts_report,
)
from mlwright_trainer.report.seeds import seed_summary
from mlwright_trainer.report.tallies import by_outcome, distinct_scripts, grouped
from mlwright_trainer.report.updates import update_reports

VERSION = "version/"
"""What facts that hold a software version begin with."""


def load_report(folders: Sequence[Path]) -> Report:
    """A RunReport of one run folder, or SeveralRuns.

    Raises UserError where a folder holds no run or is named twice.
    """
    if not folders:
        raise UserError("name at least one folder of a run")
    places = [folder.resolve() for folder in folders]
    for folder, place in zip(folders, places, strict=True):
        if places.count(place) > 1:
            raise UserError(f"{folder}: named twice; a run counts once")
    runs = [run_report(read_run(folder)) for folder in folders]
    return runs[0] if len(runs) == 1 else SeveralRuns(runs=runs, seeds=seed_summary(runs))


def run_report(record: RunRecord) -> RunReport:
    """Compute everything that is told of one run."""
    spec, train, family = record.run.spec, record.of("Train"), Families()
    bests = best_reports(record, family)
    state, counts, reasons = run_state(record), _counts(record), reason_reports(record.rollouts)
    return RunReport(
        name=record.run.metadata.name,
        folder=record.folder.resolve().name,
        argument=command_argument(record.folder, Path.cwd()),
        state=state,
        final_reads=len(record.sealed),
        seed=spec.seed,
        model=model_name(spec.model.source),
        started_at=record.sessions[0][0] if record.sessions else None,
        updated_at=record.last_written_at,
        updates=record.published,
        planned_updates=spec.algorithm.updates,
        rollouts=counts,
        trained=_trained(record),
        score_scale=record.scale.described,
        per_update=update_reports(record, family),
        fresh=fresh_report(record.rollouts, record.sealed, record.scale),
        scores=_run_scores(record, bests),
        best_scripts=bests,
        tasks=[_task(record, scale, bests) for scale in record.scale.tasks.values()],
        durations=duration_report(train, record.windows, published=record.published),
        milestones=milestone_reaches(record.rollouts),
        prompt_kinds=prompt_kind_reports(train, record.scale),
        scripts=scripts_report(train, record.scale, family),
        reasons=reasons,
        weights_digest=record.updates[-1].digest if record.updates else None,
        initial_weights_digest=next((each.digest for each in record.updates if each.version == 0), None),
        seconds=seconds_report(record),
        sessions=len(record.sessions),
        versions=versions_of(record.facts),
        facts={key: value for key, value in record.facts.items() if not key.startswith(VERSION)},
        notes=[*no_valid_script(state, counts, reasons), *run_notes(record, bests)],
        settings=record.run.model_dump(mode="json", by_alias=True, exclude_none=True),
        settings_text=record.settings_text,
    )


def run_state(record: RunRecord) -> RunState:
    """How far a run has come, by what it has written."""
    if CLOSED in record.facts:
        return RunState.SEALED
    if record.published >= record.run.spec.algorithm.updates and _closing_samples_ended(record):
        return RunState.FINISHED
    if record.sessions and record.sessions[-1][1] is not None:
        return RunState.STOPPED
    return RunState.OPEN


def _closing_samples_ended(record: RunRecord) -> bool:
    rows = record.of("After")
    if not rows:
        return not record.run.spec.evaluation.samples
    return all(row.outcome is not None for row in rows)


def model_name(source: ModelSource) -> str:
    """What a person would call the model."""
    if source.scratch is not None:
        return f"{source.scratch.config.get('model_type', 'model')} made from scratch"
    if source.claim is not None:
        return f"claim {source.claim.name}"
    return source.hub or source.image or source.path or ""


def _counts(record: RunRecord) -> RolloutCounts:
    groups = grouped(record.rollouts, lambda row: row.purpose)
    return RolloutCounts(
        total=len(record.rollouts),
        open=sum(row.outcome is None for row in record.rollouts),
        by_outcome=by_outcome(record.rollouts),
        by_purpose={str(purpose): len(rows) for purpose, rows in groups.items()},
    )


def _trained(record: RunRecord) -> Trained:
    rows = [row for row in record.rollouts if row.batch is not None and row.batch < record.published]
    return Trained(
        rows=sum(size for number, size in record.batch_sizes.items() if number < record.published),
        distinct=len({row.id for row in rows}),
        distinct_scripts=distinct_scripts(rows),
    )


def _run_scores(record: RunRecord, bests: Sequence[BestScript]) -> Scores:
    """Of the first task that has a best script; without one, of the first task."""
    name = bests[0].task if bests else next(iter(record.scale.tasks))
    return scores_report(record.scale.tasks[name], bests[0] if bests else None)


def _task(record: RunRecord, scale: TaskScale, bests: Sequence[BestScript]) -> TaskReport:
    rows = [row for row in record.rollouts if row.task == scale.name]
    return TaskReport(
        name=scale.name,
        title=scale.spec.title if scale.spec else scale.name,
        metric=scale.info.name if scale.info else None,
        metric_title=scale.info.title if scale.info else "",
        direction=scale.direction,
        baseline=scale.baseline,
        reference=scale.reference,
        rollouts=len(rows),
        fresh=fresh_report(rows, record.sealed, RunScale({scale.name: scale})),
        scores=scores_report(scale, next((best for best in bests if best.task == scale.name), None)),
    )


def seconds_report(record: RunRecord) -> Seconds:
    """Where the wall time of all processes went; phases may overlap, then `other` is 0."""
    phases = record.phase_seconds
    total = sum(record.lived)
    return Seconds(
        total=total,
        sampling=phases.get("sampling", 0.0),
        execution=phases.get("execution", 0.0),
        learning=phases.get("learning", 0.0),
        fine_tuning=phases.get("fineTuning", 0.0),
        sealed=phases.get("sealed", 0.0),
        other=max(0.0, total - sum(phases.values())),
    )


def versions_of(facts: Mapping[str, str]) -> dict[str, str]:
    """Software versions by name."""
    return {key.removeprefix(VERSION): value for key, value in facts.items() if key.startswith(VERSION)}
