"""`mlwright replay`: recompute a run's weights from its ledger, without a sandbox or an engine."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from mlwright_api.presets import resolve
from mlwright_api.trainingrun import DurationWeighting, WeightingMode
from rich.console import Console

from mlwright_trainer.command.live import live_progress
from mlwright_trainer.command.options import JsonOption, RunArgument
from mlwright_trainer.errors import InternalError, UserError
from mlwright_trainer.exchange import Batch
from mlwright_trainer.ledger import LedgerReader, UpdateRow
from mlwright_trainer.progress import Progress
from mlwright_trainer.runs.folder import RunFolder, open_run
from mlwright_trainer.runs.plan import recorded_run


def register(app: typer.Typer) -> None:
    app.command(name="replay")(replay)


def replay(
    directory: RunArgument,
    weighting: Annotated[
        WeightingMode | None,
        typer.Option(help="Learn with other duration weights, on the same rows: what would have been?"),
    ] = None,
    updates: Annotated[
        int | None, typer.Option(min=1, help="Replay only the first so many updates.", show_default="all")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Recompute the weights from weights/0, run.yaml and the ledger alone, and compare their digest with the run's.

    Exit 1 if the digests differ although nothing was asked to be different.
    """
    folder = open_run(directory)
    with LedgerReader(folder.ledger) as ledger:
        answer = _answer(folder, ledger, weighting=weighting, updates=updates, quiet=as_json)
    if as_json:
        typer.echo(json.dumps(answer))
    else:
        _tell(answer)
    if weighting is None and not answer["equal"]:
        raise InternalError(
            "the replayed digest is not the run's: another machine or version of torch, or a changed ledger"
        )


def _answer(
    folder: RunFolder,
    ledger: LedgerReader,
    *,
    weighting: WeightingMode | None,
    updates: int | None,
    quiet: bool,
) -> dict[str, Any]:
    from mlwright_trainer.learning.replay import replay as recompute  # torch takes seconds to import

    published = ledger.updates()
    count = min(updates or len(published) - 1, len(published) - 1)
    if count < 1:
        raise UserError(f"{folder.path}: no update has been published yet; there is nothing to replay")
    spec = resolve(recorded_run(folder.run_file).spec)
    with (
        tempfile.TemporaryDirectory(prefix="mlwright-replay-") as scratch,
        live_progress(Console(stderr=True, quiet=quiet)) as progress,
    ):
        progress.stage(f"replaying {count} updates", count)
        result = recompute(
            spec=spec,
            initial=folder.initial_weights,
            batches=lambda number: _batch(ledger, number, progress),
            updates=count,
            scratch=Path(scratch),
            weighting=None if weighting is None else _weighting(spec.algorithm.duration_weighting, weighting),
            threads=_threads(published[1]),
            progress=progress,
        )
    return {
        "updates": count,
        "weighting": weighting or spec.algorithm.duration_weighting.mode,
        "weightsDigest": result.digests[-1],
        "runDigest": published[count].digest,
        "equal": result.digests[-1] == published[count].digest,
        "perUpdate": [
            {"version": version, "digest": digest, "equal": digest == published[version].digest}
            for version, digest in enumerate(result.digests)
        ],
    }


def _batch(ledger: LedgerReader, number: int, progress: Progress) -> Batch:
    progress.advance(number)
    batch = ledger.batch(number)
    if batch is None:
        raise InternalError(f"the ledger has no batch {number}")
    return batch


def _weighting(spec: DurationWeighting, mode: WeightingMode) -> DurationWeighting:
    return spec.model_copy(update={"mode": mode, "force": True})


def _threads(update: UpdateRow) -> int | None:
    threads = update.metrics.get("threads")
    return None if threads is None else int(threads)


def _tell(answer: dict[str, Any]) -> None:
    typer.echo(f"replayed {answer['updates']} updates, duration weights {answer['weighting']}")
    typer.echo(f"weightsDigest {answer['weightsDigest']}")
    if answer["equal"]:
        typer.echo("equal to the run's own")
    else:
        typer.echo(f"the run's own is {answer['runDigest']}")
