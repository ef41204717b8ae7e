"""The real arms on a real task, in real sandboxes, with a model that knows a handful of short scripts by heart."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from mlwright_trainer.errors import UserError
from mlwright_trainer.ledger import LedgerReader
from mlwright_trainer.progress import Silence
from mlwright_trainer.tasks.preparation import prepare_task

pytest.importorskip("torch")

from mlwright_trainer.learning.initial import make_initial_weights

from benchmarks.quickstart import plans
from benchmarks.quickstart.prompts import draft_prompt, require_known_prompt
from benchmarks.quickstart.records import ArmRecord
from benchmarks.quickstart.results import collect
from benchmarks.quickstart.settings import TASKS, Arm, Job, Settings, Sizes
from benchmarks.quickstart.state import is_finished
from benchmarks.quickstart.work import carry_out

pytestmark = [pytest.mark.torch, pytest.mark.sandbox, pytest.mark.slow]

SCRIPT = """import pandas as pd

sample = pd.read_csv("data/sample_submission.csv")
key, target = sample.columns
test = pd.read_csv("data/test.csv").drop(columns=key).select_dtypes("number")
sample[target] = test.iloc[:, {column}].rank(pct=True)
sample.to_csv("{name}.csv", index=False)
"""
NAMES = ("submission", "submission", "output")
REPETITIONS = 60


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """One seed of the first task, with a fine-tuned model of another kind than the quickstart's."""
    shutil.copytree(
        TASKS / "churn",
        tmp_path / "tasks" / "churn",
        ignore=shutil.ignore_patterns("public", "private", "sealed"),
    )
    prepare_task(tmp_path / "tasks" / "churn")
    monkeypatch.setattr(plans, "TASKS", tmp_path / "tasks")
    settings = Settings(seeds=(1,), state=tmp_path / "state", sizes=Sizes(updates=1, batch=6, samples=4))
    teach(settings, tmp_path / "examples.jsonl")
    return settings


def teach(settings: Settings, file: Path) -> None:
    plan = plans.plan_of(settings, Job(1, "churn", Arm.RL))
    prompt = draft_prompt(plan, "churn")
    scripts = [SCRIPT.format(column=column, name=name) for column in range(5) for name in NAMES]
    lines = [json.dumps({"prompt": prompt, "completion": script}) for script in scripts]
    file.write_text("\n".join(lines * REPETITIONS))
    tuning = plan.spec.fine_tuning
    assert tuning is not None
    source = type(tuning.examples)(path=str(file))
    changed = tuning.model_copy(update={"examples": source, "count": None})
    spec = plan.spec.model_copy(update={"fine_tuning": changed})
    make_initial_weights(
        spec, settings.initial_weights(1), base=file.parent, progress=lambda _note, _share: None
    )


def test_every_arm_ends_with_graded_samples_and_a_best_script_from_the_same_start(settings: Settings) -> None:
    jobs = [job for job in settings.jobs() if job.task == "churn"]
    with pytest.raises(UserError, match="waits for"):
        carry_out(settings, jobs[1], Silence())
    for job in jobs:
        carry_out(settings, job, Silence())
        assert is_finished(settings, job)
    results = collect(settings, failures={}, unseen=[])
    found = {record.arm: record for record in results.arms}
    assert set(found) == set(Arm)
    assert len({record.initial_digest for record in found.values()}) == 1
    for record in found.values():
        assert_measured(record)
    assert found[Arm.BEST_OF_N].weights_digest == found[Arm.BEST_OF_N].initial_digest
    for arm in (Arm.RL, Arm.REJECTION_SAMPLING, Arm.SHUFFLED):
        assert found[arm].weights_digest != found[arm].initial_digest, f"{arm} changed nothing"
    assert_same_first_round(settings, jobs)
    assert_kept_rows_were_learned(settings)


def assert_measured(record: ArmRecord) -> None:
    assert record.fresh.n == 4
    assert record.fresh.valid_fraction is not None
    assert record.fresh.valid_fraction > 0, "the model knows its scripts by heart"
    assert record.best is not None
    assert set(record.best.scores) == {"Reward", "Selection", "Final"}
    assert record.scripts == 6 * record.rounds
    assert record.sandbox_seconds > 0
    assert record.budget_seconds is None or record.capped or record.rounds >= 1


def assert_same_first_round(settings: Settings, jobs: list[Job]) -> None:
    """Arms are compared within seeds because they begin alike."""
    first = []
    for job in jobs:
        with LedgerReader(settings.folder(job) / "ledger.sqlite") as ledger:
            first.append([row.response for row in ledger.rollouts("Train", round=0)])
    assert all(responses == first[0] for responses in first)


def assert_kept_rows_were_learned(settings: Settings) -> None:
    with LedgerReader(settings.folder(Job(1, "churn", Arm.REJECTION_SAMPLING)) / "ledger.sqlite") as ledger:
        valid = [row for row in ledger.rollouts("Train", round=0) if row.outcome and row.outcome.valid]
        [_, first, *_] = ledger.updates()
    assert first.metrics["examples"] == (len(valid) + 1) // 2


def test_a_prompt_that_no_example_has_is_refused(settings: Settings) -> None:
    plan = plans.plan_of(settings, Job(1, "churn", Arm.RL))
    prompts = plan.spec.prompts
    other = prompts.templates.model_copy(update={"draft": "Write a script."})
    changed = plan.spec.model_copy(update={"prompts": prompts.model_copy(update={"templates": other})})
    with pytest.raises(UserError, match="asked with 'Write a script"):
        require_known_prompt(type(plan)(plan.name, changed, plan.tasks), "churn")
