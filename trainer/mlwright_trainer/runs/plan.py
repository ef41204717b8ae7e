"""A run's plan: the resolved TrainingRun and its tasks, from one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlwright_api.base import API_VERSION, ObjectMeta
from mlwright_api.errors import ManifestError
from mlwright_api.manifests import dump_manifest, load_manifests
from mlwright_api.mltask import MLTask
from mlwright_api.presets import DESIGN_DEFAULTS, resolve
from mlwright_api.trainingrun import TrainingRun, TrainingRunSpec

from mlwright_trainer.errors import UserError
from mlwright_trainer.generators import generator_named
from mlwright_trainer.rewards.reward import validate_reward
from mlwright_trainer.tasks.folder import TaskFolder, load_task

FOLDER_ANNOTATION = "mlwright.dev/folder"


@dataclass(frozen=True)
class RunPlan:
    """What `mlwright run` does: a resolved spec, and a folder for each of its tasks."""

    name: str
    spec: TrainingRunSpec
    tasks: Mapping[str, TaskFolder]

    @property
    def updates(self) -> int:
        return self.spec.algorithm.updates

    @property
    def batch_size(self) -> int:
        """Rows a round; where the clock closes the batch, how many samples are made at a time."""
        return self.spec.algorithm.batch_size or int(DESIGN_DEFAULTS["algorithm.batch_size"])

    def with_updates(self, updates: int | None) -> RunPlan:
        """The same plan with another number of updates (None: as it is)."""
        if updates is None:
            return self
        algorithm = self.spec.algorithm.model_copy(update={"updates": updates})
        return replace(self, spec=self.spec.model_copy(update={"algorithm": algorithm}))

    def dump(self) -> str:
        """The resolved run.yaml: the TrainingRun, then an MLTask with its folder for each task."""
        run = TrainingRun(
            api_version=API_VERSION, kind="TrainingRun", metadata=ObjectMeta(name=self.name), spec=self.spec
        )
        return "---\n".join(
            [dump_manifest(run), *(dump_manifest(_located(task)) for task in self.tasks.values())]
        )


def load_plan(file: Path, *, task_folders: Mapping[str, Path] | None = None) -> RunPlan:
    """Read a run file and its tasks, resolve every default, make local paths absolute, and check it as a whole.

    A task's folder is found by `task_folders`, by an MLTask in the file with the annotation mlwright.dev/folder,
    or at `<the file's folder>/<name>`. Raises UserError (what, where, what to do).
    """
    manifests = _read(file)
    run = _only_run(file, manifests)
    base = file.resolve().parent
    spec = _with_absolute_paths(resolve(run.spec), base)
    folders = {**_annotated(manifests, base), **(task_folders or {})}
    _require_known_names(file, folders, spec)
    tasks = {task.name: load_task(folders.get(task.name, base / task.name)) for task in spec.tasks}
    _require_one_machine(file, spec, tasks)
    _require_examples(file, spec, tasks)
    _check_tasks(spec, tasks)
    return RunPlan(name=run.metadata.name, spec=spec, tasks=tasks)


def _require_one_machine(file: Path, spec: TrainingRunSpec, tasks: Mapping[str, TaskFolder]) -> None:
    """Refuse what only a cluster can give, rather than do something else in silence."""
    if spec.inference.kind != "Transformers":
        raise UserError(
            f"{file}: spec.inference.kind {spec.inference.kind} is for a cluster; here: Transformers"
        )
    if spec.suspend:
        raise UserError(f"{file}: spec.suspend is true; set it to false to run")
    for task in tasks.values():
        if task.spec.limits.gpus:
            raise UserError(
                f"{task.root}: spec.limits.gpus is for a cluster; sandboxes of this machine have none"
            )
        if task.spec.limits.cpu.value > 1:
            raise UserError(
                f"{task.root}: spec.limits.cpu is above 1; on one machine each script has one core"
            )


def _require_examples(file: Path, spec: TrainingRunSpec, tasks: Mapping[str, TaskFolder]) -> None:
    """Fine-tuning has to be able to begin, and to teach scripts that the tasks can use."""
    if spec.fine_tuning is None:
        return
    source = spec.fine_tuning.examples
    if source.path is not None and not Path(source.path).is_file():
        raise UserError(f"{file}: spec.fineTuning.examples.path: {source.path} is not a file")
    if source.generator is None:
        return
    metric = generator_named(source.generator).metric
    for task in tasks.values():
        if task.spec.metric.name != metric or len(task.spec.submission.target_columns) != 1:
            raise UserError(
                f"{file}: spec.fineTuning.examples.generator {source.generator} writes scripts for binary tasks with "
                f"the metric {metric}; task {task.name} has {task.spec.metric.name}: give examples.path instead"
            )


def recorded_run(file: Path) -> TrainingRun:
    """The TrainingRun of a resolved run.yaml, its tasks not looked at."""
    return _only_run(file, _read(file))


def _only_run(file: Path, manifests: Sequence[object]) -> TrainingRun:
    runs = [manifest for manifest in manifests if isinstance(manifest, TrainingRun)]
    if len(runs) != 1:
        raise UserError(f"{file}: holds {len(runs)} TrainingRun documents; `mlwright run` takes exactly one")
    return runs[0]


def _read(file: Path) -> Sequence[object]:
    try:
        return load_manifests(file)
    except ManifestError as error:
        raise UserError(str(error)) from error
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from error


def _annotated(manifests: Sequence[object], base: Path) -> dict[str, Path]:
    return {
        manifest.metadata.name: base / manifest.metadata.annotations[FOLDER_ANNOTATION]
        for manifest in manifests
        if isinstance(manifest, MLTask) and FOLDER_ANNOTATION in manifest.metadata.annotations
    }


def _require_known_names(file: Path, folders: Mapping[str, Path], spec: TrainingRunSpec) -> None:
    names = [task.name for task in spec.tasks]
    unknown = sorted(set(folders) - set(names))
    if unknown:
        raise UserError(
            f"{file}: spec.tasks has no {unknown[0]!r} (it has {', '.join(names)}); see --task and MLTask"
        )


def _check_tasks(spec: TrainingRunSpec, tasks: Mapping[str, TaskFolder]) -> None:
    for name, task in tasks.items():
        if task.name != name:
            raise UserError(f"{task.root}: this is task {task.name!r}, but the run asks for {name!r}")
        validate_reward(spec.reward, task.spec)


def _with_absolute_paths(spec: TrainingRunSpec, base: Path) -> TrainingRunSpec:
    """Local paths are relative to the run file; in the run's own folder they have to be absolute."""
    model, tuning = spec.model, spec.fine_tuning
    if model.source.path is not None:
        source = model.source.model_copy(update={"path": _absolute(model.source.path, base)})
        model = model.model_copy(update={"source": source})
    if model.tokenizer is not None and (base / model.tokenizer).exists():
        model = model.model_copy(update={"tokenizer": _absolute(model.tokenizer, base)})
    if tuning is not None and tuning.examples.path is not None:
        examples = tuning.examples.model_copy(update={"path": _absolute(tuning.examples.path, base)})
        tuning = tuning.model_copy(update={"examples": examples})
    return spec.model_copy(update={"model": model, "fine_tuning": tuning})


def _absolute(path: str, base: Path) -> str:
    return str((base / path).resolve())


def _located(task: TaskFolder) -> MLTask:
    annotations = {**task.manifest.metadata.annotations, FOLDER_ANNOTATION: str(task.root)}
    metadata = task.manifest.metadata.model_copy(update={"annotations": annotations})
    return task.manifest.model_copy(update={"metadata": metadata})


def differences(ours: Any, theirs: Any, path: str = "spec") -> list[str]:
    """Where two plain documents differ, as `path: ours, not theirs`."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            difference
            for key in sorted({*ours, *theirs})
            for difference in differences(ours.get(key), theirs.get(key), f"{path}.{key}")
        ]
    return [] if ours == theirs else [f"{path}: {ours}, not {theirs}"]
