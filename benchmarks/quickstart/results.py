"""The results as they stand: computed anew from the run folders, written as JSON and as a table."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from mlwright_api.base import ApiModel
from mlwright_trainer.runs.folder import write_whole

from benchmarks.quickstart.comparison import (
    PairedDifference,
    Summary,
    differences,
    require_shared_start,
    summaries,
)
from benchmarks.quickstart.records import ArmRecord, arm_record, software
from benchmarks.quickstart.settings import Job, Settings
from benchmarks.quickstart.state import is_finished
from benchmarks.quickstart.unseen import Unseen

COMMAND = "make bench-quickstart"


class Unfinished(ApiModel):
    """An arm that there is no result of, and why."""

    job: str
    reason: str


class Results(ApiModel):
    """Everything that the benchmark has found so far."""

    command: str = COMMAND
    planned: int
    finished: int
    unfinished: list[Unfinished]
    rejection_rate: float
    sizes: dict[str, int]
    """Counts that differ from the quickstart's; none in a real benchmark."""
    cores: int
    versions: dict[str, list[str]]
    unseen: list[Unseen]
    summaries: list[Summary]
    differences: list[PairedDifference]
    arms: list[ArmRecord]


def collect(
    settings: Settings,
    *,
    failures: Mapping[Job, str],
    unseen: list[Unseen],
    known: dict[Job, ArmRecord] | None = None,
) -> Results:
    """Read every finished arm (`known` remembers those that were read before; a closed run never changes)."""
    jobs, known = settings.jobs(), {} if known is None else known
    done = [job for job in jobs if job in known or is_finished(settings, job)]
    for job in done:
        known[job] = known.get(job) or arm_record(settings, job)
    records = [known[job] for job in done]
    require_shared_start(records)
    return Results(
        planned=len(jobs),
        finished=len(done),
        unfinished=[
            Unfinished(job=str(job), reason=failures.get(job, "not carried out yet"))
            for job in jobs
            if job not in done
        ],
        rejection_rate=settings.rejection_rate,
        sizes={name: size for name, size in vars(settings.sizes).items() if size is not None},
        cores=len(os.sched_getaffinity(0)),
        versions=software(settings, done),
        unseen=unseen,
        summaries=summaries(records),
        differences=differences(records),
        arms=records,
    )


def write_results(results: Results, table: str, folder: Path) -> None:
    """quickstart.json and quickstart.md in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    document = results.model_dump_json(by_alias=True, indent=2)
    write_whole(folder / "quickstart.json", f"{document}\n".encode())
    write_whole(folder / "quickstart.md", table.encode())
