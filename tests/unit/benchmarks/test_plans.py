"""An arm's plan is the quickstart's, but for seed and task."""

from __future__ import annotations

from mlwright_api.manifests import dump_manifest, parse_manifests, wire
from mlwright_api.presets import resolve
from mlwright_api.trainingrun import TrainingRun
from mlwright_trainer.runs.plan import differences, recorded_run

from benchmarks.quickstart.plans import varied
from benchmarks.quickstart.settings import RUN_FILE, Arm, Job, Sizes

WHOLE = Sizes()


def plan(task: str = "churn", sizes: Sizes = WHOLE) -> TrainingRun:
    return varied(recorded_run(RUN_FILE), Job(4, task, Arm.RL), sizes)


def changed(run: TrainingRun) -> set[str]:
    return {line.split(":")[0] for line in differences(wire(run.spec), wire(recorded_run(RUN_FILE).spec))}


def test_the_first_task_s_arm_differs_from_the_quickstart_in_its_seed_alone() -> None:
    assert changed(plan()) == {"spec.seed"}
    assert plan().spec.seed == 4


def test_the_second_task_s_arm_differs_in_the_task_too() -> None:
    assert changed(plan("credit")) == {"spec.seed", "spec.tasks"}
    assert [task.name for task in plan("credit").spec.tasks] == ["credit"]


def test_the_quickstart_is_what_the_controls_are_made_for() -> None:
    """Drafts only, whole rounds, a learning rate that does not depend on the number of updates."""
    spec = resolve(recorded_run(RUN_FILE).spec)
    assert spec.prompts.improve_fraction == 0
    assert spec.collection.mode == "Synchronous"
    assert (spec.algorithm.scheduler.kind, spec.algorithm.scheduler.warmup_updates) == ("Constant", 0)
    assert (spec.algorithm.updates, spec.algorithm.batch_size, spec.evaluation.samples) == (16, 48, 256)


def test_a_try_is_smaller_and_can_still_be_carried_out() -> None:
    spec = resolve(plan(sizes=Sizes(updates=2, batch=6, samples=8, examples=100)).spec)
    assert (spec.algorithm.updates, spec.algorithm.batch_size, spec.evaluation.samples) == (2, 6, 8)
    assert spec.algorithm.minibatch_size == 6
    assert spec.fine_tuning is not None
    assert spec.fine_tuning.count == 100


def test_the_plan_survives_being_written_and_read() -> None:
    run = plan("credit")
    assert parse_manifests(dump_manifest(run), source="arm.yaml") == [run]
    assert run.metadata.name == "quickstart-credit-rl-4"
