"""Opening a run's ledger: a new run, or one that goes on, with a session of this process around the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mlwright_api.manifests import wire

from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import Ledger, LedgerReader
from mlwright_trainer.runs.folder import RunFolder, write_whole
from mlwright_trainer.runs.plan import RunPlan, differences, recorded_run
from mlwright_trainer.runs.versions import software_versions


@contextmanager
def opened_ledger(plan: RunPlan, folder: RunFolder, *, resume: bool) -> Iterator[Ledger]:
    """The ledger of `plan` in a locked folder.

    Raises UserError where the folder holds a run and `resume` is False, and where what it holds is another run,
    was made from other tasks, or is closed and asked for more updates. Nothing is written before that is known.
    """
    with _continued(plan, folder) if resume and folder.holds_a_run else _begun(plan, folder) as ledger:
        ledger.set_facts({f"version/{name}": version for name, version in software_versions().items()})
        session = ledger.start_session()
        ending = "failed"
        try:
            yield ledger
            ending = "finished"
        except KeyboardInterrupt:
            ending = "interrupted"
            raise
        finally:
            ledger.end_session(session, ending)


def _begun(plan: RunPlan, folder: RunFolder) -> Ledger:
    """The ledger comes last and at once: a folder holds a run when it is there."""
    if folder.holds_a_run:
        _discard_if_empty(folder)
    text = plan.dump().encode()
    if folder.run_file.exists() and folder.run_file.read_bytes() != text:
        raise UserError(f"{folder.run_file}: is there and belongs to no run; choose another --dir")
    write_whole(folder.run_file, text)
    return Ledger.create(folder.ledger, {"name": plan.name, **_tasks(plan)})


def _discard_if_empty(folder: RunFolder) -> None:
    """A run that ended before its initial weights were made, for a wrong setting say, holds nothing to lose."""
    with LedgerReader(folder.ledger) as ledger:
        empty = not ledger.updates() and not ledger.rollouts()
    if not empty or folder.initial_weights.exists():
        raise UserError(
            f"{folder.path}: holds a run already; continue it with --resume, or choose another --dir"
        )
    folder.run_file.unlink(missing_ok=True)
    for path in folder.path.glob(f"{folder.ledger.name}*"):
        path.unlink()


def _continued(plan: RunPlan, folder: RunFolder) -> Ledger:
    ledger = Ledger(folder.ledger)
    try:
        _require_same(plan, folder, ledger)
        _require_same_horizon(plan, folder)
        _require_open(plan, folder, ledger)
    except BaseException:
        ledger.close()
        raise
    write_whole(folder.run_file, plan.dump().encode())
    return ledger


def _require_same(plan: RunPlan, folder: RunFolder, ledger: Ledger) -> None:
    began = recorded_run(folder.run_file)
    if began.metadata.name != plan.name:
        raise UserError(
            f"{folder.path}: holds the run {began.metadata.name!r}, not {plan.name!r}; choose another --dir"
        )
    changed = differences(wire(plan.spec), wire(began.spec))
    changed = [change for change in changed if not change.startswith("spec.algorithm.updates:")]
    changed += [
        f"{name}: its task.yaml" for name, digest in _tasks(plan).items() if ledger.fact(name) != digest
    ]
    if changed:
        raise UserError(
            f"{folder.path}: this run began otherwise ({'; '.join(changed[:3])}); "
            "restore what has changed, or start a new run in another --dir"
        )


def _require_same_horizon(plan: RunPlan, folder: RunFolder) -> None:
    """Learning rates that fall towards the last update would have been others from the start."""
    kind, began = plan.spec.algorithm.scheduler.kind, recorded_run(folder.run_file).spec.algorithm.updates
    if kind != "Constant" and plan.updates != began:
        raise UserError(
            f"{folder.path}: algorithm.scheduler.kind {kind} was planned for {began} updates; "
            f"{plan.updates} need a new run"
        )


def _require_open(plan: RunPlan, folder: RunFolder, ledger: Ledger) -> None:
    examined = ledger.closed or ledger.rounds("After") > 0
    if examined and plan.updates > ledger.batches():
        raise UserError(
            f"{folder.path}: this run is closed: its final samples are taken, so more updates would learn after "
            "the exam; start a new run in another --dir"
        )


def _tasks(plan: RunPlan) -> dict[str, str]:
    """Facts that tell whether a task has changed since the run began."""
    return {f"task {name}": task.digest for name, task in plan.tasks.items()}
