"""What is finished stays finished; what waits says what it waits for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from mlwright_api.rollout import Outcome, RolloutSeconds, RolloutStatus
from mlwright_trainer.errors import UserError
from mlwright_trainer.inference.engine import VersionSpan
from mlwright_trainer.ledger import Ledger, Purpose, Result, Sampled
from mlwright_trainer.runs.folder import RunFolder
from mlwright_trainer.runs.plan import RunPlan, recorded_run

from benchmarks.quickstart.budget import ROUNDS_FACTOR, Budget
from benchmarks.quickstart.settings import RUN_FILE, Arm, Job, Settings
from benchmarks.quickstart.state import budget_of, is_finished, not_reopened

RL = Job(1, "churn", Arm.RL)


def sampled(purpose: Purpose, number: int, position: int, seconds: float) -> Sampled:
    status = RolloutStatus(outcome=Outcome.ERROR, seconds=RolloutSeconds(execution=seconds))
    return Sampled(
        id=f"{purpose}-{number}-{position}",
        purpose=purpose,
        round=number,
        position=position,
        task="churn",
        prompt_kind="draft",
        parent=None,
        prompt_tokens=(1,),
        response_tokens=(2,),
        logprobs=(-0.5,),
        spans=(VersionSpan(number, 0, 1),),
        response="pass",
        script="pass",
        tree=None,
        result=Result(status=status, reward=-0.5),
    )


def begun(settings: Settings, job: Job) -> Ledger:
    """The ledger of a run folder that has begun."""
    folder = RunFolder(settings.folder(job))
    folder.path.mkdir(parents=True)
    folder.run_file.write_text("kind: TrainingRun\n")
    return Ledger.create(folder.ledger, {"name": "test"})


def with_rounds(ledger: Ledger, seconds: list[float], *, purpose: Purpose = "Train") -> None:
    for number, each in enumerate(seconds):
        ledger.commit_round([sampled(purpose, number, position, each) for position in range(2)])
        if purpose == "Train":
            ledger.assign_batch(number, [f"Train-{number}-0", f"Train-{number}-1"])


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(state=tmp_path)


def test_an_arm_is_finished_once_its_run_is_sealed_and_not_before(settings: Settings) -> None:
    assert not is_finished(settings, RL)
    with begun(settings, RL) as ledger:
        with_rounds(ledger, [1.0])
        assert not is_finished(settings, RL)
        ledger.record_sealed([])
    assert is_finished(settings, RL)


def test_a_control_waits_for_the_arm_that_sets_its_budget(settings: Settings) -> None:
    control = replace(RL, arm=Arm.SHUFFLED)
    with begun(settings, RL) as ledger:
        with_rounds(ledger, [1.0])
        with pytest.raises(UserError, match="waits for seed 1, churn, rl"):
            budget_of(settings, control)


def test_the_budget_is_that_of_the_same_seed_and_task_without_fresh_samples(settings: Settings) -> None:
    with begun(settings, RL) as ledger:
        with_rounds(ledger, [1.0, 2.0])
        with_rounds(ledger, [100.0], purpose="Before")
        with_rounds(ledger, [100.0], purpose="After")
        ledger.record_sealed([])
    assert budget_of(settings, replace(RL, arm=Arm.BEST_OF_N)) == Budget(6.0, 2 * ROUNDS_FACTOR)
    with pytest.raises(UserError, match="seed 2"):
        budget_of(settings, Job(2, "churn", Arm.BEST_OF_N))


def test_after_its_final_samples_an_arm_is_asked_for_no_more_updates(settings: Settings) -> None:
    plan = RunPlan("test", recorded_run(RUN_FILE).spec, {})
    folder = RunFolder(settings.folder(RL))
    assert not_reopened(plan, folder).updates == 16
    with begun(settings, RL) as ledger:
        with_rounds(ledger, [1.0, 1.0, 1.0])
        assert not_reopened(plan, folder).updates == 16
        with_rounds(ledger, [1.0], purpose="After")
    assert not_reopened(plan, folder).updates == 3
