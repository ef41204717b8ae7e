"""Reading a run's folder: run.yaml and the ledger, as plain records."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlwright_api.errors import ManifestError
from mlwright_api.manifests import load_manifests
from mlwright_api.mltask import MLTask
from mlwright_api.trainingrun import DurationWeighting, TrainingRun, WeightingMode

from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import LedgerReader, Purpose, RolloutRow, SealedScore, UpdateRow, WindowRow
from mlwright_trainer.report.scale import RunScale, TaskScale
from mlwright_trainer.rewards.weighting import duration_weights
from mlwright_trainer.runs.folder import RunFolder


@dataclass(frozen=True)
class RunRecord:
    """All that a report is computed from."""

    folder: Path
    run: TrainingRun
    settings_text: str
    scale: RunScale
    rollouts: Sequence[RolloutRow] = ()
    updates: Sequence[UpdateRow] = ()
    batch_sizes: dict[int, int] = field(default_factory=dict)
    effective_sizes: dict[int, float] = field(default_factory=dict)
    """By batch, where duration weights are in use."""
    windows: Sequence[WindowRow] = ()
    sealed: Sequence[SealedScore] = ()
    phase_seconds: dict[str, float] = field(default_factory=dict)
    sessions: Sequence[tuple[float, float | None, str]] = ()
    lived: Sequence[float] = ()
    """Seconds that each session lived."""
    last_written_at: float | None = None
    facts: dict[str, str] = field(default_factory=dict)
    best_file: str | None = None
    """best/script.py as it stands in the folder."""

    def of(self, purpose: Purpose) -> list[RolloutRow]:
        return [row for row in self.rollouts if row.purpose == purpose]

    @property
    def published(self) -> int:
        """How many updates are published."""
        return max((update.version for update in self.updates), default=0)


def command_argument(folder: Path, standing: Path) -> str:
    """The folder as a command's argument for a shell in `standing`: relative where it lies below, else absolute."""
    place, here = folder.resolve(), standing.resolve()
    text = str(place.relative_to(here) if place.is_relative_to(here) else place)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def read_run(folder: Path) -> RunRecord:
    """Read one run. Raises UserError where the folder holds none, LedgerError where its ledger is broken."""
    files = RunFolder(folder)
    needed = (files.run_file, files.ledger)
    if not folder.is_dir():
        names = " and ".join(file.name for file in needed)
        raise UserError(f"{folder}: no such folder; name the folder of a run (it holds {names})")
    for file in needed:
        if not file.is_file():
            raise UserError(f"{folder}: not a run's folder ({file.name} is missing)")
    run, tasks, text = _read_settings(files.run_file)
    with LedgerReader(files.ledger) as ledger:
        return _record(folder, run, text, tasks, ledger)


def _read_settings(path: Path) -> tuple[TrainingRun, dict[str, MLTask], str]:
    try:
        manifests = load_manifests(path)
        text = path.read_text(encoding="utf-8")
    except ManifestError as error:
        raise UserError(str(error)) from error
    runs = [manifest for manifest in manifests if isinstance(manifest, TrainingRun)]
    if len(runs) != 1:
        raise UserError(f"{path}: expected one TrainingRun, found {len(runs)}")
    tasks = {manifest.metadata.name: manifest for manifest in manifests if isinstance(manifest, MLTask)}
    return runs[0], tasks, text


def _record(
    folder: Path, run: TrainingRun, text: str, tasks: dict[str, MLTask], ledger: LedgerReader
) -> RunRecord:
    names = [task.name for task in run.spec.tasks]
    scales = {name: TaskScale.of(name, tasks[name].spec if name in tasks else None) for name in names}
    with ledger.snapshot():
        return RunRecord(
            folder=folder,
            run=run,
            settings_text=text,
            scale=RunScale(scales),
            rollouts=ledger.rollouts(),
            updates=ledger.updates(),
            batch_sizes=ledger.batch_sizes(),
            effective_sizes=_effective_sizes(ledger, run.spec.algorithm.duration_weighting),
            windows=ledger.windows(),
            sealed=ledger.sealed(),
            phase_seconds=ledger.phase_seconds(),
            sessions=ledger.sessions(),
            lived=_lived(ledger),
            last_written_at=ledger.last_written_at(),
            facts=ledger.facts(),
            best_file=_text_of(RunFolder(folder).best / "script.py"),
        )


def _lived(ledger: LedgerReader) -> list[float]:
    """A session without an end lived until the last thing that was written before the next one began."""
    sessions = ledger.sessions()
    following = [*(start for start, _, _ in sessions[1:]), math.inf]
    ends = [
        end if end is not None else ledger.last_written_at(before=next_start) or start
        for (start, end, _), next_start in zip(sessions, following, strict=True)
    ]
    return [max(0.0, end - start) for (start, _, _), end in zip(sessions, ends, strict=True)]


def _effective_sizes(ledger: LedgerReader, weighting: DurationWeighting) -> dict[int, float]:
    if weighting.mode is WeightingMode.NONE:
        return {}
    batches = [batch for number in ledger.batch_sizes() if (batch := ledger.batch(number)) is not None]
    return {batch.number: duration_weights(batch, weighting).effective_sample_size for batch in batches}


def _text_of(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
