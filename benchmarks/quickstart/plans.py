"""The plan of an arm: the quickstart's run file with another seed and, for the second task, another task."""

from __future__ import annotations

from typing import Any

from mlwright_api.base import ObjectMeta
from mlwright_api.manifests import dump_manifest
from mlwright_api.trainingrun import TrainingRun, TrainingRunSpec
from mlwright_trainer.runs.folder import write_whole
from mlwright_trainer.runs.plan import RunPlan, load_plan, recorded_run

from benchmarks.quickstart.settings import RUN_FILE, TASKS, Job, Settings, Sizes


def plan_of(settings: Settings, job: Job) -> RunPlan:
    """The plan of `job`, read back from a run file beside its folder (so `mlwright run` can take it too).

    Raises UserError where the task is not prepared.
    """
    folder = settings.folder(job)
    folder.parent.mkdir(parents=True, exist_ok=True)
    file = folder.with_name(f"{folder.name}.yaml")
    write_whole(file, dump_manifest(varied(recorded_run(RUN_FILE), job, settings.sizes)).encode())
    return load_plan(file, task_folders={job.task: TASKS / job.task})


def varied(run: TrainingRun, job: Job, sizes: Sizes) -> TrainingRun:
    """The quickstart as `job` has it; all that differs is name, seed and task, and for a try the sizes."""
    spec = run.spec.model_copy(
        update={
            "seed": job.seed,
            "tasks": [run.spec.tasks[0].model_copy(update={"name": job.task})],
            **_resized(run.spec, sizes),
        }
    )
    name = f"{run.metadata.name}-{job.task}-{job.arm}-{job.seed}"
    return run.model_copy(update={"metadata": ObjectMeta(name=name), "spec": spec})


def _resized(spec: TrainingRunSpec, sizes: Sizes) -> dict[str, Any]:
    batch = sizes.batch or spec.algorithm.batch_size
    algorithm = {
        "updates": sizes.updates or spec.algorithm.updates,
        "batch_size": batch,
        "minibatch_size": min(filter(None, (spec.algorithm.minibatch_size, batch)), default=None),
    }
    evaluation = {"samples": sizes.samples or spec.evaluation.samples}
    assert spec.fine_tuning is not None
    tuning = {"count": sizes.examples or spec.fine_tuning.count}
    return {
        "algorithm": spec.algorithm.model_copy(update=algorithm),
        "evaluation": spec.evaluation.model_copy(update=evaluation),
        "fine_tuning": spec.fine_tuning.model_copy(update=tuning),
    }
