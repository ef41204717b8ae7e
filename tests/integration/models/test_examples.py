"""The runs in examples/ load, resolve, and fit together with what they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from mlwright_api.manifests import load_manifests
from mlwright_api.metric_catalog import metric_info
from mlwright_api.mltask import MLTask
from mlwright_api.presets import resolve
from mlwright_api.trainingrun import TrainingRun, TrainingRunSpec
from mlwright_trainer.collection.prompts import draft_messages, task_prompt
from mlwright_trainer.collection.templating import templates_of
from mlwright_trainer.generators import generate
from mlwright_trainer.learning.fine_tuning import encode_examples
from mlwright_trainer.learning.sources import load_source

EXAMPLES = Path(__file__).parents[3] / "examples"
RUNS = ("quickstart", "smollm2", "qwen2.5-3b")


def _run(name: str) -> TrainingRunSpec:
    (run,) = load_manifests(EXAMPLES / name / "run.yaml")
    assert isinstance(run, TrainingRun)
    return resolve(run.spec)


def _task(run: str, name: str) -> MLTask:
    (task,) = load_manifests(EXAMPLES / run / name / "task.yaml")
    assert isinstance(task, MLTask)
    return task


@pytest.mark.parametrize("name", RUNS)
def test_a_run_resolves_and_its_tasks_are_beside_it(name: str) -> None:
    spec = _run(name)
    for task in spec.tasks:
        assert _task(name, task.name).metadata.name == task.name


@pytest.mark.parametrize("name", RUNS)
def test_a_runs_templates_have_known_placeholders_only(name: str) -> None:
    templates_of(_run(name).prompts.templates)


@pytest.mark.torch
def test_the_quickstart_asks_exactly_what_its_model_was_fine_tuned_on() -> None:
    spec = _run("quickstart")
    task = _task("quickstart", "churn")
    prompt = task_prompt("churn", task.spec, metric_info(task.spec.metric), [])
    messages = draft_messages(prompt, templates_of(spec.prompts.templates))
    taught = {example.prompt for example in generate("sklearn-tabular", seed=0, count=50)}
    assert [{"role": "user", "content": text} for text in taught] == messages


@pytest.mark.torch
def test_the_quickstarts_scripts_fit_into_its_token_limit() -> None:
    spec = _run("quickstart")
    examples = generate("sklearn-tabular", seed=1, count=3000)
    texts = [text for example in examples for text in (example.prompt, example.completion)]
    loaded = load_source(spec.model, base=EXAMPLES / "quickstart", texts=texts, seed=1)
    lengths = [len(encoded.completion) for encoded in encode_examples(loaded.tokenizer, examples)]
    assert max(lengths) < spec.sampling.max_tokens
    assert sum(lengths) / len(lengths) < 60
    assert sum(parameter.numel() for parameter in loaded.model.parameters()) < 1_000_000
